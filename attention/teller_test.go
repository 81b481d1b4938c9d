package attention_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"netsky/agent"
	"netsky/attention"
	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/cost/breaker"
	"netsky/home"
	"netsky/internal/testworld"
	"netsky/store"
	"netsky/view"
	"netsky/watch/backoff"
	"netsky/watch/hang"
	"netsky/work/merge"
)

// A desk is a Teller with what it has said, in a bubble's time.
type desk struct {
	*testing.T
	home home.Dir
	bus  *bus.Bus
	o    attention.TellerOptions
	logs []string
	stop func()

	mu   sync.Mutex // guards the fields below
	list []attention.Seen
	text string // the mistake in netsky.toml
}

// sees changes what the teller sees of the agents; nil: nothing yet.
func (d *desk) sees(list ...attention.Seen) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.list = list
}

// mistake changes what is wrong in netsky.toml.
func (d *desk) mistake(text string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.text = text
}

// tells runs f with a desk in a bubble of its own.
func tells(t *testing.T, f func(d *desk)) {
	t.Helper()
	h := testworld.FastHome(t)
	synctest.Test(t, func(t *testing.T) {
		d := &desk{T: t, home: h, bus: testworld.Bus(t, h, agent.Owner)}
		d.o = attention.TellerOptions{Home: h, Bus: d.bus, Part: "watchdog", Log: slog.New(slog.DiscardHandler)}
		d.o.Agents = func() ([]attention.Seen, bool) {
			d.mu.Lock()
			defer d.mu.Unlock()
			return d.list, d.list != nil
		}
		d.o.Mistake = func() (text, then string) {
			d.mu.Lock()
			defer d.mu.Unlock()
			return d.text, "nothing starts"
		}
		d.o.Pressed = func(_ agent.ID, _, name string) bool { return name == "pressed" }
		d.o.Record = func(_ context.Context, ops ...store.Op) {
			for _, op := range ops {
				if l, ok := op.(store.AddLog); ok {
					d.logs = append(d.logs, strings.TrimSpace(string(l.Actor)+" "+l.Text))
				}
			}
		}
		f(d)
		if d.stop != nil {
			d.stop()
		}
	})
}

// again runs the teller, another one if one runs.
func (d *desk) again() {
	d.Helper()
	if d.stop != nil {
		d.stop()
	}
	ctx, cancel := context.WithCancel(d.Context())
	ended := make(chan bool)
	go func() {
		attention.NewTeller(d.o).Run(ctx)
		close(ended)
	}()
	d.stop = func() {
		cancel()
		<-ended
	}
}

// after lets the time pass, and compares the owner's mail then: each with its id's beginning, what became of it if
// that is not that it is new, and its first line.
func (d *desk) after(wait time.Duration, want ...string) {
	d.Helper()
	time.Sleep(wait)
	synctest.Wait()
	shown, err := home.ShownMail(d.home).Names()
	_, settled, serr := new(home.Shown).Names(d.home)
	list, lerr := d.bus.List(agent.Owner, bus.Inbox, 0)
	if err != nil || serr != nil || lerr != nil {
		d.Fatal(err, serr, lerr)
	}
	var got []string
	for _, e := range list {
		kind, _, _ := strings.Cut(e.Envelope.ID, "-")
		line, _, _ := strings.Cut(e.Envelope.Text, "\n")
		state := ""
		switch {
		case settled[e.Name]:
			state = "settled "
		case shown[e.Name]:
			state = "read "
		}
		got = append(got, fmt.Sprintf("%s: %s%s", kind, state, line))
	}
	slices.Sort(got) // of the same moment, any may be the first
	if slices.Sort(want); !slices.Equal(got, want) {
		d.Errorf("the owner has\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// A mistake in netsky.toml is told once it stays, once by its words, and counts as read when it is corrected.
func TestTellMistake(t *testing.T) {
	t.Parallel()
	tells(t, func(d *desk) {
		d.again()
		d.after(time.Minute)
		d.mistake("line 1: half a wo")
		d.after(3 * time.Second)
		d.mistake("line 1: a word")
		d.after(4 * time.Second)
		d.after(time.Minute, "config: line 1: a word")
		d.again() // another daemon tells nothing twice
		d.after(time.Minute, "config: line 1: a word")
		d.mistake("line 2")
		d.after(time.Minute, "config: read line 1: a word", "config: line 2")
		d.mistake("")
		d.after(time.Minute, "config: read line 1: a word", "config: read line 2")
		if want := []string{"line 1: a word; until it is corrected, nothing starts", "line 2; until it is corrected, nothing starts"}; !slices.Equal(d.logs, want) {
			t.Errorf("recorded %q", d.logs)
		}
	})
}

// Without the file of what was told, or with a damaged one, all that holds is told once more under its id; and what
// an earlier version kept is removed.
func TestTellForgetful(t *testing.T) {
	t.Parallel()
	tells(t, func(d *desk) {
		testworld.Must(t, d.home.WriteFile("state/watchdog/mistake.json", []byte(`"config-0123"`), false))
		d.mistake("line 1")
		d.again()
		d.after(time.Minute, "config: line 1")
		if _, err := os.Stat(d.home.Path("state/watchdog/mistake.json")); !os.IsNotExist(err) {
			t.Errorf("the old file stays: %v", err)
		}
		d.stop()
		testworld.Must(t, d.home.WriteFile("state/attention.json", []byte("{"), false))
		d.again()
		d.after(time.Minute, "config: line 1", "config: line 1")
		list, err := d.bus.List(agent.Owner, bus.Inbox, 0)
		if err != nil || list[0].Envelope.ID != list[1].Envelope.ID || list[0].Envelope.Kind != envelope.KindNotice {
			t.Errorf("%v %v", list, err)
		}
		d.stop()
		testworld.Must(t, d.home.WriteFile("state/attention.json", []byte(`{"standing": {"x": {"kind": "config", "every": 1, "told_ms": 1, "times": 1000000000000}}}`), false))
		d.again()
		d.after(time.Minute, "config: line 1", "config: line 1", "config: line 1")
	})
}

// An account that waits for its owner, or for a stated time, is told of at once, another one if that lasts; and the
// mail is settled when it serves again.
func TestTellLimits(t *testing.T) {
	t.Parallel()
	tells(t, func(d *desk) {
		trip := func(account string, f agent.Fault) {
			t.Helper()
			if _, _, err := breaker.Of(d.home, account).Trip(t.Context(), "agent1", f); err != nil {
				t.Fatal(err)
			}
		}
		d.sees(attention.Seen{Agent: limited("agent2", agent.Login, "a", time.Time{})}, attention.Seen{Agent: limited("agent3", agent.Login, "a", time.Time{})})
		trip("a", agent.Fault{Reason: agent.Login, Account: "a", Text: "log <in>"})
		trip("b", agent.Fault{Reason: agent.Overloaded, Account: "b"})
		testworld.Got(breaker.Of(d.home, "c").Bar(t.Context(), "agent1", "spent", "key", false, time.Time{}))(t)
		d.again()
		d.after(3 * time.Second)
		told := "limit: a: not logged in: log &lt;in>"
		d.after(3*time.Second, told)
		list, err := d.bus.List(agent.Owner, bus.Inbox, 0)
		if err != nil || list[0].Envelope.From != "agent1" || !strings.Contains(list[0].Envelope.Text, "\nIt concerns agent2, agent3. Until then ") {
			t.Errorf("%+v %v", list, err)
		}
		d.again()
		d.after(time.Minute, told)
		d.after(time.Minute, told, "limit: b: vendor overloaded")
		testworld.Must(t, breaker.Of(d.home, "a").Drop(t.Context()))
		d.after(time.Minute, "limit: settled a: not logged in: log &lt;in>", "limit: b: vendor overloaded")
		if n := len(d.logs); n < 3 || d.logs[n-1] != "agent1 a is held back no longer (not logged in), after 2m10s" || d.logs[0] != "agent1 a: not logged in: log <in>; its agents are given nothing" {
			t.Errorf("recorded %q", d.logs)
		}
	})
}

// That the agents can't be looked after is told at once, on the phone too, and settled when they can.
func TestTellBlind(t *testing.T) {
	t.Parallel()
	tells(t, func(d *desk) {
		blind := func(why string) {
			t.Helper()
			testworld.Must(t, attention.SaveBlind(d.home, attention.Blind{SinceMS: 5, Why: why}))
		}
		blind("no fork")
		d.again()
		d.after(time.Minute, "blind: netsky can't look after the agents: no fork")
		list, err := d.bus.List(agent.Owner, bus.Inbox, 0)
		if err != nil || list[0].Envelope.From != agent.Root || len(list[0].Envelope.Extra) == 0 {
			t.Errorf("%+v %v", list, err)
		}
		blind("")
		d.after(time.Minute, "blind: settled netsky can't look after the agents: no fork")
	})
}

// A start that does not get ready is told of once, as long as anybody looks at the agents; and settled when it does.
func TestTellUnready(t *testing.T) {
	t.Parallel()
	tells(t, func(d *desk) {
		a := one("agent1", agent.Starting, func(a *view.Agent) { a.Detail, a.Since = "its pane shows: hello", store.At(time.Now()) })
		ready, late := attention.Seen{Agent: a}, attention.Seen{Agent: a, By: agent.ByWatchdog}
		d.sees(ready, late)
		told := "agent1 has been started, and does not report that it is ready: its pane shows: hello."
		d.again()
		d.after(50 * time.Second)
		d.after(time.Minute, "unready: "+told)
		d.sees() // another daemon, which has not looked yet
		d.again()
		d.after(time.Minute, "unready: "+told)
		d.sees(ready, late)
		d.after(time.Minute, "unready: "+told)
		d.sees(ready)
		d.after(time.Minute, "unready: settled "+told)
	})
}

// An agent that hangs is told of again and again, but not in hours of quiet; agentinfinity is told once. Each mail is
// settled when it hangs no more.
func TestTellHang(t *testing.T) {
	t.Parallel()
	tells(t, func(d *desk) {
		d.o.Repage, d.o.Wakes = 30*time.Minute, 1
		now := time.Now()
		hung := func(id agent.ID) attention.Seen {
			testworld.Must(t, hang.Save(d.home, id, hang.Record{Start: "s-" + string(id), SinceMS: now.UnixMilli(), What: "busy"}))
			return attention.Seen{Agent: one(id, agent.Hung, nil), Alive: true}
		}
		testworld.Must(t, d.bus.Make(agent.Infinity))
		infinity := attention.Seen{Agent: one(agent.Infinity, agent.Idle, nil), Alive: true}
		d.sees(hung("agent1"), infinity)
		testworld.Got(attention.Silence(t.Context(), d.home, 10*time.Minute, "owner", now))(t)
		d.again()
		d.after(9 * time.Minute)
		first := "agent1 hangs: no sign of life for 10m: busy."
		d.after(20*time.Minute, "hang: "+first)
		d.again()
		d.after(10*time.Minute, "hang: "+first)
		second := "agent1 hangs: no sign of life for 40m: busy."
		d.after(10*time.Minute, "hang: "+first, "hang: "+second)
		d.sees(infinity)
		d.after(time.Minute, "hang: settled "+first, "hang: settled "+second)
		d.sees(hung("agent2"), infinity)
		d.after(time.Minute, "hang: settled "+first, "hang: settled "+second, "hang: agent2 hangs: no sign of life for 50m: busy.")
		woken, err := d.bus.List(agent.Infinity, bus.Inbox, 0)
		if err != nil || len(woken) != 1 || !strings.Contains(woken[0].Envelope.Text, first) {
			t.Errorf("agentinfinity has %+v, %v", woken, err)
		}
		want := []string{
			"agent1 told you that it hangs (10m)", "agent1 agentinfinity is woken about it (1 of 1 in 24 hours)", "agent1 told you that it hangs (40m)",
			"agent2 told you that it hangs (50m)", "agent2 agentinfinity is not woken about it: it was 1 times in 24 hours (`wakes` under [watchdog])",
		}
		testworld.EqualList(t, d.logs, want, "recorded")
	})
}

// A crash loop, or an agent that can't be started again, is told of once, whatever is tried meanwhile. The mail counts
// as read if the owner has acted, as settled if the agent has become healthy.
func TestTellLoop(t *testing.T) {
	t.Parallel()
	tells(t, func(d *desk) {
		d.sees([]attention.Seen{}...)
		keep := func(id agent.ID, r backoff.Record) {
			t.Helper()
			was, err := backoff.Load(d.home, id)
			if r.WordMS = was.WordMS; err != nil || backoff.Save(d.home, id, r) != nil {
				t.Fatal(err)
			}
		}
		testworld.Must(t, home.Desired(d.home).SetAll([]agent.ID{"agent1", "agent2", "agent3"}, true, "owner"))
		keep("agent1", backoff.Record{Died: "s1", How: "exited 3", LoopMS: 5})
		keep("agent2", backoff.Record{Died: "s2", How: "exited 4", Tries: 5, Stuck: "s2", Failed: "no program"})
		keep("agent3", backoff.Record{Died: "s3", Tries: 4, Failed: "no program"})
		loop, stuck := "agent1 is in a crash loop: it died 5 times within 10 minutes, the last time exited 3. It is started again every 30 minutes.", "agent2 is dead (exited 4) and can't be restarted: no program"
		d.again()
		d.after(time.Minute, "crash: "+loop, "no: "+stuck)
		keep("agent1", backoff.Record{Died: "s4", How: "exited 5", LoopMS: 5, Tries: 7, Proved: "s5"})
		keep("agent2", backoff.Record{Died: "s2", How: "exited 4", Tries: 6, Stuck: "s2", LoopMS: 9})
		d.again()
		d.after(time.Minute, "crash: "+loop, "no: "+stuck)
		testworld.Must(t, home.Desired(d.home).Set("agent2", false, "owner"))
		keep("agent1", backoff.Record{})
		d.after(time.Minute, "crash: settled "+loop, "no: read "+stuck)
	})
}

// The owner is reached outside of netsky about unread notices and questions of agents, once about each: a question
// at once, the rest a minute after the last alert at the soonest, and not about what they see in the pane.
func TestEscalate(t *testing.T) {
	t.Parallel()
	tells(t, func(d *desk) {
		var alerts []string
		d.o.Escalate = func(_ context.Context, subject, body string) (string, error) {
			d.mu.Lock()
			defer d.mu.Unlock()
			alerts = append(alerts, subject)
			if strings.Contains(subject, "fourth") {
				return "", errors.New("no way")
			}
			return "command true", nil
		}
		send := func(id, text string, edit func(*envelope.Envelope)) {
			t.Helper()
			e := envelope.Envelope{ID: id, From: "agent1", To: agent.Owner, Kind: envelope.KindNotice, Via: "code", Text: text, Time: time.Now()}
			if edit != nil {
				edit(&e)
			}
			testworld.Got(d.bus.Send(t.Context(), e))(t)
		}
		at := func(wait time.Duration, want ...string) {
			t.Helper()
			time.Sleep(wait)
			synctest.Wait()
			d.mu.Lock()
			defer d.mu.Unlock()
			testworld.EqualList(t, alerts, want, "alerts")
		}
		d.sees(attention.Seen{Agent: one("agent2", agent.Waiting, nil), Attended: true})
		send("gone-1", "the first", nil)
		send("gone-old", "yesterday's", func(e *envelope.Envelope) { e.Time = time.Now().Add(-2 * time.Hour) })
		send("gone-seen", "in the pane", func(e *envelope.Envelope) { e.From = "agent2" })
		send("plain", "a message", func(e *envelope.Envelope) { e.From, e.Kind, e.Via = agent.Root, envelope.KindMessage, "mcp" })
		d.again()
		at(4 * time.Second)
		at(4*time.Second, "netsky: the first")
		send("gone-2", "the second", nil)
		at(30*time.Second, "netsky: the first")
		send("approval-abcde", "may I?", func(e *envelope.Envelope) { e.Kind = envelope.KindApproval })
		at(10*time.Second, "netsky: the first", "netsky: 2 things need you")
		d.again()
		send("gone-3", "the fourth", nil)
		at(10*time.Minute, "netsky: the first", "netsky: 2 things need you", "netsky: the fourth")
		send("own", "agent2 asks for permission", func(e *envelope.Envelope) { e.Via = "cli" }) // what an agent writes is not told as netsky's
		at(10*time.Minute, "netsky: the first", "netsky: 2 things need you", "netsky: the fourth", "netsky: agent1 writes: agent2 asks for permission")
		if want := []string{"agent1 you were alerted by command true: the first", "agent1 you were alerted by command true: the second", "agent1 you were alerted by command true: may I?", "agent1 you could not be alerted: no way: the fourth", "agent1 you were alerted by command true: agent2 asks for permission"}; !slices.Equal(d.logs, want) {
			t.Errorf("recorded %q", d.logs)
		}
	})
}

// A dialog is told of once it has been there for a while, unless somebody is at the pane or was asked the same as a
// question; one before there is a receiver sooner. How it has gone is recorded, and decides what the mail counts as.
func TestTellDialog(t *testing.T) {
	t.Parallel()
	tells(t, func(d *desk) {
		now := time.Now()
		at := func(id agent.ID, name string, edit func(*attention.Seen)) attention.Seen {
			a := attention.Seen{Agent: one(id, agent.Waiting, func(a *view.Agent) { a.Since = store.At(now) }), Shows: true, Dialog: agent.Dialog{Name: name, Text: "go <on>?"}}
			if edit != nil {
				edit(&a)
			}
			testworld.Must(t, d.home.SaveKeeper(id, agent.Keeper{Start: a.Start}))
			return a
		}
		watched := at("agent3", "c", func(a *attention.Seen) { a.Attended = true })
		rest := []attention.Seen{
			at("agent2", "pressed", func(a *attention.Seen) { a.By = agent.ByPane }), watched,
			at("agent4", "d", nil), // it was asked as a question
			at("agent5", "", func(a *attention.Seen) { a.Decidable = true }),
			at("agent6", "f", func(a *attention.Seen) { a.Shows = false }),
			at("agent7", "lost", func(a *attention.Seen) { a.By = agent.ByPane }),
			{Agent: one("agent8", agent.Waiting, func(a *view.Agent) { a.Deaf = true }), Shows: true},
		}
		testworld.Got(home.Approvals(d.home).Ask(agent.Approval{Agent: "agent4", Start: "s-agent4", Tool: "Bash", Text: "x"}))(t)
		told := func(id, name, state string) string {
			return fmt.Sprintf("dialog: %s%s is waiting at a dialog in its pane (%s): go &lt;on>?", state, id, name)
		}
		d.sees(append(rest, at("agent1", "a", nil))...)
		d.again()
		d.after(3 * time.Second)
		d.after(10*time.Second, told("agent2", "pressed", ""), told("agent7", "lost", ""))
		d.after(20*time.Second, told("agent2", "pressed", ""), told("agent7", "lost", ""), told("agent5", "unknown dialog", ""), told("agent1", "a", ""))
		list, err := d.bus.List(agent.Owner, bus.Inbox, 0)
		if err != nil || !slices.ContainsFunc(list, func(e bus.Entry) bool {
			return e.Envelope.Kind == envelope.KindApproval && e.Envelope.From == "agent5" && strings.Contains(e.Envelope.Text, ", or netsky approve agent5 (")
		}) {
			t.Errorf("%+v %v", list, err)
		}
		d.sees(rest...) // for one pass: a screen may be half drawn
		time.Sleep(2 * time.Second)
		d.sees(append(rest, at("agent1", "a", nil))...)
		d.again()
		d.after(time.Minute, told("agent2", "pressed", ""), told("agent7", "lost", ""), told("agent5", "unknown dialog", ""), told("agent1", "a", ""))
		watched.Attended = false
		testworld.Must(t, d.home.SaveKeeper("agent7", agent.Keeper{Start: "s-agent7", EndedMS: 5}))
		d.sees(watched)
		d.after(time.Minute, told("agent2", "pressed", "settled "), told("agent7", "lost", "settled "), told("agent5", "unknown dialog", "read "), told("agent1", "a", "read "), told("agent3", "c", ""))
		for _, want := range []string{"agent2 answered by netsky: pressed: go &lt;on>?", "agent7 gone with the agent's session: lost: go &lt;on>?", "agent1 answered in the pane: a: go &lt;on>?", "agent1 told you that it is waiting at a dialog: a"} {
			if !slices.Contains(d.logs, want) {
				t.Errorf("%q is not recorded: %q", want, d.logs)
			}
		}
	})
}

// What began before the clock was set back is told, and the owner alerted to it, without waiting until it is that late again.
func TestTellClockSetBack(t *testing.T) {
	t.Parallel()
	tells(t, func(d *desk) {
		alerted := ""
		d.o.Escalate = func(_ context.Context, subject, _ string) (string, error) {
			alerted += subject
			return "command true", nil
		}
		then := time.Now().Add(1000 * time.Hour)
		e := envelope.Envelope{ID: "gone-1", From: "agent1", To: agent.Owner, Kind: envelope.KindNotice, Via: "code", Text: "of then", Time: then}
		if _, err := d.bus.Send(t.Context(), e); err != nil {
			t.Fatal(err)
		}
		d.sees(attention.Seen{Agent: one("agent1", agent.Waiting, func(a *view.Agent) { a.Since = store.At(then) }), Shows: true})
		d.again()
		d.after(time.Minute, "gone: of then", "dialog: agent1 is waiting at a dialog in its pane (unknown dialog): unknown dialog")
		if !strings.HasPrefix(alerted, "netsky: of then") {
			t.Errorf("alerted to %q", alerted)
		}
	})
}

// That all sessions ended is told once, later if it can't be told at once; it stays unread when a daemon that has not
// seen it takes over.
func TestTellGone(t *testing.T) {
	t.Parallel()
	tells(t, func(d *desk) {
		box := d.home.Path(home.Mailbox(agent.Owner))
		testworld.Must(t, os.Rename(box, box+".away"))
		d.o.Fell = func() *attention.Notice {
			return &attention.Notice{ID: "gone-s", Kind: attention.Gone, About: "agent0", Text: "all ended", Phone: true}
		}
		d.again()
		time.Sleep(time.Minute)
		testworld.Must(t, os.Rename(box+".away", box))
		d.after(time.Minute, "gone: all ended")
		d.stop()
		d.o.Fell = func() *attention.Notice { return nil }
		d.again()
		d.after(time.Minute, "gone: all ended")
	})
}

// Both agents are told of a conflict, once for each set of files: not when it comes again, and not by a teller that
// has lost what was told. The owner gets no mail about it.
func TestTellConflict(t *testing.T) {
	t.Parallel()
	tells(t, func(d *desk) {
		for _, id := range []agent.ID{"agent1", "agent2"} {
			testworld.Must(t, d.bus.Make(id))
		}
		finds := func(files ...string) {
			t.Helper()
			list := []merge.Known{}
			if len(files) > 0 {
				// agent9 has been removed.
				list = append(list, merge.Known{Conflict: merge.Conflict{Agents: []agent.ID{"agent1", "agent2", "agent9"}, Files: files}, Since: 1})
			}
			testworld.Must(t, d.home.Save(merge.File, map[string]any{"conflicts": list}, false))
			d.after(time.Minute)
		}
		told := func(want string) {
			t.Helper()
			for _, id := range []agent.ID{"agent1", "agent2"} {
				list := testworld.Got(d.bus.List(id, bus.Inbox, 0))(t)
				seen, got := map[string]bool{}, ""
				for _, e := range list {
					if !seen[e.Envelope.ID] { // the receiver drops another copy of what still waits
						lines := strings.Split(e.Envelope.Text, "\n")
						got += strings.Join(lines[1:len(lines)-1], " ") + ";"
					}
					seen[e.Envelope.ID] = true
				}
				testworld.Equal(t, got, want, "%s was told", id)
			}
		}
		d.again()
		finds("a.txt")
		told("- a.txt;")
		finds("a.txt", "b.txt")
		told("- a.txt;- a.txt - b.txt;")
		finds()
		finds("a.txt")
		told("- a.txt;- a.txt - b.txt;")
		d.stop()
		testworld.Must(t, d.home.Remove("state/attention.json"))
		d.again()
		d.after(time.Minute)
		told("- a.txt;- a.txt - b.txt;")
	})
}

// Where the owner is reached on another host, what is over is told there, each mail that was about it.
func TestTellElsewhere(t *testing.T) {
	t.Parallel()
	tells(t, func(d *desk) {
		d.o.Repage = 30 * time.Minute
		testworld.Must(t, d.bus.Link("laptop"))
		testworld.Must(t, d.home.Save(home.LinkSelf, map[string]string{"name": "build1", "owner": "laptop"}, false))
		testworld.Must(t, hang.Save(d.home, "agent1", hang.Record{Start: "s-agent1", SinceMS: time.Now().UnixMilli(), What: "busy"}))
		d.mistake("netsky.toml: line 1 is wrong")
		d.sees(attention.Seen{Agent: one("agent1", agent.Hung, nil), Alive: true})
		d.again()
		d.after(40 * time.Minute)
		d.mistake("")
		d.sees(attention.Seen{Agent: one("agent1", agent.Idle, nil), Alive: true})
		d.after(time.Minute)
		d.stop()
		d.stop = nil
		var told, over []string
		for _, e := range testworld.Got(d.bus.List("owner@laptop", bus.Inbox, 0))(t) {
			if e.Envelope.Kind != envelope.KindAck {
				told = append(told, e.Envelope.ID)
			} else {
				over = append(over, string(e.Envelope.Extra["settled"]))
			}
		}
		testworld.Len(t, told, 3, "a mistake, and twice that an agent hangs")
		slices.Sort(told)
		testworld.Contains(t, strings.Join(over, ""), `"id":"`+told[0]+`","from":"agent0","read":true`, "the owner has corrected it")
		testworld.Contains(t, strings.Join(over, ""), `"id":"`+strings.TrimSuffix(told[1], "-0")+`","all":true,"from":"agent1"`)
	})
}
