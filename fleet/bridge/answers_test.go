//go:build live

package bridge_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"netsky/agent"
	"netsky/attention"
	"netsky/attention/approve"
	"netsky/bus"
	"netsky/dashboard"
	"netsky/dashboard/access"
	"netsky/fleet"
	"netsky/fleet/bridge"
	"netsky/home"
	"netsky/internal/messagesim"
	"netsky/internal/testworld"
	"netsky/phone"
	"netsky/phone/chat"
	"netsky/phone/record"
	"netsky/spawn"
	"netsky/store"
	"netsky/tmux"
	"netsky/view"
)

// Two hundred approvals are answered at random: by a text, by a reaction, in a terminal and on
// the page, some of them at once in two ways, some withdrawn before; and the bridge dies at
// random between its steps and starts again. Each takes effect once, with the winner's answer;
// nobody is told of a success that lost; who lost is told who won; and the phone is told after
// the effect. The askers are processes; desk, bridge, records and dashboard are the real ones.
func TestTwoHundredApprovals(t *testing.T) {
	const homes, each = 8, 25
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	for n := range homes {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			w := newOwner(t, rand.New(rand.NewPCG(seed, uint64(n))))
			slots := make(chan struct{}, 3) // more than five at once would be a list
			var all sync.WaitGroup
			for i := range each {
				slots <- struct{}{}
				p := w.plan(i)
				all.Go(func() {
					defer func() { <-slots }()
					w.answer(p)
				})
			}
			all.Wait()
			w.check()
			t.Logf("the bridge died %d times; won: %v", w.deaths.Load(), w.won)
		})
	}
}

// A plan is how one request is answered.
type plan struct {
	i         int
	withdrawn bool
	ways      []string
	allow     []bool
	pause     []time.Duration
}

// An attempt is one answer, and what its giver was told.
type attempt struct {
	way   string
	code  string
	i     int
	allow bool
	guid  string // of the text or reaction
	ok    bool
	told  string
	at    int64 // ms, when
}

// An owner answers with everything at hand.
type owner struct {
	t      *testing.T
	home   home.Dir
	db     *store.DB
	wire   *messagesim.Wire
	asker  *asker
	desk   approve.Desk
	base   string
	token  string
	deaths atomic.Int32
	won    map[string]int

	mu        sync.Mutex // guards the fields below
	rand      *rand.Rand
	withdrawn map[int]bool
	attempts  []attempt
}

// A warner fails the test by what a deed warns of.
type warner struct{ t *testing.T }

func (warner) Ask(string) (string, error) { return "", fleet.ErrNobody }
func (warner) Step(fleet.Step)            {}
func (w warner) Warn(err error)           { w.t.Error(err) }

func newOwner(t *testing.T, r *rand.Rand) *owner {
	t.Helper()
	w := &owner{t: t, home: testworld.FastHome(t), wire: messagesim.NewWire(), rand: r, withdrawn: map[int]bool{}, won: map[string]int{}}
	var err error
	if w.db, err = store.Open(t.Context(), w.home); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.db.Close() })
	if _, err := (record.Records{DB: w.db}).Open(t.Context(), "test", "0", 0, time.Now()); err != nil { // reading has begun
		t.Fatal(err)
	}
	b := testworld.Bus(t, w.home, agent.Root, "agent1", agent.Owner)
	w.desk = approve.Desk{Home: w.home, Bus: b, Warn: func(err error) { t.Error(err) }}
	l := spawn.New(spawn.Site{Home: w.home, Bus: b, Journal: store.NewJournal(w.home), Tmux: &tmux.Server{Socket: w.home.Path("run/s")}})
	t.Cleanup(func() { l.Journal.Close() })
	w.serve(b)
	w.bridge(b, bridge.Desk{Fleet: &fleet.Fleet{Home: w.home, Launcher: l, Actor: agent.Owner, UI: warner{t}, Runtimes: map[string]spawn.Runtime{}}})
	w.asker = startAsker(t, w.home)
	return w
}

// page takes the answers that are given on the page, as the daemon's desk does.
type page struct{ approve.Desk }

func (p page) Answer(ctx context.Context, n attention.Need, allow bool) (agent.Approval, error) {
	return p.Desk.Answer(ctx, n.Code, agent.Answer{Allow: allow, By: approve.InDashboard})
}

type nobody struct{}

func (nobody) Agents(context.Context) ([]view.Agent, error) { return nil, nil }

func (w *owner) serve(b *bus.Bus) {
	w.t.Helper()
	var err error
	if w.token, err = access.Token(w.home); err != nil {
		w.t.Fatal(err)
	}
	s, err := dashboard.New(dashboard.Options{
		Home: w.home, Records: func() (dashboard.Reader, error) { return w.db, nil }, Agents: nobody{}, Bus: b, Token: w.token, Version: "v1", Desk: page{w.desk},
	})
	testworld.Must(w.t, err)
	at, err := s.Listen(w.t.Context(), "127.0.0.1:0")
	testworld.Must(w.t, err)
	w.base = "http://" + at.Addr().String()
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, at) }()
	w.t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			w.t.Error(err)
		}
	})
}

// bridge runs bridges, each until it dies at one of its steps, or the test ends.
func (w *owner) bridge(b *bus.Bus, desk phone.Desk) {
	all, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	run := func() error {
		ctx, die := context.WithCancel(all)
		defer die()
		return phone.New(phone.Options{
			Home: w.home, Bus: b, Records: func() *store.DB { return w.db }, Transport: w.wire, Gate: &messagesim.Gate{}, Desk: desk, SelfChat: true,
			To: func() (chat.Chat, error) { return messagesim.Mine, nil }, Via: "imessage", Pace: phone.Pace{Minute: 10_000, Hour: 10_000}, Look: 20 * time.Millisecond,
			Shown: func(context.Context, string) (bool, error) { return false, nil }, Log: slog.New(slog.DiscardHandler),
			Step: func(string) {
				if all.Err() == nil && w.chance(0.06) {
					die()
					runtime.Goexit()
				}
			},
		}).Run(ctx)
	}
	go func() {
		defer close(ended)
		for all.Err() == nil {
			if err := run(); err != nil && !errors.Is(err, context.Canceled) {
				w.t.Errorf("bridge: %v", err)
			}
			w.deaths.Add(1)
		}
	}()
	w.t.Cleanup(func() { stop(); <-ended })
}

func (w *owner) chance(p float64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rand.Float64() < p
}

func (w *owner) plan(i int) plan {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := plan{i: i, withdrawn: w.rand.IntN(10) == 0}
	ways := []string{"text", "reaction", "terminal", "page"}
	if i > 15 { // twenty texts within a minute rest a chat; reactions don't
		ways = ways[1:]
	}
	w.rand.Shuffle(len(ways), func(a, b int) { ways[a], ways[b] = ways[b], ways[a] })
	for _, way := range ways[:1+w.rand.IntN(2)] {
		p.ways, p.allow = append(p.ways, way), append(p.allow, w.rand.IntN(2) == 0)
		p.pause = append(p.pause, time.Duration(w.rand.IntN(4)*w.rand.IntN(20))*time.Millisecond)
	}
	return p
}

// answer has one request asked, answers it as planned, and waits for its effect.
func (w *owner) answer(p plan) {
	w.asker.says("ask", p.i)
	var q agent.Approval
	shown := ""
	if !testworld.Until(func() (ok bool) { q, ok = w.asker.asked(p.i); return ok }) ||
		!testworld.Until(func() bool { shown = w.wire.GUIDOf("or no " + q.Code); return shown != "" }) {
		w.t.Errorf("request %d was not asked or not texted: %q", p.i, w.wire.Texts())
		return
	}
	n, _ := attention.Find(attention.List(attention.Sources{Approvals: []agent.Approval{q}}), q.Code)
	if p.withdrawn {
		w.asker.says("withdraw", p.i)
		testworld.Until(func() bool { _, ok := w.asker.asked(p.i); return !ok })
		w.mu.Lock()
		w.withdrawn[p.i] = true
		w.mu.Unlock()
	}
	var all sync.WaitGroup
	for k, way := range p.ways {
		all.Go(func() {
			time.Sleep(p.pause[k]) // so that now one and now the other is first
			a := attempt{way: way, code: q.Code, i: p.i, allow: p.allow[k]}
			w.give(&a, n, shown)
			w.mu.Lock()
			defer w.mu.Unlock()
			w.attempts = append(w.attempts, a)
		})
	}
	all.Wait()
	if !p.withdrawn && !testworld.Until(func() bool { return len(w.asker.effects(p.i)) > 0 }) {
		w.t.Errorf("request %d (%s), answered by %v, had no effect; said %q", p.i, q.Code, p.ways, w.wire.Texts())
	}
}

// give gives one answer.
func (w *owner) give(a *attempt, n attention.Need, shown string) {
	word := map[bool]string{true: "yes ", false: "no "}[a.allow]
	switch a.way {
	case "text":
		a.guid = w.wire.Put(chat.Message{Kind: chat.Text, Text: word + n.Code})
	case "reaction":
		a.guid = w.wire.Put(chat.Message{Kind: chat.Reaction, Reaction: map[bool]string{true: chat.Like, false: chat.Dislike}[a.allow], About: shown})
	case "terminal":
		_, err := w.desk.Answer(w.t.Context(), n.Code, agent.Answer{Allow: a.allow, By: "netsky approve"})
		if a.ok = err == nil; err != nil {
			a.told = err.Error()
		}
	case "page":
		body, _ := json.Marshal(map[string]string{"code": n.Code, "digest": n.Digest, "answer": map[bool]string{true: attention.Allow, false: attention.Deny}[a.allow]})
		r, err := http.NewRequestWithContext(w.t.Context(), "POST", w.base+"/api/approval-answer", strings.NewReader(string(body)))
		if err != nil {
			w.t.Error(err)
			return
		}
		r.Header.Set("Authorization", "Bearer "+w.token)
		r.Header.Set("Content-Type", "application/json")
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			w.t.Error(err)
			return
		}
		defer res.Body.Close()
		data, _ := io.ReadAll(res.Body)
		a.ok, a.told = res.StatusCode == http.StatusOK, string(data)
	}
}

// replies adds to the phone's attempts what they were told, and reports whether all were.
func (w *owner) replies() bool {
	rows, err := w.db.Pool().Query("SELECT about, text, began FROM phone_said WHERE kind = 'answer' AND state = 'sent'")
	if err != nil {
		w.t.Error(err)
		return true
	}
	defer rows.Close()
	got := map[string][]attempt{}
	for rows.Next() {
		var guid string
		var a attempt
		testworld.Equal(w.t, rows.Scan(&guid, &a.told, &a.at), nil)
		got[guid] = append(got[guid], a)
	}
	for i := range w.attempts {
		a := &w.attempts[i]
		if a.guid == "" {
			continue
		}
		list := got[a.guid]
		if len(list) == 0 {
			return false
		}
		if len(list) > 1 {
			w.t.Errorf("%s was answered %d times", a.guid, len(list))
		}
		a.told, a.at = list[0].told, list[0].at
		a.ok = strings.HasPrefix(a.told, "[netsky] "+a.code+": ")
	}
	return true
}

func (w *owner) check() {
	w.t.Helper()
	testworld.WaitOr(w.t, w.replies, func() string {
		return fmt.Sprintf("not every text was answered: %+v; said %q", w.attempts, w.wire.Texts())
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	slices.SortFunc(w.attempts, func(a, b attempt) int { return a.i - b.i })
	winners := map[int]int{}
	for _, a := range w.attempts {
		list := w.asker.effects(a.i)
		if w.withdrawn[a.i] {
			if len(list) != 0 || a.ok || !strings.Contains(a.told, "withdrawn") {
				w.t.Errorf("withdrawn, %d effects, and told %+v", len(list), a)
			}
			continue
		}
		if len(list) != 1 {
			w.t.Errorf("%d effects of %+v", len(list), a)
			continue
		}
		e := list[0]
		by := map[string]string{"text": fleet.ByPhone, "reaction": fleet.ByPhone, "terminal": "netsky approve", "page": approve.InDashboard}[a.way]
		switch {
		case a.ok && (e.By != by || e.Allow != a.allow):
			w.t.Errorf("told that it won, but the effect is %+v: %+v", e, a)
		case !a.ok && !told(a.told, e):
			w.t.Errorf("not told that the effect is %+v: %+v", e, a)
		case a.guid != "" && strings.Contains(a.told, "read"):
			w.t.Errorf("read, and told otherwise: %+v", a)
		case a.guid != "" && a.i%2 == 1 && a.at < e.MS:
			w.t.Errorf("told %d ms before the effect: %+v", e.MS-a.at, a)
		}
		if a.ok {
			winners[a.i]++
			w.won[a.way]++
		}
	}
	for i, n := range winners {
		if n > 1 {
			w.t.Errorf("request %d was won %d times", i, n)
		}
	}
}
