package bus

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"netsky/agent"
	"netsky/bus/envelope"
	"netsky/bus/mailbox"
	"netsky/home"
)

// A DeliveryReport says what has become of a message on the host that it was sent to. The
// addresses are without their hosts.
type DeliveryReport struct {
	ID       string   `json:"id"`
	From     agent.ID `json:"from"`  // its sender
	To       agent.ID `json:"to"`    // its recipient
	State    string   `json:"state"` // of its delivery, as the records there have it
	Attempts int      `json:"attempts,omitempty"`
	Reason   string   `json:"reason,omitempty"`
	MS       int64    `json:"ms"` // when; 0: just now
}

// A SettledMail is mail to the owner, which is settled on the host that it is from.
type SettledMail struct {
	ID   string   `json:"id"`
	All  bool     `json:"all,omitempty"` // with the mail whose ID continues that one, behind a dash
	From agent.ID `json:"from"`
	Read bool     `json:"read,omitempty"` // the owner knows of it
}

// The extra fields of what one netsky acknowledges to another.
const (
	reportsField = "reports"
	settledField = "settled"
)

const (
	reportsName = "reports"          // of the file with what a host has reported, beside its mailboxes
	reportID    = "report-"          // begins the ids of reports
	reportLane  = agent.ID("report") // is in the names of their files, in place of their sender
	perReport   = 200                // deliveries, so that a report is no large message
	mostReports = 1000               // that are read of one
	maxReason   = 300                // bytes
	leastBound  = 1 << 20
	// A host that sends more reports than this has them wait on their way.
	reportEvery = 10 * time.Millisecond
	reportBurst = 1000
)

// ReportsFile returns the file of the home with what a host has reported.
func ReportsFile(host string) string { return home.Links + "/" + host + "/" + reportsName }

// IsReport reports whether a message to or from another host is what netskys tell each other,
// of which no record is kept.
func IsReport(e envelope.Envelope) bool {
	return e.Kind == envelope.KindAck && e.Via == "code" && strings.HasPrefix(e.ID, reportID)
}

// IsReportID is IsReport where only the ID is known: any message may have that.
func IsReportID(id string) bool { return strings.HasPrefix(id, reportID) }

// A reports tells other hosts what has become of their messages, and keeps what they tell.
type reports struct {
	*boxes
	had    memory
	post   *sender
	upkeep *upkeep
	limit  perHost

	mu   sync.Mutex // guards the field below
	kept map[string]*reportLines
}

// Report tells a host what has become of messages from there. That is mail, so it arrives in
// the end; told again, it has no further effect.
func (b *reports) Report(ctx context.Context, host string, list ...DeliveryReport) error {
	for part := range slices.Chunk(list, perReport) {
		if err := b.acknowledge(ctx, agent.Root.At(host), reportsField, part); err != nil {
			return err
		}
	}
	return nil
}

// Settle marks mail to the owner as settled that went to the host where the owner is reached.
func (b *reports) Settle(ctx context.Context, list ...SettledMail) error {
	host := home.OwnersHost(b.home)
	if host == "" || len(list) == 0 {
		return nil
	}
	return b.acknowledge(ctx, agent.Owner.At(host), settledField, list) // behind that mail
}

// acknowledge sends what no model sees, on either side.
func (b *reports) acknowledge(ctx context.Context, to agent.ID, field string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = b.post.Send(ctx, envelope.Envelope{
		ID: reportID + envelope.Digest(string(to), string(data)), From: agent.Infinity, To: to, Kind: envelope.KindAck, Via: "code", Time: b.now(),
		Extra: map[string]json.RawMessage{field: data},
	})
	if errors.Is(err, ErrNoMailbox) {
		return nil // it is not in the team any more, or has had mail sent to too many addresses
	}
	return err
}

// acknowledged takes a message from that host if it is one that no mailbox gets.
func (b *reports) acknowledged(ctx context.Context, host string, e envelope.Envelope) (is bool, err error) {
	if e.Kind != envelope.KindAck || e.Via != "code" || e.Extra[reportsField] == nil && e.Extra[settledField] == nil {
		return false, nil
	}
	if !b.limit.allow(host, b.now()) {
		return true, mailbox.BrakeError{Kind: mailbox.Rate, Text: host + ": too many reports from there"}
	}
	var reports []DeliveryReport
	var settled []SettledMail
	for field, list := range map[string]any{reportsField: &reports, settledField: &settled} {
		if data, ok := e.Extra[field]; ok {
			if err := json.Unmarshal(data, list); err != nil {
				return true, RefusedError{fmt.Errorf("%s: %w", field, err)}
			}
		}
	}
	if len(reports) > 0 {
		err = b.reported(ctx, host, reports[:min(len(reports), mostReports)])
	}
	if len(settled) > 0 {
		err = errors.Join(err, b.settled(host, settled))
	}
	return true, err
}

// reported keeps what a host says of messages that were sent there.
func (b *reports) reported(ctx context.Context, host string, list []DeliveryReport) error {
	of := make(map[agent.ID][]DeliveryReport)
	for _, r := range list {
		_, ferr := agent.Parse(string(r.From))
		_, terr := agent.Parse(string(r.To))
		if ferr != nil || terr != nil || !envelope.IsID(r.ID) || r.Attempts < 0 || r.Attempts > envelope.MaxHops || len(r.State) > 32 {
			continue
		}
		now := b.now().UnixMilli()
		r.Reason, r.MS = envelope.Plain(envelope.Line(r.Reason, maxReason)), min(cmp.Or(max(r.MS, 0), now), now)
		of[r.To] = append(of[r.To], r)
	}
	var lines []byte
	for to, list := range of {
		sent, err := b.sentTo(ctx, to.At(host), list)
		if err != nil {
			return err
		}
		for _, r := range sent {
			line, err := json.Marshal(r)
			if err != nil {
				return err
			}
			lines = append(append(lines, line...), '\n')
		}
	}
	if len(lines) == 0 {
		return nil
	}
	return b.add(host, lines)
}

// sentTo returns those of the reports that are about messages which were sent to an address on
// another host.
func (b *reports) sentTo(ctx context.Context, box agent.ID, list []DeliveryReport) (sent []DeliveryReport, err error) {
	about := make([]envelope.Envelope, len(list))
	for i, r := range list {
		about[i] = envelope.Envelope{ID: r.ID, From: r.From}
	}
	known, err := b.had.Remembered(box, about)
	if err != nil {
		return nil, err
	}
	if slices.Contains(known, false) { // it may have arrived there before it was filed here
		names, err := b.Names(box, Claimed)
		if err != nil && !errors.Is(err, ErrNoMailbox) {
			return nil, err
		}
		for _, name := range names {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			e, err := b.Read(box, Claimed, name)
			i := slices.IndexFunc(about, func(a envelope.Envelope) bool { return a.ID == e.Envelope.ID && a.From == e.Envelope.From })
			if err == nil && i >= 0 {
				known[i] = true
			}
		}
		filed, err := b.had.Remembered(box, about) // meanwhile
		if err != nil {
			return nil, err
		}
		for i := range known {
			known[i] = known[i] || filed[i]
		}
	}
	for i, r := range list {
		if known[i] {
			sent = append(sent, r)
		}
	}
	return sent, nil
}

// A ReportsAt is a place in what a host has reported. The zero value is the beginning.
type ReportsAt = mailbox.LinesAt

// Reports calls fn with what a host has reported behind a place, the oldest first, and returns
// the place behind that.
func (b *boxes) Reports(host string, since ReportsAt, fn func(DeliveryReport)) (ReportsAt, error) {
	return mailbox.ReadLines(b.home, home.Links+"/"+host, reportsName, since, func(line []byte) {
		var r DeliveryReport
		if json.Unmarshal(line, &r) == nil {
			fn(r)
		}
	})
}

// LastReport returns what the host of an address has reported last of a message that was sent there.
func (b *boxes) LastReport(to, from agent.ID, id string) (last DeliveryReport, ok bool, err error) {
	_, err = b.Reports(to.Host(), ReportsAt{}, func(r DeliveryReport) {
		if r.ID == id && r.From == from && r.To == to.Local() {
			last, ok = r, true
		}
	})
	return last, ok, err
}

// reportLines is the file with what a host has reported.
type reportLines struct {
	mailbox.Lines
	bound int64 // the length from which on the file is replaced
}

// add appends lines, so that they survive a loss of power. Only the link of a home does.
func (b *reports) add(host string, lines []byte) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.kept == nil {
		b.kept = make(map[string]*reportLines)
	}
	f := b.kept[host]
	if f == nil {
		f = &reportLines{mailbox.Lines{Home: b.home, Box: home.Links + "/" + host, Name: reportsName, Files: &b.post.files}, leastBound}
		b.kept[host] = f
	}
	if f.Gone() {
		if err := f.Open(); err != nil {
			return err
		}
	}
	all := func(out io.Writer) error {
		err := b.lastReports(host, out)
		if err == nil {
			_, err = out.Write(lines)
		}
		return err
	}
	if f.Size < f.bound {
		return f.Append(lines, true, all)
	}
	err := f.Replace(all)
	f.bound = max(leastBound, 2*f.Size)
	return err
}

// lastReports writes what is still of use of what a host has reported: the last of each message
// that is not forgotten.
func (b *boxes) lastReports(host string, out io.Writer) error {
	type key struct {
		id       string
		from, to agent.ID
	}
	last := make(map[key]int)
	cutoff, n := b.now().Add(-b.keep).UnixMilli(), 0
	each := func(fn func(r DeliveryReport, k key)) error {
		_, err := b.Reports(host, ReportsAt{}, func(r DeliveryReport) {
			if r.MS >= cutoff {
				fn(r, key{r.ID, r.From, r.To})
			}
		})
		return err
	}
	if err := each(func(_ DeliveryReport, k key) { n++; last[k] = n }); err != nil {
		return err
	}
	n = 0
	enc := json.NewEncoder(out)
	var werr error
	err := each(func(r DeliveryReport, k key) {
		if n++; last[k] == n && werr == nil {
			werr = enc.Encode(r)
		}
	})
	return cmp.Or(err, werr)
}

// settled marks mail of the owner's as settled that the netsky of that host has sent.
func (b *reports) settled(host string, list []SettledMail) error {
	names, err := b.upkeep.Unread()
	if err != nil || len(names) == 0 {
		return err
	}
	entries, err := b.FindAll(agent.Owner, names)
	var read, settled []string
	for _, e := range entries {
		v := e.Envelope
		i := slices.IndexFunc(list, func(s SettledMail) bool {
			return s.From.At(host) == v.From && (s.ID == v.ID || s.All && strings.HasPrefix(v.ID, s.ID+"-"))
		})
		switch {
		case e.Err != nil || v.Via != ViaLinkCode || i < 0:
		case list[i].Read:
			read = append(read, e.Name)
		default:
			settled = append(settled, e.Name)
		}
	}
	shown := home.ShownMail(b.home)
	return errors.Join(err, shown.Mark(read...), shown.MarkSettled(settled...))
}
