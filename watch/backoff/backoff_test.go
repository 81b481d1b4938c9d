package backoff_test

import (
	"slices"
	"testing"
	"time"

	"netsky/home"
	"netsky/internal/testworld"
	"netsky/watch/backoff"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func ms(d time.Duration) int64 { return now.Add(d).UnixMilli() }

// Deaths apart by more than the window double the wait, up to the longest.
func TestWaits(t *testing.T) {
	var r backoff.Record
	at, want := now, []time.Duration{1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300}
	for i, w := range want {
		if r.Ended("s", "exited 3", backoff.Crash, at) {
			t.Fatalf("crash loop after %d deaths, hours apart", i+1)
		}
		testworld.Equal(t, time.UnixMilli(r.NextMS).Sub(at), w*time.Second, "death %d: restart after", i+1)
		if r.Due(at) || !r.Due(at.Add(w*time.Second)) {
			t.Errorf("death %d: due too early or too late", i+1)
		}
		r.Begin("s", at)
		at = at.Add(time.Hour)
	}
}

func TestLoop(t *testing.T) {
	for name, tt := range map[string]struct {
		at    []time.Duration // deaths
		by    backoff.Cause
		loops int // the death that begins a crash loop; 0: none
	}{
		"four":           {at: []time.Duration{0, 1, 2, 3}},
		"five":           {at: []time.Duration{0, 1, 2, 3, 4}, loops: 5},
		"told once":      {at: []time.Duration{0, 1, 2, 3, 4, 5, 6}, loops: 5},
		"five, slowly":   {at: []time.Duration{0, 3, 6, 9, 12, 15}},
		"after a pause":  {at: []time.Duration{0, 1, 30, 31, 32, 33, 34}, loops: 7},
		"from outside":   {at: []time.Duration{0, 1, 2, 3, 4, 5}, by: backoff.Outside},
		"of all of tmux": {at: []time.Duration{0, 1, 2, 3, 4, 5}, by: backoff.Whole},
	} {
		t.Run(name, func(t *testing.T) {
			var r backoff.Record
			loops := 0
			for i, d := range tt.at {
				if r.Ended("s", "exited 3", tt.by, now.Add(d*time.Minute)) {
					loops = i + 1
				}
				if got := time.UnixMilli(r.NextMS).Sub(now.Add(d * time.Minute)); r.LoopMS != 0 && got != backoff.LoopEvery {
					t.Errorf("in a crash loop, restarted after %v", got)
				}
				r.Begin("s", now.Add(d*time.Minute))
			}
			testworld.Equal(t, loops, tt.loops, "crash loop at death")
			if len(r.DeathsMS) > backoff.LoopDeaths {
				t.Errorf("%d deaths kept", len(r.DeathsMS))
			}
		})
	}
}

func TestWords(t *testing.T) {
	for want, r := range map[string]backoff.Record{
		"":                           {},
		"restart in 4s (attempt 3)":  {Died: "s", Tries: 2, NextMS: ms(4 * time.Second)},
		"restart in 1s (attempt 1)":  {Died: "s", NextMS: ms(time.Millisecond)},
		"restart in 5m (attempt 9)":  {Died: "s", Tries: 8, NextMS: ms(5 * time.Minute)},
		"restarting now (attempt 1)": {Died: "s", NextMS: ms(-time.Second)},
		// What has begun is not the next one, unless it was given up.
		"restarting now (attempt 2)":                                                       {Died: "s", Tries: 2, From: "s", TriedMS: ms(-time.Second), NextMS: ms(time.Second)},
		"restart in 4s (attempt 4)":                                                        {Died: "s", Tries: 3, From: "s", TriedMS: ms(-time.Hour), NextMS: ms(4 * time.Second)},
		"5 deaths in 10 minutes; restart in 30m (attempt 6)":                               {Died: "s", Tries: 5, LoopMS: 1, NextMS: ms(30 * time.Minute)},
		"restart failed: no disk; restart in 8s (attempt 4)":                               {Died: "s", Tries: 3, Failed: "no disk", NextMS: ms(8 * time.Second)},
		"started again when its account serves again (account x: usage limit until 14:00)": {Died: "s", Held: "account x: usage limit until 14:00", NextMS: ms(time.Hour)},
	} {
		testworld.Equal(t, r.Words(now), want)
	}
}

// A clock that was set back delays a restart by no more than a wait.
func TestClockSetBack(t *testing.T) {
	var r backoff.Record
	r.Ended("s", "exited 3", backoff.Crash, now.Add(48*time.Hour))
	testworld.Equal(t, r.Due(now), true, "not due, until two days from now")
	r.Hold("usage limit", now.Add(30*time.Second)) // whose account is asked again then
	testworld.Equal(t, r.Due(now), false, "due in spite of a limit")
	r.Hold("usage limit", now.Add(48*time.Hour))
	testworld.Equal(t, r.Due(now), true, "the account is not asked again, until two days from now")
}

// What the owner says makes void what was counted before, though the file stays.
func TestWord(t *testing.T) {
	h := testworld.Home(t)
	set := func(up bool) {
		t.Helper()
		d, _ := home.Desired(h).Load("agent1")
		for last := d.AtMS; d.AtMS == last; d, _ = home.Desired(h).Load("agent1") { // another millisecond
			testworld.Must(t, home.Desired(h).Set("agent1", up, "owner"))
		}
	}
	load := func() backoff.Record {
		t.Helper()
		return testworld.Got(backoff.Load(h, "agent1"))(t)
	}
	set(true)
	r := load()
	for range backoff.LoopDeaths {
		r.Ended("s", "exited 3", backoff.Crash, now)
		r.Begin("s", now)
	}
	testworld.Must(t, backoff.Save(h, "agent1", r))
	if r := load(); r.LoopMS == 0 || r.Tries != 5 {
		t.Errorf("not kept: %+v", r)
	}
	if got, want := backoff.Clear(h, "agent1", "agent2"), []string{"agent1: cleared its crash loop (5 deaths in 10 minutes, last exited 3)"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	testworld.Must(t, backoff.Save(h, "agent1", r))
	set(false)
	if r := load(); !r.Zero() {
		t.Errorf("outranks the down: %+v", r)
	}
	set(true)
	if r := load(); !r.Zero() {
		t.Errorf("outranks the up: %+v", r)
	}
	if got := backoff.Clear(h, "agent1"); len(got) != 0 {
		t.Errorf("cleared %q twice", got)
	}
	// A damaged record is none.
	testworld.Must(t, h.WriteFile(backoff.Dir+"/agent1.json", []byte("{"), false))
	if r := load(); !r.Zero() {
		t.Errorf("%+v", r)
	}
}
