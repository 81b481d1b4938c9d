package link

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/nats-io/nats.go"

	"netsky/link/team"
	"netsky/link/wire"
)

// Deeds is what hosts with the role owner have others do, at both ends. It keeps nothing.
type Deeds struct {
	// Do does a deed that a host asks for, until ctx ends, and writes what comes of it to w; nil: nothing is done.
	Do func(ctx context.Context, from, deed string, request []byte, w io.Writer)

	now      func() time.Time // nil: time.Now
	patience time.Duration    // 0: as below

	mu      sync.Mutex // guards session
	session *session   // nil: there is no link
}

const (
	freshFor  = 15 * time.Second // for a deed to arrive once there is a number for it
	pollFor   = 5 * time.Second  // for what a deed says next
	replyTime = 10 * time.Second // for a reply, beside that
	patience  = 30 * time.Second // without a word of the other host

	maxDeed   = 1_000_000 // bytes of a request, in one message
	maxPart   = 512 << 10 // bytes of what a deed says, in one message
	maxUnread = 1 << 20   // and that wait for the host that asked
	maxJobs   = 32        // numbers of one host
	maxDoing  = 4         // deeds of one host at a time
)

// What a host asks another.
const (
	opHello = "hello" // for a number
	opDo    = "do"    // a deed, with that number
	opNext  = "next"  // what it says from there on
	opEnd   = "end"   // to end it, as by Ctrl-C
)

// An ask is what one host asks another.
type ask struct {
	Op       string         `json:"op"`
	Number   string         `json:"number,omitzero"`
	Deed     string         `json:"deed,omitzero"`
	Request  jsontext.Value `json:"request,omitzero"`
	WithinMS int64          `json:"within_ms,omitzero"` // when whoever asks stops waiting; 0: it doesn't
	At       int64          `json:"at,omitzero"`        // bytes of what the deed says that have arrived
}

// An answer is the reply to an ask.
type answer struct {
	Number  string `json:"number,omitzero"`
	Said    []byte `json:"said,omitzero"`
	End     bool   `json:"end,omitzero"`     // the deed says no more
	Refused string `json:"refused,omitzero"` // why nothing was done, and nothing will be
	Lost    bool   `json:"lost,omitzero"`    // the number is none, any more
}

// answerSubject is what an answer is signed for. It travels on a subject that its receiver has
// chosen, and that a server may replace.
func answerSubject(from, to string) string { return wire.DeedSubject(to, from) + ".answer" }

func (d *Deeds) clock() time.Time {
	if d.now != nil {
		return d.now()
	}
	return time.Now()
}

func (d *Deeds) waits() time.Duration {
	if d.patience != 0 {
		return d.patience
	}
	return patience
}

// use makes a session that by which others are asked; nil: none.
func (d *Deeds) use(s *session) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.session = s
}

// deeds hears what other hosts ask for, and lets them be asked.
func (s *session) deeds(ctx context.Context) error {
	if s.Deeds == nil {
		return nil
	}
	w := &doer{session: s, ctx: ctx, jobs: make(map[string]*job), doing: make(map[string]int), told: make(map[string]bool), looked: make(map[string]time.Time)}
	defer w.close()
	sub, err := s.nc.Subscribe(wire.DeedSubject(s.self.Name, "*"), w.take)
	if err != nil {
		return err
	}
	defer sub.Unsubscribe()
	if err := sub.SetPendingLimits(256, 16<<20); err != nil {
		return err
	}
	s.Deeds.use(s)
	defer s.Deeds.use(nil)
	<-ctx.Done()
	return ctx.Err()
}

// to returns the session by which a host can be asked, and the host.
func (d *Deeds) to(name string) (*session, team.Host, error) {
	d.mu.Lock()
	s := d.session
	d.mu.Unlock()
	if s == nil {
		return nil, team.Host{}, errors.New("this host has no connection to the team's server")
	}
	self, _ := s.team.Host(s.self.Name)
	h, ok := s.team.Host(name)
	switch {
	case !ok:
		return nil, h, errors.New("no host of the team has that name")
	case name == s.self.Name:
		return nil, h, errors.New("is this host")
	case self.Role != team.Owner:
		return nil, h, fmt.Errorf("%s has the role %s, and only hosts with the role %s ask others for deeds", self.Name, self.Role, team.Owner)
	}
	return s, h, nil
}

// ask sends one message to a host and returns its answer.
func (d *Deeds) ask(ctx context.Context, host string, a ask) (v answer, err error) {
	s, to, err := d.to(host)
	if err != nil {
		return v, err
	}
	body, err := json.Marshal(a)
	if err != nil {
		return v, err
	}
	m := &nats.Msg{Subject: wire.DeedSubject(to.Name, s.self.Name), Data: body}
	id := rand.Text()
	if err := wire.Sign(s.key, m, id); err != nil {
		return v, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, pollFor+replyTime, errors.New("has not answered"))
	defer cancel()
	reply, err := s.nc.RequestMsgWithContext(ctx, m)
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return v, errors.New("is not connected to the team's server")
	case ctx.Err() != nil:
		return v, context.Cause(ctx)
	case err != nil:
		return v, err
	}
	signed := &nats.Msg{Subject: answerSubject(to.Name, s.self.Name), Header: reply.Header, Data: reply.Data}
	if err = wire.Verify(to.Key, signed); err == nil && reply.Header.Get(nats.MsgIdHdr) != id {
		err = wire.ErrForged
	}
	if err == nil {
		err = json.Unmarshal(reply.Data, &v)
	}
	if err != nil {
		return v, fmt.Errorf("its answer: %w", err)
	}
	return v, nil
}
