package courier_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/rpc"
	"os"
	"os/exec"
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
