//go:build live

package spawn_test

import (
	"encoding/json"

	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/home"
	"netsky/internal/testworld"
	"netsky/spawn"
)

// An Inspector, which reads only what has changed, reports at each step what one that
// reads everything does.
func TestInspector(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	i := w.l.NewInspector()
	must := func(err error) {
		t.Helper()
		testworld.Must(t, err)
	}
	words := func(list spawn.Statuses, err error) string {
		t.Helper()
		testworld.Must(t, err)
		text := testworld.Got(json.MarshalIndent(list, "", " "))(t)
		return string(text)
	}
	// What was read a while after it had changed is known; the step in which the file
	// system tells time is over then.
	aged := func() {
		t.Helper()
		at := time.Now().Add(-time.Second)
		must(filepath.WalkDir(w.home.Root(), func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() || err == nil && d.IsDir() {
				err = os.Chtimes(path, time.Time{}, at)
			}
			return err
		}))
	}
	var start string
	report := func(detail string) {
		must(w.home.SaveReport("agent1", agent.Report{Start: start, State: agent.Busy, SinceMS: 7, Detail: detail}))
	}
	for _, step := range []struct {
		what string
		do   func()
	}{
		{"nothing", func() {}},
		{"up", func() { w.upReady(sh(ready+"exec sleep 1000"), "agent1", "agent2"); start = w.status("agent1").Start }},
		{"report", func() { report("one") }},
		{"another", func() { report("two") }},
		{"at once", func() { report("three") }},
		{"damaged", func() { must(w.home.WriteFile(home.ReportDir+"/agent1.json", []byte("{"), false)) }},
		{"mended", func() { report("four") }},
		{"no report", func() { must(w.home.Remove(home.ReportDir + "/agent1.json")) }},
		{"mail", func() { w.mail("agent1", "hello"); w.mail("agent2", "hello") }},
		{"taken", func() {
			box := w.home.Path(home.Mailbox("agent1"))
			list, err := os.ReadDir(filepath.Join(box, string(bus.Inbox)))
			must(err)
			for _, e := range list {
				must(os.Rename(filepath.Join(box, string(bus.Inbox), e.Name()), filepath.Join(box, string(bus.Claimed), e.Name())))
			}
		}},
		{"killed", func() {
			st := w.status("agent2")
			syscall.Kill(st.PID, syscall.SIGKILL)
			w.becomes("agent2", agent.Dead)
		}},
		{"unwanted", func() { must(home.Desired(w.home).Set("agent2", false, "owner")) }},
		{"down", func() { w.down(spawn.DownOptions{Agents: []agent.ID{"agent2"}, Force: true}) }},
		{"forgotten", func() { must(home.Desired(w.home).Forget("agent2", "owner", 5)) }},
		{"up again", func() { w.upReady(sh(ready+"exec sleep 1000"), "agent2") }},
		{"records gone", func() { must(os.RemoveAll(w.home.Path(home.LaunchDir))) }},
	} {
		step.do()
		for _, when := range []string{"at once", "again", "later", "known"} {
			if when == "later" {
				aged()
			}
			want := words(w.l.Inspect(w.ctx))
			if got := words(i.Inspect(w.ctx)); got != want {
				t.Fatalf("%s, %s: %s\nwant %s", step.what, when, got, want)
			}
		}
	}
}
