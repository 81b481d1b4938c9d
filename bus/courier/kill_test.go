package courier_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/rpc"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/courier"
	"netsky/bus/envelope"
	"netsky/home"
	"netsky/internal/testworld"
)

// A Door is the program as a server in another process reaches it.
type Door struct{ p *program }

// A Word is what comes back through the door.
type Word struct {
	Err       string
	Refused   bool
	Condition courier.Condition
	Holds     bool // or Ended
	End       agent.Event
}

func word(err error) (w Word) {
	if err != nil {
		w.Err, w.Refused = err.Error(), courier.Refused(err)
	}
	return w
}

func (d Door) Offer(o courier.Offer, w *Word) error {
	*w = word(d.p.Offer(context.Background(), o))
	return nil
}

func (d Door) Point(n int, w *Word) error {
	*w = word(d.p.Point(context.Background(), n))
	return nil
}

func (d Door) Interrupt(_ int, w *Word) error {
	*w = word(d.p.Interrupt(context.Background(), agent.Owner))
	return nil
}

func (d Door) State(_ int, w *Word) error {
	w.Condition = d.p.State(context.Background())
	return nil
}

func (d Door) Holds(id string, w *Word) (err error) {
	w.Holds, err = d.p.Holds(context.Background(), id)
	return err
}

func (d Door) Ended(of [2]string, w *Word) (err error) {
	w.End, w.Holds, err = d.p.Ended(context.Background(), of[0], of[1])
	return err
}

// A caller is the other side of the door.
type caller struct{ c *rpc.Client }

func (c caller) call(method string, arg any) (w Word, err error) {
	if err := c.c.Call("Door."+method, arg, &w); err != nil {
		return w, err
	}
	if w.Refused {
		return w, refusedError(w.Err)
	}
	if w.Err != "" {
		return w, errors.New(w.Err)
	}
	return w, nil
}

func (c caller) Traits() courier.Traits { return (*program)(nil).Traits() }

func (c caller) Offer(_ context.Context, o courier.Offer) error {
	_, err := c.call("Offer", o)
	return err
}

func (c caller) Point(_ context.Context, n int) error {
	_, err := c.call("Point", n)
	return err
}

func (c caller) Interrupt(context.Context, agent.ID) error {
	_, err := c.call("Interrupt", 0)
	return err
}

func (c caller) State(context.Context) courier.Condition {
	w, err := c.call("State", 0)
	if err != nil {
		w.Condition.State = agent.Unknown
	}
	return w.Condition
}

func (c caller) Holds(_ context.Context, id string) (bool, error) {
	w, err := c.call("Holds", id)
	return w.Holds, err
}

func (c caller) Ended(_ context.Context, id, turn string) (agent.Event, bool, error) {
	w, err := c.call("Ended", [2]string{id, turn})
	return w.End, w.Holds, err
}

func (c caller) Account() (string, time.Time) { return account, time.Time{} }

// killedLog is what servers in other processes report.
const killedLog = "logs/courier.log"

// courierProcess is the server that the tests kill.
func courierProcess(socket string) int {
	err := func() error {
		client, err := rpc.Dial("unix", socket)
		if err != nil {
			return err
		}
		home, err := home.At(os.Getenv("NETSKY_HOME"))
		if err != nil {
			return err
		}
		b := bus.New(home, bus.Options{})
		events, err := courier.Events(context.Background(), home, b, me)
		if err != nil {
			return err
		}
		n := 0
		courier.SetStep(func(name string) {
			n++
			if at := os.Getenv("COURIER_KILL"); name == at || strconv.Itoa(n) == at {
				syscall.Kill(os.Getpid(), syscall.SIGKILL)
			}
		})
		log, err := home.OpenAppend(killedLog)
		if err != nil {
			return err
		}
		m := courier.New(courier.Options{
			Agent: me, Start: os.Getenv("NETSKY_START"), Home: home, Bus: b, Runtime: caller{client}, Events: events,
			Log: func(what string, err error) {
				fmt.Fprintln(log, time.Now().Format("15:04:05.000"), os.Getpid(), what, err)
			},
		})
		return m.Run(context.Background())
	}()
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// mustDoor lets servers in other processes reach the program. gone reports whether the
// program has heard all that dead ones had sent.
func (p *post) mustDoor() (socket string, gone func() bool) {
	p.Helper()
	socket = p.home.Path("run", "door")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		p.Fatal(err)
	}
	p.Cleanup(func() { listener.Close() })
	server := rpc.NewServer()
	if err := server.RegisterName("Door", Door{p.program}); err != nil {
		p.Fatal(err)
	}
	var served atomic.Int32
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			served.Add(1)
			go func() {
				defer served.Add(-1)
				server.ServeConn(conn)
			}()
		}
	}()
	return socket, func() bool { return served.Load() == 0 }
}

// mustCourier starts a server in a process of its own.
// It kills itself at the named step, or that of the number, if one is given.
func (p *post) mustCourier(socket string, at ...string) (kill func()) {
	p.Helper()
	cmd := p.mustProcess(socket, at...)
	return func() {
		cmd.Process.Kill()
		cmd.Wait()
	}
}

func (p *post) mustProcess(socket string, at ...string) *exec.Cmd {
	p.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "COURIER_DOOR="+socket, "NETSKY_HOME="+p.home.Root(), "NETSKY_START="+p.program.startID(),
		"COURIER_KILL="+strings.Join(at, ""))
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		p.Fatal(err)
	}
	return cmd
}

func (p *program) startID() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.start
}

// die is a kill -9 of the program and its start with the old conversation: what
// was queued is gone and, with luck, the last text of the turn that runs.
func (p *program) die(tb testing.TB) {
	tb.Helper()
	p.mu.Lock()
	p.queue, p.last, p.bucket = nil, "", 30
	if p.breakOff != nil {
		close(p.breakOff)
		p.breakOff = nil
	}
	if n := len(p.texts); p.fresh > 0 && rand.IntN(2) == 0 {
		ids, _ := envelope.RenderedIDs(p.texts[n-1])
		p.texts = p.texts[:n-1]
		p.taken = p.taken[:len(p.taken)-len(ids)]
		for _, id := range ids {
			delete(p.held, id)
			delete(p.took, id)
		}
	}
	p.mu.Unlock()
	p.settle(tb)
}

// settle waits until nothing goes on, as whoever restarts the program does, and
// gives it another start.
func (p *program) settle(tb testing.TB) {
	tb.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	idle := func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.state == agent.Idle && len(p.queue) == 0
	}
	for until := time.Now().Add(testworld.Patience); !idle(); <-tick.C {
		if time.Now().After(until) {
			tb.Fatal("the program does not become idle")
		}
	}
	p.mu.Lock()
	p.start = agent.NewStart()
	p.last = ""
	p.mu.Unlock()
	p.mustNote(tb, agent.Event{Event: agent.EventSessionStart, Text: "resume"})
}

// TestKilledFilingWhatIsHeld: no hook has told of a message that the conversation holds,
// and the server that finds that out is killed while it files it.
func TestKilledFilingWhatIsHeld(t *testing.T) {
	t.Parallel()
	for _, step := range []string{"filed", "settled"} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			p := mustPost(t)
			p.program.muted = map[agent.EventKind]bool{agent.EventSeen: true, agent.EventPrompt: true, agent.EventStop: true}
			p.program.mustStart(t)
			socket, gone := p.mustDoor()
			kill := p.mustCourier(socket)
			p.drop(envelope.Envelope{ID: "q-0", From: agent.Root, To: me, Text: "hello"})
			testworld.Wait(p, "the message is taken", func() bool { return len(p.program.effects()) == 1 })
			kill()
			testworld.Wait(p, "what the dead server had sent", gone)
			if p.count(me, bus.Claimed) != 1 {
				t.Fatal("it was filed before it was known to be held")
			}
			p.program.settle(t)
			p.mustCourier(socket, step)
			testworld.Wait(p, "it is filed", func() bool { return p.count(me, bus.Delivered) == 1 || step == "settled" && p.owed() == "" })
			testworld.Wait(p, "the second server has died", gone)
			p.program.settle(t)
			defer p.mustCourier(socket)()
			testworld.Wait(p, "it is filed and nothing owed", func() bool { return p.count(me, bus.Delivered) == 1 && p.owed() == "" })
			if n := len(p.program.effects()); n != 1 {
				t.Errorf("%d effects", n)
			}
		})
	}
}

// TestKilled: the server is killed at random moments, and half of the times the
// program with it; some of its hooks are killed, too. Every message has its effect
// once, and what wants an answer has one, which was said to it.
func TestKilled(t *testing.T) {
	t.Parallel()
	const many, kills = 300, 25
	p := mustPost(t)
	defer func() {
		if log, err := p.home.ReadFile(killedLog, 1<<20); err == nil && t.Failed() {
			t.Logf("the servers' log:\n%s", log)
		}
	}()
	p.program.turn = func(text string) (time.Duration, string, error) {
		ids, _ := envelope.RenderedIDs(text)
		words := strings.Join(ids, ", ")
		if strings.Contains(text, "Not answered yet") {
			words += text
		}
		return scaled(time.Duration(rand.IntN(10_000)) * time.Millisecond), "to " + words + ".", nil
	}
	p.program.mustStart(t)
	socket, gone := p.mustDoor()
	want := make(map[string]int)
	// A brake lets only 60 answers a minute pass from one to another.
	senders := []agent.ID{agent.Root, agent.Clone(2), agent.Infinity, agent.Root, agent.Clone(2), agent.Infinity, agent.Owner}
	send := func(n int) {
		for range n {
			from := senders[rand.IntN(len(senders))]
			p.drop(envelope.Envelope{ID: fmt.Sprintf("%s-%d", from, want[string(from)]), From: from, To: me, Text: size(4000)})
			want[string(from)]++
		}
	}
	for range kills {
		kill := p.mustCourier(socket)
		testworld.Wait(p, "the server works", func() bool {
			r, err := p.home.LoadReport(me)
			return err == nil && r.Start == p.program.startID()
		})
		for range 4 {
			send(many / kills / 4)
			p.program.set(func() {
				for _, kind := range []agent.EventKind{agent.EventSeen, agent.EventPrompt, agent.EventStop} {
					p.program.muted[kind] = rand.IntN(4) == 0
				}
			})
			pause := time.NewTimer(time.Duration(rand.IntN(120)) * time.Millisecond)
			<-pause.C
		}
		kill()
		testworld.Wait(p, "what the dead server had sent", gone)
		if rand.IntN(2) == 0 {
			p.program.settle(t)
		} else {
			p.program.die(t)
		}
	}
	p.program.set(func() { clear(p.program.muted) })
	defer p.mustCourier(socket)()
	testworld.Wait(p, "all of them filed", func() bool { return p.count(me, bus.Delivered) == many })
	testworld.Wait(p, "nothing owed", func() bool { return p.owed() == "" })
	effects := p.program.effects()
	once := make(map[string]bool)
	for _, id := range effects {
		if once[id] {
			t.Errorf("%s had its effect twice", id)
		}
		once[id] = true
	}
	for sender, n := range want {
		for i := range n {
			id := fmt.Sprintf("%s-%d", sender, i)
			if !once[id] {
				t.Errorf("%s had no effect", id)
			}
			answers := p.answers(agent.ID(sender), id)
			if wants := sender == string(agent.Owner); wants && len(answers) != 1 || !wants && len(answers) != 0 {
				t.Errorf("%d answers to %s", len(answers), id)
			} else if wants && (answers[0].Kind != envelope.KindReply || !regexp.MustCompile(`\b`+id+`\b`).MatchString(answers[0].Text)) {
				t.Errorf("%s: answered by a %s %.300q", id, answers[0].Kind, answers[0].Text)
			}
		}
	}
	restarts := 0
	for _, text := range p.program.texts {
		if strings.Contains(text, "interruption") || strings.Contains(text, "cut off your turn") {
			restarts++
		}
	}
	t.Logf("%d texts, %d of them about a restart", len(p.program.texts), restarts)
}
