package team

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"

	"netsky/agent"
	"netsky/home"
	"netsky/internal/advice"
	"netsky/internal/proc"
)

// AskedFile holds the request to join of a home that is in no team yet.
const AskedFile = "state/link/asked.json"

const (
	// askEvery is how often a host asks what became of its request.
	askEvery = 500 * time.Millisecond
	// answerWithin is how long the owner's host may take to answer.
	answerWithin = 10 * time.Second
)

// asked is a request to join. With it, who was killed asks on.
type asked struct {
	Name   string    `json:"name"`
	Server Server    `json:"server"`
	Nonce  []byte    `json:"nonce"`
	Offer  offer     `json:"offer"`
	At     time.Time `json:"at"`
}

// An Applicant is a host that joins a team.
type Applicant struct {
	Home   home.Dir
	Name   string
	Server Server
	Conn   *nats.Conn // with JoinOptions
	// Show is told the code that the owner has to compare, and whose host to look at.
	Show func(code, owner string)
	// Confirm asks, once the owner's host says that it has approved, whether the owner has: who is
	// between both hosts can say so, too, but can't make the owner's host show that code.
	Confirm func(code, owner string) (bool, error)

	key Key
}

var (
	// ErrRejected is returned when the owner does not want the host in the team.
	ErrRejected = errors.New("the owner has rejected this host")
	// ErrUnconfirmed is returned when nobody confirms that the owner has approved the code.
	ErrUnconfirmed = errors.New("nobody has approved the code on the owner's host, so somebody is between it and this one; nothing was done")
)

// Join asks the owner's host to let this host into its team, and waits until the owner has
// answered. Who ended or was killed while it waited, and joins again under the same name at
// the same server, goes on with the same request.
func (a *Applicant) Join(ctx context.Context) (Self, error) {
	if !agent.IsHost(a.Name) {
		return Self{}, fmt.Errorf("host %.40q: its name must be [a-z][a-z0-9-]*, at most %d characters", a.Name, agent.MaxHost)
	}
	if self, err := a.none(); err != nil {
		return self, err
	}
	key, err := MakeKey(a.Home)
	if err != nil {
		return Self{}, err
	}
	a.key = key
	q, err := a.last()
	if err != nil {
		return Self{}, err
	}
	var doc []byte
	if q.Name != "" {
		doc, err = a.wait(ctx, q)
	}
	if q.Name == "" || errors.Is(err, errOver) {
		if q, err = a.ask(ctx); err == nil {
			doc, err = a.wait(ctx, q)
		}
	}
	if errors.Is(err, ErrRejected) || errors.Is(err, errOver) || errors.As(err, new(refusedError)) {
		err = errors.Join(err, a.Home.Remove(AskedFile))
	}
	if err != nil {
		return Self{}, err
	}
	return a.enter(q, doc)
}

// none returns an error, and the team, if this host is in one.
func (a *Applicant) none() (Self, error) {
	self, err := LoadSelf(a.Home)
	switch {
	case errors.Is(err, ErrNone):
		return self, nil
	case err == nil:
		err = advice.With(fmt.Errorf("this host is in a team already, that of %s, as %s", self.Owner, self.Name), "`netsky link leave` leaves it")
	}
	return self, err
}

// errOver is returned for a request that the owner's host does not have, or no longer.
var errOver = fmt.Errorf("the owner did not approve it within %.0f minutes, or the owner's host has lost the request", JoinWithin.Minutes())

// A refusedError is returned for a request that the team can't take as it is.
type refusedError struct{ error }

func (e refusedError) Unwrap() error { return e.error }

// last returns the request that this host has made before, if it is the same.
func (a *Applicant) last() (q asked, err error) {
	q, err = home.Load[asked](a.Home, AskedFile)
	if errors.Is(err, fs.ErrNotExist) {
		return asked{}, nil
	}
	if err != nil || q.Offer.check() != nil || len(q.Nonce) != nonceSize || q.Name != a.Name || q.Server != a.Server {
		return asked{}, a.Home.Remove(AskedFile) // at worst the owner is asked twice
	}
	return q, nil
}

func (a *Applicant) transcript(q asked) transcript {
	return transcript{offer: q.Offer, Key: a.key.Public(), Name: q.Name, Fingerprint: q.Server.Fingerprint, NonceW: q.Nonce}
}

// ask makes a request, which is written down before the owner's host has it.
func (a *Applicant) ask(ctx context.Context) (q asked, err error) {
	q = asked{Name: a.Name, Server: a.Server, Nonce: newNonce(), At: now()}
	commit := commitment(q.Nonce, a.key.Public(), q.Name, q.Server.Fingerprint)
	ans, err := a.sayOften(ctx, helloSubject, hello{Protocol, q.Name, commit, q.Server.Fingerprint != ""})
	if err != nil {
		return q, err
	}
	q.Offer = ans.Offer
	if err := q.Offer.check(); err != nil {
		return q, fmt.Errorf("the owner's host offers a team that can't be one: %w", err)
	}
	if err := a.Home.Save(AskedFile, q, true); err != nil {
		return q, err
	}
	t := a.transcript(q)
	sig, err := a.key.Sign(t.proof())
	if err != nil {
		return q, err
	}
	ans, err = a.sayOften(ctx, revealSubject, reveal{Protocol, commit, a.key.Public(), q.Nonce, sig})
	if err == nil && ans.State != Pending && ans.State != Unknown { // Unknown: an earlier try was heard, perhaps
		err = fmt.Errorf("the owner's host answers %.20q", ans.State)
	}
	return q, err
}

// wait returns the team document once the owner has approved. An owner's host that does not
// answer may come back.
func (a *Applicant) wait(ctx context.Context, q asked) ([]byte, error) {
	t := a.transcript(q)
	shown := false
	for {
		ans, err := a.say(ctx, waitSubject, wait{Protocol, a.key.Public(), t.id()})
		var away awayError
		switch {
		case err != nil && !errors.As(err, &away):
			return nil, err
		case ans.State == Rejected:
			return nil, ErrRejected
		case ans.State == Approved:
			return ans.Document, nil
		case ans.State == Unknown, time.Since(q.At) > JoinWithin+time.Minute:
			return nil, errOver
		}
		if err == nil && !shown {
			a.Show(t.code(), q.Offer.Owner)
			shown = true
		}
		if err := proc.Sleep(ctx, askEvery); err != nil {
			return nil, err
		}
	}
}

// enter makes this host one of the team, if its document is what the code was about.
func (a *Applicant) enter(q asked, doc []byte) (s Self, err error) {
	code := a.transcript(q).code()
	t, err := parse(doc, q.Offer.OwnerKey)
	if err != nil {
		return s, fmt.Errorf("the team document: %w", err)
	}
	me, ok := t.Holder(a.key.Public())
	if !ok || me.Name != q.Name || t.ID != q.Offer.Team || t.Owner != q.Offer.Owner {
		return s, errors.New("the team document: is not of the team that was asked for, or this host is not in it")
	}
	if yes, err := a.Confirm(code, q.Offer.Owner); err != nil {
		return s, err
	} else if !yes {
		return s, errors.Join(ErrUnconfirmed, a.Home.Remove(AskedFile))
	}
	s = Self{Name: q.Name, Team: t.ID, Owner: t.Owner, OwnerKey: q.Offer.OwnerKey, Server: q.Server, Protocol: Protocol}
	err = locked(a.Home, func() error {
		if in, err := a.none(); err != nil && in != s { // meanwhile; the same may have been asked for twice
			return err
		}
		return enter(a.Home, s, func(Key) ([]byte, error) { return doc, nil }, a.key)
	})
	if err != nil {
		return s, err
	}
	return s, a.Home.Remove(AskedFile)
}

// An awayError is returned when the owner's host does not answer.
type awayError struct{ error }

func (e awayError) Unwrap() error { return e.error }

// sayOften is say for an owner's host that may be about to connect again, as it does when the
// team changes.
func (a *Applicant) sayOften(ctx context.Context, subject string, v any) (ans answer, err error) {
	for end := time.Now().Add(answerWithin); ; {
		ans, err = a.say(ctx, subject, v)
		if !errors.As(err, new(awayError)) || time.Now().After(end) {
			return ans, err
		}
		if err := proc.Sleep(ctx, askEvery); err != nil {
			return ans, err
		}
	}
}

// IsRemoved asks the owner's host whether it has removed the host with a public key from the
// team. The connection is one with JoinOptions.
func IsRemoved(ctx context.Context, nc *nats.Conn, key string) (bool, error) {
	a := Applicant{Conn: nc}
	ans, err := a.say(ctx, waitSubject, wait{Protocol: Protocol, Key: key})
	return ans.State == Removed, err
}

// say asks the owner's host something.
func (a *Applicant) say(ctx context.Context, subject string, v any) (ans answer, err error) {
	data, err := json.Marshal(v)
	if err != nil {
		return ans, err
	}
	within, stop := context.WithTimeout(ctx, answerWithin)
	defer stop()
	m, err := a.Conn.RequestWithContext(within, subject, data)
	switch {
	case ctx.Err() != nil:
		return ans, context.Cause(ctx)
	case err != nil:
		return ans, awayError{advice.With(fmt.Errorf("the owner's host does not answer at this server: %w", err), "see that its daemon runs, with `netsky link` there, and try again")}
	}
	p, err := readJoin[protocol](m.Data, 2*maxFile)
	switch {
	case err != nil:
		return ans, fmt.Errorf("the owner's host: is not understood: %w", err)
	case p.Protocol > Protocol:
		return ans, advice.With(fmt.Errorf("the owner's host speaks protocol %d, and this netsky %d", p.Protocol, Protocol), "update netsky here: `netsky self update`")
	case p.Protocol < Protocol:
		return ans, advice.With(fmt.Errorf("the owner's host speaks protocol %d, and this netsky %d", p.Protocol, Protocol), "update netsky on the owner's host: `netsky self update`")
	}
	switch ans, err = readJoin[answer](m.Data, 2*maxFile); {
	case err != nil:
		return ans, fmt.Errorf("the owner's host: is not understood: %w", err)
	case ans.State == Refused:
		return ans, refusedError{advice.With(fmt.Errorf("the owner's host: %s", plain(ans.Refused)), "if that is this host, from before it left, remove it on the owner's host with `netsky link remove NAME`; `netsky link join ADDRESS --name NAME` asks under another name, and after `netsky link leave` this host has another key")}
	case ans.Refused != "":
		return ans, fmt.Errorf("the owner's host: %s", plain(ans.Refused))
	}
	return ans, nil
}
