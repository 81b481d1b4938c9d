package team

import (
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"
	"golang.org/x/time/rate"

	"netsky/agent"
	"netsky/home"
)

const (
	// helloEvery keeps somebody in the middle from trying numbers until two codes are equal: within
	// JoinWithin that is some 300 tries of 100,000,000.
	helloEvery, helloBurst = 2 * time.Second, 10
	// answersEvery is for what hosts ask while they wait.
	answersEvery, answersBurst = 10 * time.Millisecond, 100
	// revealWithin is how long a host may take from its hello to its reveal.
	revealWithin = 30 * time.Second
	maxHellos    = 20
)

// A Registrar answers the hosts that ask to join, on the owner's host. Nothing that it has in
// memory is missed: a host whose hello was lost says it again.
type Registrar struct {
	home        home.Dir
	fingerprint func() string
	hellos      *rate.Limiter
	answers     *rate.Limiter

	mu   sync.Mutex
	open []opened // guarded by mu; the hellos, the oldest first
}

// opened is a hello that was answered.
type opened struct {
	hello
	nonce []byte // of the offer
	at    time.Time
}

// NewRegistrar returns that of the owner's host. fingerprint returns the SHA-256 of the server's
// own certificate, in hex, "" if it has none or an authority vouches for it.
func NewRegistrar(h home.Dir, fingerprint func() string) *Registrar {
	return &Registrar{
		home: h, fingerprint: fingerprint,
		hellos: rate.NewLimiter(rate.Every(helloEvery), helloBurst), answers: rate.NewLimiter(rate.Every(answersEvery), answersBurst),
	}
}

// Subscribe answers until the subscription ends.
func (g *Registrar) Subscribe(nc *nats.Conn) (*nats.Subscription, error) {
	sub, err := nc.Subscribe(JoinSubject+".*", g.Handle)
	if err != nil {
		return nil, err
	}
	return sub, sub.SetPendingLimits(answersBurst, answersBurst*maxJoin)
}

// Handle answers one message. What comes too fast gets no answer.
func (g *Registrar) Handle(m *nats.Msg) {
	if !IsInbox(m.Reply) || !g.answers.Allow() {
		return
	}
	a, err := g.answer(m.Subject, m.Data)
	if a.Protocol = Protocol; err != nil {
		a = answer{Protocol: Protocol, State: a.State, Refused: plain(err.Error())}
	}
	if data, err := json.Marshal(a); err == nil {
		_ = m.Respond(data) // who gets no answer asks again
	}
}

func (g *Registrar) answer(subject string, data []byte) (answer, error) {
	self, err := LoadOwner(g.home)
	if err != nil {
		return answer{}, errors.New("this is not the owner's host of a team")
	}
	v, err := readJoin[protocol](data, maxJoin)
	switch {
	case err != nil:
		return answer{}, fmt.Errorf("is not understood: %w", err)
	case v.Protocol != Protocol:
		return answer{}, nil // the host sees ours, and says what to do
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	switch subject {
	case helloSubject:
		return g.greet(self, data)
	case revealSubject:
		return g.ask(self, data)
	case waitSubject:
		return g.state(data)
	}
	return answer{}, fmt.Errorf("%.60q is not known here", subject)
}

// offer returns what a hello is answered with.
func (g *Registrar) offer(self Self, o opened) offer {
	return offer{Team: self.Team, Owner: self.Owner, OwnerKey: self.OwnerKey, Nonce: o.nonce}
}

func (g *Registrar) greet(self Self, data []byte) (a answer, err error) {
	h, err := readJoin[hello](data, maxJoin)
	switch {
	case err != nil:
		return a, fmt.Errorf("hello: %w", err)
	case !agent.IsHost(h.Name):
		return a, fmt.Errorf("name %.40q: must be [a-z][a-z0-9-]*, at most %d characters", h.Name, agent.MaxHost)
	case len(h.Commit) != nonceSize:
		return a, fmt.Errorf("hello: a commitment of %d bytes", len(h.Commit))
	case h.Pinned && g.fingerprint() == "":
		return a, errors.New("the server shows you a certificate of its own, and shows the owner's host none: somebody may be between you and it")
	}
	// A hello that is repeated gets the same answer.
	if o, ok := g.find(h.Commit); ok && o.hello.Name == h.Name && o.Pinned == h.Pinned {
		return answer{Offer: g.offer(self, o)}, nil
	}
	if len(g.open) >= maxHellos || !g.hellos.Allow() {
		return a, errors.New("too many hosts ask to join just now; try again in a minute")
	}
	o := opened{h, newNonce(), time.Now()}
	g.open = append(g.open, o)
	return answer{Offer: g.offer(self, o)}, nil
}

// find returns the hello with a commitment, and forgets those that are over.
func (g *Registrar) find(commit []byte) (o opened, ok bool) {
	g.open = slices.DeleteFunc(g.open, func(o opened) bool { return time.Since(o.at) > revealWithin })
	i := slices.IndexFunc(g.open, func(o opened) bool { return subtle.ConstantTimeCompare(o.Commit, commit) == 1 })
	if i < 0 {
		return o, false
	}
	return g.open[i], true
}

// ask makes the request of a host that has revealed what it committed itself to.
func (g *Registrar) ask(self Self, data []byte) (a answer, err error) {
	r, err := readJoin[reveal](data, maxJoin)
	if err != nil {
		return a, fmt.Errorf("reveal: %w", err)
	}
	o, ok := g.find(r.Commit)
	if !ok {
		return answer{State: Unknown}, nil
	}
	t := transcript{offer: g.offer(self, o), Key: r.Key, Name: o.Name, NonceW: r.Nonce}
	if o.Pinned {
		t.Fingerprint = g.fingerprint()
	}
	g.open = slices.DeleteFunc(g.open, func(p opened) bool { return subtle.ConstantTimeCompare(p.Commit, r.Commit) == 1 }) // one try
	if !r.opens(t) {
		return a, errors.New("what was said is not what the host had committed itself to: somebody may be between you and the owner's host")
	}
	q := Request{ID: t.id(), Code: t.code(), Name: t.Name, Key: t.Key, At: time.Now().UTC(), State: Pending}
	err = locked(g.home, func() error { return g.keep(&q) })
	if err == nil && q.State == Refused {
		err = errors.New(q.Reason)
	}
	return answer{State: q.State}, err
}

// keep writes a request, as one that is refused if the team can't take the host.
func (g *Registrar) keep(q *Request) error {
	if err := sweep(g.home); err != nil {
		return err
	}
	list, err := Requests(g.home)
	if err != nil {
		return err
	}
	own := slices.IndexFunc(list, func(r Request) bool { return r.Key == q.Key })
	if own >= 0 && list[own].State == Rejected {
		return fmt.Errorf("%s: the owner has rejected it; it can ask again at %s", q.Name, list[own].Until().Local().Format("15:04"))
	}
	waiting := slices.DeleteFunc(slices.Clone(list), func(r Request) bool { return r.State == Approved || r.Key == q.Key })
	if len(waiting) >= maxRequests {
		return fmt.Errorf("%d hosts wait for the owner already, which is the most; try again later", maxRequests)
	}
	t, err := Load(g.home)
	if err != nil {
		return err
	}
	if err := t.admits(Host{Name: q.Name, Key: q.Key, Role: Worker}); err != nil {
		q.State, q.Reason = Refused, err.Error()
	}
	return g.home.Save(requestFile(q.Key), q, true)
}

// state says what became of a request.
func (g *Registrar) state(data []byte) (a answer, err error) {
	w, err := readJoin[wait](data, maxJoin)
	if err != nil {
		return a, fmt.Errorf("wait: %w", err)
	}
	if !isKey(w.Key) {
		return a, fmt.Errorf("wait: key %.60q", w.Key)
	}
	r, err := loadRequest(g.home, w.Key)
	if err != nil || r.State == Unknown || r.ID != w.Request || len(w.Request) != hex.EncodedLen(32) {
		if t, terr := Load(g.home); terr == nil && w.Request == "" && slices.Contains(t.Removed, w.Key) {
			return answer{State: Removed}, nil
		}
		return answer{State: Unknown}, err
	}
	a.State = r.State
	switch r.State {
	case Refused:
		return a, errors.New(r.Reason)
	case Approved:
		t, doc, err := Document(g.home)
		if err != nil {
			return a, err
		}
		if _, ok := t.Holder(r.Key); !ok {
			return answer{State: Rejected}, nil // removed since
		}
		a.Document = doc
	}
	return a, nil
}
