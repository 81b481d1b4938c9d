package bus

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/time/rate"

	"netsky/agent"
	"netsky/bus/envelope"
	"netsky/bus/mailbox"
	"netsky/home"
	"netsky/internal/advice"
)

// ErrNoLink reports an address on a host that this home has no link to. It also matches
// ErrNoMailbox.
var ErrNoLink = advice.With(errors.New("no link to that host"),
	"`netsky link` lists the hosts of this team, or says how there can be one")

type noLinkError struct{ error }

func (noLinkError) Is(target error) bool { return target == ErrNoMailbox }
func (e noLinkError) Unwrap() error      { return e.error }

func noLink(id agent.ID) error { return noLinkError{fmt.Errorf("%s: %w", id, ErrNoLink)} }

// Link lets mail for a host be sent: it waits in the host's directory until the link takes
// it. When it returns, the directory survives a power loss.
func (b *boxes) Link(host string) error {
	if !agent.IsHost(host) {
		return fmt.Errorf("%q: not a host's name", host)
	}
	fd, err := mailbox.MakeDir(b.home, home.Links+"/"+host)
	if err != nil {
		return fmt.Errorf("make the mailboxes of %s: %w", host, err)
	}
	return errors.Join(unix.Close(fd), b.home.Remove(leftFile(host)))
}

// Unlink has mail for a host refused, until the next Link. What waits stays.
func (b *boxes) Unlink(host string) error {
	if b.left(host) {
		return nil
	}
	return b.home.WriteFile(leftFile(host), nil, true)
}

// leftFile is there if mail can't be sent to a host any more.
func leftFile(host string) string { return home.Links + "/" + host + "/left" }

func (b *boxes) left(host string) bool { return b.home.Mark(leftFile(host)).Exists() }

// Linked lists the hosts to which mail can be sent.
func (b *boxes) Linked() (hosts []string, err error) {
	err = b.names(home.Links, func(name string) {
		if agent.IsHost(name) {
			hosts = append(hosts, name)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("list the hosts: %w", err)
	}
	slices.Sort(hosts)
	return hosts, nil
}

func (b *boxes) linked(host string) bool {
	fd, err := mailbox.OpenDir(b.home, home.Links+"/"+host)
	if err != nil {
		return false
	}
	unix.Close(fd)
	return !b.left(host)
}

// openInbox opens an inbox for a sender. That of an address on a linked host is made when
// it is first written to.
func (b *boxes) openInbox(id agent.ID) (int, error) {
	fd, err := b.openPlace(id, Inbox)
	if id.Host() == "" || !errors.Is(err, ErrNoMailbox) || errors.Is(err, ErrNoLink) {
		return fd, err
	}
	if err := b.another(id); err != nil {
		return -1, err
	}
	if err := b.Make(id); err != nil {
		return -1, err
	}
	return b.openPlace(id, Inbox)
}

// maxAddresses is how many addresses on one host have a mailbox here, each of which the link
// watches: answers make them, and a host may write as any number of agents.
const maxAddresses = 256

// another returns an error unless an address on another host may get a mailbox.
func (b *boxes) another(id agent.ID) error {
	n := 0
	err := b.names(home.Links+"/"+id.Host(), func(name string) {
		if _, err := agent.Parse(name); err == nil { // else it is a file of the link's
			n++
		}
	})
	if err == nil && n >= maxAddresses {
		err = noLinkError{fmt.Errorf("%s: mail was sent to %d addresses on that host already, which is the most", id, n)}
	}
	return err
}

// Unsent counts the messages that wait for each host, less what the netskys tell each other.
func (b *boxes) Unsent() (map[string]int, error) {
	waits := make(map[string]int)
	ids, err := b.All()
	for _, id := range ids {
		for _, p := range Pending() {
			if id.Host() == "" {
				continue
			}
			err = errors.Join(err, b.names(placePath(id, p), func(name string) {
				if _, from, _ := envelope.NameParts(name); envelope.IsFile(name) && from != string(reportLane) {
					waits[id.Host()]++
				}
			}))
		}
	}
	return waits, err
}

// ServerKeeps is how long a team's server keeps mail.
const ServerKeeps = 7 * 24 * time.Hour

// How mail from another host was sent, as far as this home knows.
const (
	ViaLink     = "link"
	ViaLinkCode = "link_code" // by the netsky there, and not by an agent of its
)

// ByCode reports whether netsky itself, here or on a host of the team, wrote what was sent in that way.
func ByCode(via string) bool { return via == "code" || via == ViaLinkCode }

// across returns an error unless a message may be sent from one host to another.
func across(e envelope.Envelope) error {
	refuse := func(why string) error { return fmt.Errorf("%s: %w %s: %s", e.From, ErrNotAllowed, e.To, why) }
	switch {
	case e.Kind == envelope.KindShutdown, e.Kind == envelope.KindShutdownAck:
		return refuse("a " + string(e.Kind) + " does not cross hosts; `netsky down AGENT@HOST` ends agents there")
	case e.Kind == envelope.KindCancel && e.From.Local() != agent.Owner: // it ends turns, whoever asked for them
		return refuse("only the owner's cancel crosses hosts")
	}
	return nil
}

// reached returns where a message goes: one to the owner, to the host where the owner is
// reached, but for what answers a question that the owner has asked here.
func (s *sender) reached(e envelope.Envelope) agent.ID {
	if e.To != agent.Owner || e.From.Host() != "" || !e.Kind.Answerable() && e.Kind != envelope.KindCancel || e.Kind == envelope.KindHeld {
		return e.To
	}
	if host := home.OwnersHost(s.home); host != "" && s.linked(host) {
		return e.To.At(host)
	}
	return e.To
}

// there reports whether a message is in its mailbox, taken or not, to stay.
func (b *Bus) there(ctx context.Context, e envelope.Envelope) (bool, error) {
	if e.Validate() != nil || allowed(e) != nil {
		return false, nil // Send says what is wrong
	}
	file, taken, err := b.taken(ctx, e)
	if taken || err != nil || file == "" {
		return taken, err
	}
	return true, b.lasting(e.To)
}

// lasting has the system write to disk what waits in a mailbox: who put it there may have died
// before that.
func (b *boxes) lasting(id agent.ID) error {
	for _, p := range Pending() {
		fd, err := b.openPlace(id, p)
		if err != nil {
			return err
		}
		err = mailbox.Fsync(fd)
		unix.Close(fd)
		if err != nil {
			return fmt.Errorf("fsync of the directory: %w", err)
		}
	}
	return nil
}

// A RefusedError is why mail from another host was not accepted, nor will be. Its sender has
// been told, unless nobody waits for an answer.
type RefusedError struct{ error }

func (e RefusedError) Unwrap() error { return e.error }

// Arrive puts a message that an address on that host has sent into the mailbox here: its
// effect is once, however often it arrives; again says that it may have arrived before, so
// that no second copy need be written. When it returns nil, the message survives a
// power loss. The error is a [RefusedError] if the message is not accepted; any other
// passes, as [ErrBrake] does.
//
// What another netsky acknowledges is for this one, and comes into no mailbox.
func (b *Bus) Arrive(ctx context.Context, host string, e envelope.Envelope, again bool) error {
	if is, err := b.acknowledged(ctx, host, e); is {
		return err
	}
	via := ViaLink
	if own(e) {
		via = ViaLinkCode
	}
	e.From, e.To, e.Via = e.From.At(host), e.To.Local(), via
	there, err := false, error(nil)
	if again {
		there, err = b.there(ctx, e)
	}
	if !there && err == nil {
		_, err = b.Send(ctx, e)
	}
	if err == nil || isPassing(err) || !isRefusal(err) && !errors.Is(err, ErrUsed) {
		return err
	}
	if errors.Is(err, ErrNoMailbox) { // without the path here
		err = fmt.Errorf("%s: %w", e.To, ErrNoMailbox)
	}
	return b.refuseFrom(ctx, e, err)
}

// Each refusal is told by mail, which waits for a host that may never take it. So no more are told
// a host than this; what it sends beyond that waits on its way.
const (
	refusalEvery = 5 * time.Second
	refusalBurst = 200
)

// A perHost limits what each host may have done here.
type perHost struct {
	every time.Duration
	burst int

	mu sync.Mutex // guards the field below
	of map[string]*rate.Limiter
}

func (r *perHost) allow(host string, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of == nil {
		r.of = make(map[string]*rate.Limiter)
	}
	if r.of[host] == nil {
		r.of[host] = rate.NewLimiter(rate.Every(r.every), r.burst)
	}
	return r.of[host].AllowN(now, 1)
}

// Refuse tells the sender of a message, an address on that host, that it is not accepted. The
// error is a [RefusedError], matches [ErrBrake] if too many were told lately, or says why that could
// not be told.
func (b *Bus) Refuse(ctx context.Context, host string, e envelope.Envelope, why error) error {
	e.From, e.To = e.From.At(host), e.To.Local()
	return b.refuseFrom(ctx, e, why)
}

func (b *Bus) refuseFrom(ctx context.Context, e envelope.Envelope, why error) error {
	if e.Validate() != nil || e.Kind == envelope.KindAck {
		return RefusedError{why}
	}
	if !b.refusals.allow(e.From.Host(), b.now()) {
		return mailbox.BrakeError{Kind: mailbox.Rate, Text: fmt.Sprintf("%s: too much of what %s sends is refused: %v", e.From, e.From.Host(), why)}
	}
	if e.Kind.Answerable() {
		told := b.answer(e, envelope.Envelope{From: e.To, To: e.From, Kind: envelope.KindError, Text: "not delivered: " + envelope.SafeText(why.Error())})
		if told != nil && !errors.Is(told, ErrNoMailbox) {
			return told
		}
	}
	if !errors.Is(why, ErrUsed) { // under that ID another message may be on its way
		r := DeliveryReport{ID: e.ID, From: e.From.Local(), To: e.To, State: "failed", Reason: "not delivered: " + why.Error()}
		if err := b.Report(ctx, e.From.Host(), r); err != nil {
			return err
		}
	}
	return RefusedError{why}
}
