package hang_test

import (
	"testing"
	"time"

	"netsky/agent"
	"netsky/internal/testworld"
	"netsky/watch/hang"
)

// A step is one check of an agent.
type step struct {
	after   time.Duration // since the last
	signs   hang.Signs
	idle    bool // nothing is pending
	silence time.Duration
	hung    bool // for two minutes
}

func TestWatch(t *testing.T) {
	const s = 30 * time.Second
	none := hang.Signs{}
	for name, steps := range map[string][]step{
		"silent":                      {{0, none, false, 0, false}, {s, none, false, s, false}, {s, none, false, 2 * s, false}, {s, none, false, 3 * s, false}, {s, none, false, 4 * s, true}},
		"idle":                        {{0, none, true, 0, false}, {s, none, true, 0, false}, {s, none, true, 0, false}, {s, none, true, 0, false}, {s, none, true, 0, false}},
		"new mail is no sign of life": {{0, none, false, 0, false}, {s, hang.Signs{Inbox: 1}, false, s, false}, {s, hang.Signs{Inbox: 2}, false, 2 * s, false}},
		"mail that is taken is":       {{0, hang.Signs{Inbox: 2}, false, 0, false}, {s, hang.Signs{Inbox: 1}, false, 0, false}},
		"each sign counts": {
			{0, none, false, 0, false}, {s, hang.Signs{Events: 1}, false, 0, false}, {s, hang.Signs{Claimed: 1}, false, 0, false},
			{s, hang.Signs{Outbox: 1}, false, 0, false}, {s, hang.Signs{Owed: 1}, false, 0, false}, {s, hang.Signs{Screen: 1}, false, 0, false},
			{s, hang.Signs{Report: agent.Report{SinceMS: 1}}, false, 0, false},
		},
		"a suspended machine": {
			{0, none, false, 0, false}, {s, none, false, s, false}, {8 * time.Hour, none, false, s, false}, {s, none, false, 2 * s, false},
			{s, none, false, 3 * s, false}, {s, none, false, 4 * s, false}, {s, none, false, 5 * s, false}, // in the grace
		},
	} {
		t.Run(name, func(t *testing.T) {
			var w hang.Watch
			now := time.Unix(1_800_000_000, 0)
			for i, st := range steps {
				now = now.Add(st.after)
				if got := w.See(st.signs, !st.idle, now); got != st.silence || w.Hung(2*time.Minute, now) != st.hung {
					t.Errorf("check %d: silent for %v, hung %t; want %v, %t", i, got, w.Hung(2*time.Minute, now), st.silence, st.hung)
				}
			}
		})
	}
}

// After a jump of the clock nothing hangs for a while, and then what was silent before.
func TestGrace(t *testing.T) {
	var w hang.Watch
	now := time.Unix(1_800_000_000, 0)
	for range 60 {
		w.See(hang.Signs{}, true, now)
		now = now.Add(hang.Every)
	}
	now = now.Add(time.Hour)
	w.See(hang.Signs{}, true, now)
	testworld.Equal(t, w.Hung(10*time.Minute, now), false, "hung right after a jump")
	now = now.Add(hang.Grace)
	testworld.Equal(t, w.Hung(10*time.Minute, now), true, "not hung after the grace")
}

func TestScreen(t *testing.T) {
	same := func(a, b string) bool { return hang.Screen([]string{a}) == hang.Screen([]string{b}) }
	if !same("✻ Pondering… (12s · ↓ 900 tokens · esc to interrupt)", "✽ Pondering… (1m 13s · ↓ 1.2k tokens · esc to interrupt)") {
		t.Error("a spinner is taken for life")
	}
	testworld.Equal(t, same("● Reading a.go", "● Reading main.go"), false, "new output is not taken for life")
}

// While a tool computes, silence is not counted, but not for ever; any other sign begins
// that anew.
func TestComputing(t *testing.T) {
	var w hang.Watch
	now, cpu, events := time.Unix(1_800_000_000, 0), time.Second, int64(0)
	check := func(n int, used time.Duration) (silent time.Duration) {
		for range n {
			now, cpu = now.Add(hang.Every), cpu+used
			silent = w.See(hang.Signs{CPU: cpu, Events: events}, true, now)
		}
		return silent
	}
	const long = int(hang.Computing / hang.Every)
	for range 2 {
		events++
		if got := check(1+long, hang.Every/4); got != 0 {
			t.Errorf("silent for %v while a tool computed", got)
		}
		if got := check(4, hang.Every/4); got != 4*hang.Every {
			t.Errorf("silent for %v when it had computed for %v", got, hang.Computing)
		}
	}
	events++
	if got := check(5, hang.Every/5); got != 4*hang.Every {
		t.Errorf("silent for %v while a little processor time was used", got)
	}
	var unknown hang.Watch
	unknown.See(hang.Signs{}, true, now)
	if got := unknown.See(hang.Signs{CPU: time.Hour}, true, now.Add(hang.Every)); got != hang.Every {
		t.Errorf("silent for %v when nothing was known before", got)
	}
}

// Another daemon continues the count if nothing has changed meanwhile, and says when it does
// not know all.
func TestResume(t *testing.T) {
	busy := hang.Signs{Report: agent.Report{Start: "s", State: agent.Busy, SinceMS: 7, Fault: agent.Fault{Text: "x"}}, Inbox: 1, Screen: 1<<63 + 1}
	for _, tt := range []struct {
		name    string
		kept    bool
		after   time.Duration // until the next daemon looks
		signs   hang.Signs
		idle    bool
		silence time.Duration // at its second check
		atLeast bool
	}{
		{"restarted", true, time.Minute, busy, false, 7*hang.Every + 2*time.Minute, false},
		{"down for long", true, time.Hour, busy, false, 7*hang.Every + time.Minute, true},
		{"a clock that was set back", true, -time.Hour, busy, false, 7*hang.Every + time.Minute, true},
		{"worked meanwhile", true, time.Minute, hang.Signs{Events: 1}, false, time.Minute, false},
		{"finished", true, time.Minute, busy, true, 0, false},
		{"unknown", false, time.Minute, busy, false, time.Minute, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h, now := testworld.Home(t), time.UnixMilli(1_800_000_000_000)
			var w hang.Watch
			w.See(hang.Signs{}, true, now.Add(-time.Second))
			for range 8 {
				w.See(busy, true, now)
				now = now.Add(hang.Every)
			}
			now = now.Add(-hang.Every)
			if tt.kept {
				testworld.Must(t, hang.SaveSilence(h, "agent1", w.Kept("s")))
				if r := hang.Load(h, "agent1", "s"); r.Start != "" {
					t.Errorf("hangs: %+v", r)
				}
			}
			if s := hang.LoadSilence(h, "agent1", "another"); s.Of != "" {
				t.Errorf("of another start: %+v", s)
			}
			w = hang.LoadSilence(h, "agent1", "s").Resume()
			now = now.Add(tt.after)
			w.See(tt.signs, !tt.idle, now)
			if got := w.See(tt.signs, !tt.idle, now.Add(time.Minute)); got != tt.silence || w.AtLeast() != tt.atLeast {
				t.Errorf("silent for %v, at least %t; want %v, %t", got, w.AtLeast(), tt.silence, tt.atLeast)
			}
			words := hang.Record{SinceMS: now.UnixMilli(), What: "busy", AtLeast: w.AtLeast()}.Words(now.Add(time.Minute))
			if want := map[bool]string{false: "no sign of life for 1m: busy", true: "no sign of life for at least 1m: busy"}[tt.atLeast]; words != want {
				t.Errorf("%q, want %q", words, want)
			}
		})
	}
}
