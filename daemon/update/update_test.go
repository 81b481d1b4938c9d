package update_test

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"netsky/daemon"
	"netsky/daemon/update"
	"netsky/home"
	"netsky/internal/testworld"
)

// A bad is a program that does not operate.
type bad struct {
	fault, why string
	aside      bool // its records are put aside
	set        settings
}

// bads has more rows under the tag live.
var bads = []bad{
	{fault: "crash", why: "ended at once"},
	{fault: "exit0", why: "ended at once"},
	{fault: "hang", why: "did not answer in time", set: settings{Within: 15 * time.Second}},
	{fault: "dies", why: "ended soon", set: settings{Watch: 10 * time.Second}},
	{fault: "migrate", why: "ended at once", aside: true},
	{fault: "migrate-and-die", why: "ended soon", aside: true, set: settings{Watch: 10 * time.Second}},
	{fault: "damage", why: "ended at once", aside: true},
	{fault: "lies", why: "is netsky v2-other, not v2"},
}

// A program that does not operate is taken back, and the owner is told once.
func TestBad(t *testing.T) {
	t.Parallel()
	for _, tt := range bads {
		t.Run(tt.fault, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.set.Within, w.set.Memory, w.set.Watch = tt.set.Within, tt.set.Memory, max(tt.set.Watch, w.set.Watch)
			w.send("before")
			w.prepare(update.Update, "v2", tt.fault, nil)
			testworld.Must(t, update.Finish(w.home, w.environ()))
			w.send("meanwhile")
			r := w.over()
			testworld.Equal(t, r.State, update.Undone, "%s", w.steps())
			testworld.Contains(t, r.Why, tt.why)
			testworld.Equal(t, r.Aside != "", tt.aside, "put aside: %q", r.Aside)
			if tt.aside {
				testworld.Got(os.Stat(w.home.Path(r.Aside)))(t)
			}
			w.send("after")
			testworld.EqualList(t, w.whole("v1"), []string{r.Outcome(update.Undone)}, "told")
			w.supervise()
			testworld.Len(t, w.mail(), 1, "told again")
		})
	}
}

// Whoever is told that an update is done is told, too, that the checkout does not follow it.
func TestStays(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.set.Stays = "main has been moved"
	r := w.update("v2", "", update.Done)
	testworld.Contains(t, strings.Join(w.whole("v2", "netsky.previous"), "\n"), "to v2. But its checkout was not moved to it: main has been moved.")
	testworld.Contains(t, r.Why, w.set.Stays)
}

// An update that was taken back leaves the program that the last one kept, and copies of the records do not pile up.
func TestKept(t *testing.T) {
	t.Parallel()
	w := newWorldAt(t, testworld.FastHome(t), t.TempDir()) // on another file system, where memory has room
	done := w.update("v2", "", update.Done)
	for range 3 {
		w.update("v3", "migrate", update.Undone)
	}
	testworld.Contains(t, string(testworld.Got(os.ReadFile(update.Kept(w.bin)))(t)), "\nv1 ", "what is kept")
	last := w.update("v4", "migrate", update.Undone)
	var names []string
	for _, e := range testworld.Got(os.ReadDir(w.home.Path(update.Dir)))(t) {
		if !strings.HasSuffix(e.Name(), "-wal") && !strings.HasSuffix(e.Name(), "-shm") {
			names = append(names, e.Name())
		}
	}
	want := []string{"installed.json", "run.json", done.ID + ".db", last.ID + ".db", last.ID + "-undone.db"}
	slices.Sort(want)
	testworld.EqualList(t, names, want, "files of runs")
	testworld.Len(t, w.whole("v2", "netsky.previous"), 5, "told")
	// The same build once more changes nothing of that.
	testworld.Equal(t, w.update("v2", "", update.Done).Hint(), "", "how to go back")
	w.whole("v2", "netsky.previous")
	testworld.Contains(t, string(testworld.Got(os.ReadFile(update.Kept(w.bin)))(t)), "\nv1 ", "what is kept")
	testworld.Got(daemon.Stop(w.ctx, w.home))(t)
	testworld.EqualList(t, testworld.Got(home.Purge(w.home))(t), nil, "what a purge leaves")
}

// update updates to a program, and requires that the run ends so.
func (w *world) update(version, fault string, as update.State) update.Run {
	w.Helper()
	w.prepare(update.Update, version, fault, nil)
	w.supervise()
	r := w.over()
	testworld.Equal(w, r.State, as, "%s", w.steps())
	return r
}
