package chaos

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/internal/proc"
)

// A Notice is something that the owner must be told, once, or may be.
type Notice struct {
	Prefix string // of the message's id
	Why    string
	Passes bool // nobody needs to be told once it is over
	may    bool
}

// account checks, after the last fault, that everything has come out right.
func (d *Drill) account(ctx context.Context) {
	d.check("all up", func() (string, error) {
		within, cancel := context.WithTimeout(ctx, d.Within)
		defer cancel()
		return fmt.Sprintf("daemon, ticker, %d agents", len(d.Agents)), d.awaitUp(within, Hit{})
	})
	d.check("mail settled", func() (string, error) { return d.settle(ctx) })
	d.check("delivered once", d.delivered)
	d.check("answered once", d.answered)
	d.check("on record", func() (string, error) { return d.recorded(ctx) })
	d.check("owner told", d.told)
	d.check("nothing left to do", func() (string, error) { return d.needs(ctx) })
	d.check("restarts", func() (string, error) { return d.restarts(ctx) })
}

// restarts counts what the watchdog has started again.
func (d *Drill) restarts(ctx context.Context) (string, error) {
	var page struct {
		Events []struct {
			Text string `json:"text"`
		} `json:"events"`
	}
	if err := d.query(ctx, &page, "watchdog", "events", "-n", "1000", "--json"); err != nil {
		return "", err
	}
	for _, e := range page.Events {
		if strings.HasPrefix(e.Text, "restarted: ready") {
			d.report.Restarts++
		}
	}
	return fmt.Sprintf("%s by the watchdog", count(d.report.Restarts, "restart")), nil
}

// end ends everything and checks that nothing is left.
func (d *Drill) end(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3*time.Minute)
	defer cancel()
	d.check("nothing left", func() (string, error) {
		out, err := d.netsky(ctx, "down", "--all", "--verify")
		var exit *exec.ExitError
		var unproved error
		if errors.As(err, &exit) && exit.ExitCode() == 3 && strings.Contains(out, "not proved") {
			why, _, _ := strings.Cut(out[strings.Index(out, "not proved"):], "\n") // what follows is advice for a home that stays
			unproved, err = fmt.Errorf("%w: %s", errNotProved, why), nil
		}
		if err != nil {
			return "", fmt.Errorf("netsky down --all --verify: %w: %s", err, out)
		}
		list, err := proc.Descendants(0, "NETSKY_HOME="+d.Home.Root(), d.Spare...)
		if err != nil {
			return "", err
		}
		for _, p := range list {
			if text := p.Command(); text != "" {
				return "", fmt.Errorf("process %d still runs: %s", p.PID, text)
			}
		}
		for _, socket := range []string{d.Socket, d.Home.Path("run", "daemon.sock")} {
			if c, err := net.Dial("unix", socket); err == nil {
				c.Close()
				return "", fmt.Errorf("%s still answers", socket)
			}
		}
		if !proc.Reaps {
			unproved = nil // it never can be there
		}
		return "processes, sessions, sockets", unproved
	})
}

// errNotProved is returned if nothing was found to be left.
var errNotProved = errors.New("nothing is found to run")

// check adds a line to the report.
func (d *Drill) check(name string, do func() (string, error)) {
	detail, err := do()
	line := Line{Name: name, Check: true, Result: Passed, Detail: detail}
	if err != nil {
		line.Result, line.Detail = Failed, err.Error()
		if errors.Is(err, errNotProved) {
			line.Result = NotProved
		}
	}
	d.tell(line)
}

// mailboxes are the addresses whose mail is accounted for.
func (d *Drill) mailboxes() []agent.ID {
	return append([]agent.ID{agent.Owner}, d.Agents...)
}

// settle waits until no message is on its way and each question has an answer.
func (d *Drill) settle(ctx context.Context) (string, error) {
	within, cancel := context.WithTimeout(ctx, d.Within)
	defer cancel()
	for {
		left, err := d.unsettled()
		if err == nil && left == "" {
			// A second answer would arrive late.
			proc.Sleep(within, time.Second)
			left, err = d.unsettled()
			if err == nil && left == "" {
				return d.ledger.count(d.report), nil
			}
		}
		if proc.Sleep(within, 200*time.Millisecond) != nil {
			return "", errors.Join(err, errors.New(left))
		}
	}
}

// unsettled returns what is still on its way, in words.
func (d *Drill) unsettled() (string, error) {
	for _, id := range d.mailboxes() {
		if err := d.ledger.read(d.Home, id); err != nil {
			return "", err
		}
	}
	for _, id := range d.Agents {
		for _, place := range []bus.Place{bus.Inbox, bus.Claimed, bus.Outbox} {
			if names := d.ledger.boxes[id].now[place]; len(names) > 0 {
				return fmt.Sprintf("%s: %s/%s", id, place, names[0]), nil
			}
		}
	}
	for _, m := range d.ledger.all() {
		if m.acked && len(d.ledger.answers(m.from)[m.id]) == 0 {
			return fmt.Sprintf("%s to %s is not answered: %s", m.id, m.to, m.text), nil
		}
	}
	return "", nil
}

func (l *ledger) all() []message {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := make([]message, len(l.sent))
	for i, m := range l.sent {
		list[i] = *m
	}
	return list
}

func (l *ledger) count(r *Report) string {
	for _, m := range l.all() {
		r.Messages.Sent++
		if m.acked {
			r.Messages.Acknowledged++
		}
		r.Messages.Retries += max(m.tries-1, 0)
	}
	return fmt.Sprintf("%s tried, %d accepted, %d repeated after a refusal", count(r.Messages.Sent, "message"), r.Messages.Acknowledged, r.Messages.Retries)
}

// delivered checks that every acknowledged message is in its recipient's delivered/ once, and
// that nothing anywhere is there twice.
func (d *Drill) delivered() (string, error) {
	times := make(map[agent.ID]map[string]int)
	total := 0
	for _, id := range d.mailboxes() {
		b := d.ledger.boxes[id]
		times[id] = make(map[string]int)
		for _, name := range b.now[bus.Delivered] {
			times[id][b.known[name].ID]++
			total++
		}
		if names := b.now[bus.Poison]; len(names) > 0 {
			return "", fmt.Errorf("%s: poison/%s", id, names[0])
		}
		for message, n := range times[id] {
			if n > 1 {
				return "", fmt.Errorf("%s: %s was delivered %d times", id, message, n)
			}
		}
	}
	for _, m := range d.ledger.all() {
		if m.acked && times[m.to][m.id] != 1 {
			return "", fmt.Errorf("%s from %s to %s was acknowledged and delivered %d times: %s", m.id, m.from, m.to, times[m.to][m.id], m.text)
		}
	}
	d.report.Messages.Delivered = total
	return fmt.Sprintf("%d messages with those of the agents", total), nil
}

// answered checks that every acknowledged message has one answer, and not an error.
func (d *Drill) answered() (string, error) {
	n := 0
	answers := make(map[agent.ID]map[string][]envelope.Envelope)
	for _, id := range d.mailboxes() {
		answers[id] = d.ledger.answers(id)
	}
	for _, m := range d.ledger.all() {
		list := answers[m.from][m.id]
		switch {
		case len(list) > 1, m.acked && len(list) == 0:
			return "", fmt.Errorf("%s from %s to %s has %d answers: %s", m.id, m.from, m.to, len(list), m.text)
		case len(list) == 1 && list[0].Kind == envelope.KindError:
			return "", fmt.Errorf("%s from %s to %s was answered with an error: %s", m.id, m.from, m.to, list[0].Text)
		}
		n += len(list)
	}
	d.report.Messages.Answered = n
	return fmt.Sprintf("%d answers", n), nil
}

// recorded checks that the records say the same of each message, once they are up to date.
func (d *Drill) recorded(ctx context.Context) (string, error) {
	within, cancel := context.WithTimeout(ctx, d.Within)
	defer cancel()
	var (
		mu    sync.Mutex
		wrong error
		n     int
		works sync.WaitGroup
	)
	slots := make(chan struct{}, 4)
	for _, m := range d.ledger.all() {
		if !m.acked {
			continue
		}
		n++
		slots <- struct{}{}
		works.Go(func() {
			defer func() { <-slots }()
			for {
				err := d.onRecord(within, m)
				if err == nil {
					return
				}
				if proc.Sleep(within, time.Second) != nil {
					mu.Lock()
					wrong = err
					mu.Unlock()
					return
				}
			}
		})
	}
	works.Wait()
	return fmt.Sprintf("%d messages, each delivered and answered", n), wrong
}

func (d *Drill) onRecord(ctx context.Context, m message) error {
	var history struct {
		Events []struct {
			Kind string `json:"kind"`
			Ref  string `json:"ref"`
		} `json:"events"`
	}
	if err := d.query(ctx, &history, "show", m.id, "--json"); err != nil {
		return err
	}
	times := make(map[string]int)
	for _, e := range history.Events {
		if e.Ref == m.id {
			times[e.Kind]++
		}
	}
	if times["delivered"] != 1 || times["answered"] != 1 {
		return fmt.Errorf("%s is recorded as delivered %d times, answered %d times", m.id, times["delivered"], times["answered"])
	}
	return nil
}

// told checks that the owner was told what they had to be told, and nothing else.
func (d *Drill) told() (string, error) {
	if err := d.ledger.read(d.Home, agent.Owner); err != nil {
		return "", err
	}
	var owed, may []Notice // several begin the same: those that must have been told count first
	for _, n := range d.owed {
		if n.may {
			may = append(may, n)
		} else {
			owed = append(owed, n)
		}
	}
	b := d.ledger.boxes[agent.Owner]
	held := 0
	limited := slices.ContainsFunc(d.owed, func(n Notice) bool { return strings.HasPrefix(n.Prefix, "limit-") })
	for _, place := range []bus.Place{bus.Inbox, bus.Claimed, bus.Delivered} {
		for _, name := range b.now[place] {
			e := b.known[name]
			switch e.Kind {
			case envelope.KindReply, envelope.KindError:
				continue // the answers are accounted for
			case envelope.KindHeld:
				if held++; !limited {
					return "", fmt.Errorf("%s: a message was held, though nothing was limited: %s", e.ID, e.Text)
				}
				continue
			}
			match := func(n Notice) bool { return strings.HasPrefix(e.ID, n.Prefix) }
			if i := slices.IndexFunc(owed, match); i >= 0 {
				owed = slices.Delete(owed, i, i+1)
			} else if i := slices.IndexFunc(may, match); i >= 0 {
				may = slices.Delete(may, i, i+1)
			} else {
				return "", fmt.Errorf("unexplained: %s from %s: %s", e.ID, e.From, envelope.Line(e.Text, 300))
			}
			d.report.Notices++
		}
	}
	if len(owed) > 0 {
		return "", fmt.Errorf("not told that %s (no message %s…)", owed[0].Why, owed[0].Prefix)
	}
	d.report.Held = held
	return fmt.Sprintf("%s, each explained by a fault; %s reported as held", count(d.report.Notices, "notice"), count(held, "message")), nil
}

// needs checks that nothing waits for the owner any more and that the spool is empty.
func (d *Drill) needs(ctx context.Context) (string, error) {
	var list struct {
		Needs []struct {
			Kind string `json:"kind"`
			Text string `json:"text"`
		} `json:"needs"`
	}
	if err := d.query(ctx, &list, "needs", "--json"); err != nil {
		return "", err
	}
	if len(list.Needs) > 0 {
		return "", fmt.Errorf("netsky needs: %s: %s", list.Needs[0].Kind, list.Needs[0].Text)
	}
	spool, err := filepath.Glob(d.Home.Path("state", "spool", "*"))
	if err != nil || len(spool) > 0 {
		return "", fmt.Errorf("not yet in the records: %v, %w", spool, err)
	}
	return "no needs, no spool", nil
}

// count is a number of things that are named in the singular.
func count(n int, one string) string {
	if n != 1 {
		one += "s"
	}
	return fmt.Sprintf("%d %s", n, one)
}
