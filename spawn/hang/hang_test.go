package hang_test

import (
	"testing"
	"time"

	"netsky/agent"
	"netsky/spawn/hang"
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
	if w.Hung(10*time.Minute, now) {
		t.Error("hung right after a jump")
	}
	now = now.Add(hang.Grace)
	if !w.Hung(10*time.Minute, now) {
		t.Error("not hung after the grace")
	}
}

func TestScreen(t *testing.T) {
	same := func(a, b string) bool { return hang.Screen([]string{a}) == hang.Screen([]string{b}) }
	if !same("✻ Pondering… (12s · ↓ 900 tokens · esc to interrupt)", "✽ Pondering… (1m 13s · ↓ 1.2k tokens · esc to interrupt)") {
		t.Error("a spinner is taken for life")
	}
	if same("● Reading a.go", "● Reading main.go") {
		t.Error("new output is not taken for life")
	}
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
