package update_test

import (
	"testing"
	"time"

	"netsky/daemon/update"
	"netsky/internal/testworld"
)

// A program that does not operate is taken back, and the owner is told once.
func TestBad(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		fault, why string
		aside      bool
		set        settings
	}{
		{fault: "crash", why: "ended at once"},
		{fault: "exit0", why: "ended at once"},
		{fault: "hang", why: "did not answer in time", set: settings{Within: 15 * time.Second}},
		{fault: "hanglater", why: "does not answer", set: settings{Watch: time.Second}},
		{fault: "dies", why: "ended soon", set: settings{Watch: 3 * time.Second}},
		{fault: "nomail", why: "mail is not moved", set: settings{Within: 15 * time.Second}},
		{fault: "grows", why: "MB of memory", set: settings{Watch: 5 * time.Second, Memory: grownTo}},
		{fault: "migrate", why: "ended at once", aside: true},
		{fault: "migrate-and-die", why: "ended soon", aside: true, set: settings{Watch: 3 * time.Second}},
		{fault: "damage", why: "ended at once", aside: true},
		{fault: "lies", why: "is netsky v2-other, not v2"},
	} {
		t.Run(tt.fault, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.set.Within, w.set.Memory, w.set.Watch = tt.set.Within, tt.set.Memory, max(tt.set.Watch, w.set.Watch)
			w.send("before")
			r := w.prepare(update.Update, "v2", tt.fault, nil)
			testworld.Must(t, update.Finish(w.home, w.environ()))
			w.send("meanwhile")
			r = w.over()
			t.Log(time.Duration(r.Steps[len(r.Steps)-1].AtMS-r.Steps[0].AtMS)*time.Millisecond, r.Why)
			testworld.Equal(t, r.State, update.Undone, "%s", w.steps())
			testworld.Contains(t, r.Why, tt.why)
			testworld.Equal(t, r.Aside != "", tt.aside, "put aside: %q", r.Aside)
			w.send("after")
			testworld.EqualList(t, w.whole("v1", "netsky.previous"), []string{r.Outcome(update.Undone)}, "told")
			w.supervise()
			testworld.Len(t, w.mail(), 1, "told again")
		})
	}
}
