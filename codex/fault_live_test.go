//go:build live

package codex_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"netsky/agent"
	"netsky/bus/courier"
	"netsky/codex"
	"netsky/codex/appserver"
	"netsky/internal/loopmodel/openai"
	"netsky/internal/testworld"
)

// configure replaces words of the configuration of the world's Codex.
func (w *world) configure(oldnew ...string) {
	w.Helper()
	config := w.home.Root() + ".codex/config.toml"
	text := testworld.Got(os.ReadFile(config))(w)
	testworld.Must(w, os.WriteFile(config, []byte(strings.NewReplacer(oldnew...).Replace(string(text))), 0o600))
}

// retries makes Codex retry as it does by default, or so often.
func (w *world) retries(request, stream string) {
	w.Helper()
	w.configure("request_max_retries = 0", request, "stream_max_retries = 0", stream)
}

func (w *world) mustRig() *rig {
	w.Helper()
	return w.mustRigWithin(w.serving(), time.Minute)
}

func (r *rig) offer(id, text string) {
	r.Helper()
	testworld.Must(r, r.Offer(r.ctx, courier.Offer{Text: text, About: []string{id}}))
}

// see returns the first event of a kind after n others, when it comes.
func (r *rig) see(n int, kinds ...agent.EventKind) (found courier.Event) {
	r.Helper()
	r.until(fmt.Sprint(kinds), func() bool {
		if s := r.State(r.ctx).Report; s.State == agent.Busy && s.Fault.Reason != "" && (len(r.faults) == 0 || r.faults[len(r.faults)-1] != s) {
			r.faults = append(r.faults, s)
		}
		r.events.Read(func(e courier.Event) { r.told = append(r.told, e) })
		for _, e := range r.told[min(n, len(r.told)):] {
			if slices.Contains(kinds, e.Event.Event) {
				found = e
				return true
			}
		}
		return false
	})
	return found
}

// Each fault of a vendor's, as Codex meets it, is told by its reason: in the event of the
// turn's end, in the report while Codex itself tries again, and in the conversation.
func TestFaults(t *testing.T) {
	t.Parallel()
	reset := time.Now().Add(time.Hour).Truncate(time.Second)
	tomorrow := time.Now().Add(30 * time.Hour).Truncate(time.Minute)
	limit := func(at time.Time, headers bool) *openai.Reply {
		r := openai.Fail(http.StatusTooManyRequests)
		r.Body = fmt.Sprintf(`{"error":{"type":"usage_limit_reached","message":"x","plan_type":"pro","resets_at":%d}}`, at.Unix())
		if r.Header["x-codex-primary-reset-at"] = fmt.Sprint(at.Unix()); !headers {
			r.Header = nil
		}
		return r
	}
	soon := openai.FailWith(429, "rate_limit_exceeded")
	soon.Header = map[string]string{"retry-after": "1"}
	for _, tt := range []struct {
		name     string
		reply    *openai.Reply
		retried  bool // with Codex's own number of retries
		want     agent.Reason
		until    time.Time
		slack    time.Duration // of until
		retrying string        // the detail while it lasts
		requests int
	}{
		{name: "401", reply: openai.Fail(401), retried: true, want: agent.Login, retrying: "retrying, attempt 5 of 5: not logged in", requests: 6},
		{name: "403", reply: openai.FailWith(403, "permission_error"), want: agent.Login, requests: 1},
		{name: "402", reply: openai.FailWith(402, "x"), want: agent.Billing, requests: 1},
		{name: "429 rate", reply: soon, retried: true, want: agent.RateLimit, retrying: "retrying, attempt 5 of 5: rate limit", requests: 6},
		{name: "429 usage", reply: limit(reset, true), want: agent.UsageLimit, until: reset, requests: 1},
		{name: "429 usage, no headers", reply: limit(reset, false), want: agent.UsageLimit, until: reset, slack: time.Minute, requests: 1},
		{name: "429 usage, no headers, tomorrow", reply: limit(tomorrow, false), want: agent.UsageLimit, until: tomorrow, slack: time.Minute, requests: 1},
		{name: "429 quota", reply: openai.FailWith(429, "insufficient_quota"), want: agent.Billing, requests: 1},
		{name: "429 plan", reply: openai.FailWith(429, "usage_not_included"), want: agent.Billing, requests: 1},
		{name: "503", reply: openai.FailWith(503, "server_is_overloaded"), want: agent.Overloaded, requests: 1},
		{name: "529", reply: openai.FailWith(529, "x"), want: agent.Overloaded, requests: 1},
		{name: "context", reply: openai.FailWith(400, "context_length_exceeded"), want: agent.ContextFull, requests: 1},
		{name: "invalid", reply: openai.FailWith(400, "invalid_request_error"), requests: 1},
		{name: "stream context", reply: &openai.Reply{Fails: "context_length_exceeded", Text: "x"}, want: agent.ContextFull, requests: 1},
		{name: "stream quota", reply: &openai.Reply{Fails: "insufficient_quota", Text: "x"}, want: agent.Billing, requests: 1},
		{name: "stream rate", reply: &openai.Reply{Fails: "rate_limit_exceeded", Text: "x"}, want: agent.RateLimit, requests: 1},
		{name: "stream overloaded", reply: &openai.Reply{Fails: "server_is_overloaded", Text: "x"}, want: agent.Overloaded, requests: 1},
		// A vendor's prose is not what decides.
		{name: "stream prose", reply: &openai.Reply{Fails: "x", Text: "You've hit your usage limit, try again at 2:29 AM."}, requests: 1},
		{name: "stream cut", reply: &openai.Reply{Cut: true}, retried: true, want: agent.Network, retrying: "retrying, attempt 5 of 5: vendor not reachable", requests: 6},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := mustWorld(t)
			if tt.retried {
				w.retries("", "") // Codex's own
			}
			w.model.Handle(func(openai.Request) *openai.Reply { return tt.reply })
			r := w.mustRig()
			r.takes()
			r.offer("m-1", "the task")
			e := r.see(0, agent.EventStop, agent.EventStopFailed)
			own, ok, err := r.Ended(w.ctx, "m-1", "")
			if err != nil || !ok || own.Event != agent.EventStopFailed || own.ID != e.ID {
				t.Errorf("Ended = %+v, %v, %v; the event was %+v", own, ok, err, e)
			}
			for name, got := range map[string]agent.Event{"event": e.Event, "Ended": own} {
				var f agent.Fault
				if got.Fault != nil {
					f = *got.Fault
				}
				if got.Event != agent.EventStopFailed || got.Error != "" || got.Text == "" || f.Reason != tt.want || f.Reason != "" && f.Text == "" {
					t.Errorf("%s: %+v, fault %+v, want %q", name, got, f, tt.want)
				}
				slack := tt.slack // the conversation has no more than Codex's sentence
				if name == "Ended" {
					slack = time.Minute
				}
				if d := f.Until().Sub(tt.until); d < 0 || d > slack {
					t.Errorf("%s: until %v, want %v", name, f.Until(), tt.until)
				}
				if want := w.account(); f.Reason.OfAccount() && f.Account != want || !f.Reason.OfAccount() && f.Account != "" {
					t.Errorf("%s: account %q, want %q or none", name, f.Account, want)
				}
			}
			testworld.Equal(t, len(w.model.Requests()), tt.requests, "requests")
			last := agent.Report{}
			if len(r.faults) > 0 {
				last = r.faults[len(r.faults)-1]
			}
			if last.Detail != tt.retrying || tt.retrying != "" && (last.Fault.Reason != tt.want || last.Attempt != 5 || last.Of != 5) {
				t.Errorf("while it lasted: %+v, want %q", r.faults, tt.retrying)
			}
			full := tt.want == agent.ContextFull
			r.until("the agent at rest", func() bool { return r.State(w.ctx).State != agent.Busy })
			if s := r.State(w.ctx); s.Takes == full || full != (s.State == agent.Blocked && s.Fault.Reason == agent.ContextFull) {
				t.Errorf("after it: %+v", s)
			}
		})
	}
}

// A vendor that fails is not asked thirty times for a message, which is what Codex does by
// itself: five for each of its own retries and five retries.
func TestFaultGivenUp(t *testing.T) {
	t.Parallel()
	for _, status := range []int{500, 503} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			t.Parallel()
			w := mustWorld(t)
			w.retries("", "")
			w.model.Handle(func(openai.Request) *openai.Reply { return openai.Fail(status) })
			r := w.mustRig()
			r.takes()
			r.offer("m-1", "the task")
			e := r.see(0, agent.EventStop, agent.EventStopFailed)
			if e.Fault == nil || e.Fault.Reason != agent.Overloaded || e.Fault.Account != w.account() || e.Fault.Text == "" || e.Error != "" {
				t.Errorf("the turn ended with %+v, fault %+v", e, e.Fault)
			}
			if n := len(w.model.Requests()); n > 12 {
				t.Errorf("%d requests", n)
			} else {
				t.Logf("%d requests", n)
			}
			r.takes()
		})
	}
}

// What the model begins in a turn is reported before the turn ends: it answers again. A
// report of a retry goes with its end.
func TestFaultPasses(t *testing.T) {
	t.Parallel()
	w := mustWorld(t)
	w.retries("", "")
	hold := make(chan struct{})
	n := 0
	w.model.Handle(func(q openai.Request) *openai.Reply {
		n++
		switch {
		case n < 3:
			return &openai.Reply{Cut: true}
		case n == 3:
			return &openai.Reply{Calls: []openai.Call{openai.Shell("true", false)}}
		}
		return &openai.Reply{Hold: hold, Text: "done"}
	})
	r := w.mustRig()
	r.takes()
	r.offer("m-1", "the task")
	if e := r.see(0, agent.EventTool, agent.EventStop); e.Tool != "shell" || e.ID == "" {
		t.Errorf("first = %+v, want the tool", e)
	}
	if len(r.faults) == 0 || r.faults[0].Attempt != 1 || r.faults[0].Fault.Reason != agent.Network {
		t.Errorf("while it lasted: %+v", r.faults)
	}
	if s := r.State(w.ctx); s.State != agent.Busy || s.Fault.Reason != "" || s.Attempt != 0 {
		t.Errorf("the turn goes on: %+v", s)
	}
	before := len(r.told)
	close(hold)
	if e := r.see(before, agent.EventTool, agent.EventStop); e.Event.Event != agent.EventTool || e.Tool != "" {
		t.Errorf("then %+v, want the first text", e)
	}
	if e := r.see(before, agent.EventStop); e.Text != "done" || e.Fault != nil {
		t.Errorf("end = %+v", e)
	}
}

// A door is an address on the loopback that refuses connections, until it leads to the
// world's model.
type door struct {
	*world
	fd   int
	addr string
}

func (w *world) mustDoor() *door {
	w.Helper()
	fd := testworld.Got(unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0))(w)
	unix.CloseOnExec(fd)
	testworld.Must(w, unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	at := testworld.Got(unix.Getsockname(fd))(w)
	return &door{world: w, fd: fd, addr: fmt.Sprintf("127.0.0.1:%d", at.(*unix.SockaddrInet4).Port)}
}

// open lets connections through, or with closing set closes each at once.
func (d *door) open(closing bool) {
	d.Helper()
	testworld.Must(d, unix.Listen(d.fd, 16))
	f := os.NewFile(uintptr(d.fd), d.addr)
	l, err := net.FileListener(f)
	f.Close()
	testworld.Must(d, err)
	d.Cleanup(func() { l.Close() })
	model := strings.TrimSuffix(strings.TrimPrefix(d.model.URL(), "http://"), "/v1")
	go func() {
		for { // until the listener is closed
			c, err := l.Accept()
			if err != nil {
				return
			}
			if closing {
				c.Close()
				continue
			}
			m, err := net.Dial("tcp", model)
			if err != nil {
				c.Close()
				continue
			}
			go func() { io.Copy(m, c); m.Close() }()
			go func() { io.Copy(c, m); c.Close() }()
		}
	}()
}

// Without a network Codex waits for one, and says so; then it goes on.
func TestFaultOffline(t *testing.T) {
	t.Parallel()
	w := mustWorld(t)
	d := w.mustDoor()
	w.configure("unbounded_connection_retries = false", "unbounded_connection_retries = true", w.model.URL(), "http://"+d.addr+"/v1")
	r := w.mustRig()
	r.takes()
	r.offer("m-1", "the task")
	r.until("the report", func() bool {
		s := r.State(w.ctx)
		return s.State == agent.Busy && s.Fault.Reason == agent.Network && s.Fault.Account == w.account() && s.Detail == "retrying: vendor not reachable"
	})
	d.open(false)
	if e := r.see(0, agent.EventStop, agent.EventStopFailed); e.Event.Event != agent.EventStop || !strings.Contains(e.Text, "the task") {
		t.Errorf("end = %+v", e)
	}
}

// A connection that is closed without an answer is no answer either.
func TestFaultClosed(t *testing.T) {
	t.Parallel()
	w := mustWorld(t)
	d := w.mustDoor()
	w.configure(w.model.URL(), "http://"+d.addr+"/v1")
	d.open(true)
	r := w.mustRig()
	r.takes()
	r.offer("m-1", "the task")
	if e := r.see(0, agent.EventStop, agent.EventStopFailed); e.Fault == nil || e.Fault.Reason != agent.Network {
		t.Errorf("end = %+v, fault %+v, want %s", e, e.Fault, agent.Network)
	}
}

// A full context keeps mail waiting until a while has passed; then one message may try.
func TestFaultContext(t *testing.T) {
	t.Parallel()
	w := mustWorld(t)
	full := true
	w.model.Handle(func(openai.Request) *openai.Reply {
		if !full {
			return nil
		}
		return openai.FailWith(400, "context_length_exceeded")
	})
	r := w.mustRig()
	r.takes()
	r.offer("m-1", "the task")
	r.see(0, agent.EventStopFailed)
	r.until("blocked", func() bool { return r.State(w.ctx).State == agent.Blocked })
	testworld.Equal(t, r.Offer(w.ctx, courier.Offer{Text: "another", About: []string{"m-2"}}), courier.ErrNotReady, "Offer")
	if s := r.State(w.ctx); !strings.HasPrefix(s.Detail, "context full: ") {
		t.Errorf("state %+v", s)
	}
	codex.WaitOut(r.Runtime)
	r.takes()
	full = false
	before := len(r.told)
	r.offer("m-2", "another")
	r.see(before, agent.EventStop)
	r.takes()
	if s := r.State(w.ctx); s.State != agent.Idle || s.Fault.Reason != "" {
		t.Errorf("after it: %+v", s)
	}
}

// A retry that succeeds is reported with the first that comes of it.
func TestThreadRetries(t *testing.T) {
	t.Parallel()
	w := mustWorld(t)
	w.retries("", "")
	n := 0
	w.model.Handle(func(openai.Request) *openai.Reply {
		n++
		return &openai.Reply{Cut: n == 1, Text: "fine"}
	})
	thread := w.mustThread(w.mustServer(), nil)
	events, stop := thread.Subscribe()
	defer stop()
	w.mustAsk(thread, "i1", "hello")
	var kinds []string
	for _, e := range w.mustEvent(events, appserver.TurnCompleted) {
		if e.Kind != appserver.TokenUsage {
			kinds = append(kinds, string(e.Kind))
		}
		if e.Kind == appserver.Retrying && (e.Fault.Reason != agent.Network || e.Attempt != 1 || e.Of != 5) {
			t.Errorf("%+v", e)
		}
	}
	const want = "turn_started accepted retrying resumed message turn_completed"
	testworld.Equal(t, strings.Join(kinds, " "), want, "events")
}
