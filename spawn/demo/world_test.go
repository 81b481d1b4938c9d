package demo_test

import (
	"bytes"
	"context"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/home"
	"netsky/internal/testworld"
	"netsky/spawn/demo"
)

// patience is how long a test waits for what must come.
const patience = time.Minute

// A world is a home with mailboxes, whose owner reads the mail.
type world struct {
	testing.TB
	ctx   context.Context
	home  home.Dir
	bus   *bus.Bus
	owner *bus.Receiver
}

func mustWorld(tb testing.TB, ids ...agent.ID) *world {
	tb.Helper()
	home := testworld.Home(tb)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	tb.Cleanup(cancel)
	w := &world{TB: tb, ctx: ctx, home: home, bus: testworld.Bus(tb, home, append(ids, agent.Owner, agent.Root)...)}
	w.owner = testworld.Got(w.bus.Receive(ctx, agent.Owner, bus.ReceiveOptions{}))(tb)
	tb.Cleanup(func() { w.owner.Close() })
	return w
}

// A screen is a pane whose text can be waited for.
type screen struct {
	mu   sync.Mutex
	text bytes.Buffer
	news chan struct{} // one place: what is waiting looks at all of it
}

func newScreen() *screen { return &screen{news: make(chan struct{}, 1)} }

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text.Write(p)
	select {
	case s.news <- struct{}{}:
	default:
	}
	return len(p), nil
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// A player is a demo at work.
type player struct {
	*world
	id    agent.ID
	start string
	keys  io.WriteCloser
	pane  *screen
	stop  context.CancelFunc
	done  chan error
}

// play runs a demo in this process until the test ends.
func (w *world) play(id agent.ID) *player {
	w.Helper()
	in, keys := io.Pipe()
	ctx, stop := context.WithCancel(w.ctx)
	p := &player{world: w, id: id, start: agent.NewStart(), keys: keys, pane: newScreen(), stop: stop, done: make(chan error, 1)}
	go func() {
		p.done <- demo.Run(ctx, demo.Options{Home: w.home, Agent: id, Start: p.start, Bus: w.bus, In: in, Out: p.pane})
	}()
	w.Cleanup(func() {
		stop()
		keys.Close()
		p.end()
	})
	return p
}

// end waits until the demo has ended and says how.
func (p *player) end() error {
	p.Helper()
	select {
	case err := <-p.done:
		p.done <- err
		return err
	case <-time.After(patience):
		p.Fatalf("%s does not end; its pane:\n%s", p.id, p.pane)
		return nil
	}
}

func (p *player) typeIn(text string) {
	p.Helper()
	testworld.Got(io.WriteString(p.keys, text))(p)
}

// shows waits until the pane holds the text.
func (p *player) shows(text string) {
	p.Helper()
	for !strings.Contains(p.pane.String(), text) {
		select {
		case <-p.pane.news:
		case <-p.ctx.Done():
			p.Fatalf("%s does not show %q; its pane:\n%s", p.id, text, p.pane)
		}
	}
}

// send puts a message of the owner's into a mailbox and returns its id.
func (w *world) send(e envelope.Envelope) string {
	w.Helper()
	if e.From == "" {
		e.From = agent.Owner
	}
	return testworld.Got(w.bus.Send(w.ctx, e))(w).ID
}

func (w *world) tell(to agent.ID, text string) string {
	w.Helper()
	return w.send(envelope.Envelope{To: to, Text: text})
}

// next is the owner's next mail, but for the bus's own words on its brakes.
func (w *world) next() envelope.Envelope {
	w.Helper()
	for {
		d, err := w.owner.Next(w.ctx)
		testworld.Must(w, err, "the owner gets nothing")
		testworld.Must(w, d.Confirm())
		if e := d.Envelope(); e.InReplyTo != "" {
			return e
		}
	}
}

// answered checks that the owner's next mail is an answer to that message.
func (w *world) answered(id string, kind envelope.Kind, words string) envelope.Envelope {
	w.Helper()
	e := w.next()
	if e.InReplyTo != id || e.Kind != kind || !strings.Contains(e.Text, words) {
		w.Fatalf("the owner got %q %q to %s, want %q with %q to %s", e.Kind, e.Text, e.InReplyTo, kind, words, id)
	}
	return e
}

// report is the agent's state file. The pane shows what a change of state is about
// after the file is written, so a test that has seen the one may read the other.
func (w *world) report(id agent.ID) agent.Report {
	w.Helper()
	return testworld.Got(w.home.LoadReport(id))(w)
}

// rests waits until the agent is idle with that detail.
func (w *world) rests(id agent.ID, detail string) {
	w.Helper()
	often := time.NewTicker(time.Millisecond)
	defer often.Stop()
	for {
		got := w.report(id)
		if got.State == agent.Idle && got.Detail == detail {
			return
		}
		select {
		case <-often.C:
		case <-w.ctx.Done():
			w.Fatalf("%s is %+v, want idle with %q", id, got, detail)
		}
	}
}
