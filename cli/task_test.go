//go:build live

package cli_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"netsky/bus/envelope"
	"netsky/internal/testworld"
	"netsky/work/dispatch"
)

// mustTask adds a task and returns its id.
func (w *world) mustTask(t testing.TB, args ...string) string {
	t.Helper()
	return strings.TrimSpace(w.must(t, "netsky", append([]string{"task", "add"}, args...)...))
}

// story returns all about a task.
func (w *world) story(t testing.TB, id string) (s dispatch.Story) {
	t.Helper()
	out, err := w.command(t.Context(), "netsky", "task", "show", id, "--json").Output() // without a daemon it warns on stderr
	if err == nil {
		err = json.Unmarshal(out, &s)
	}
	testworld.Must(t, err)
	return s
}

// mustBecome waits until a task is called so.
func (w *world) mustBecome(t testing.TB, id, word string) (s dispatch.Story) {
	t.Helper()
	testworld.WaitOr(t, func() bool { s = w.story(t, id); return s.Word == word }, func() string { return fmt.Sprintf("%s is %s, not %s: %+v", id, s.Word, word, s) })
	return s
}

// mustKillDaemon ends the daemon by SIGKILL.
func (w *world) mustKillDaemon(t testing.TB) {
	t.Helper()
	who := testworld.Got(w.holder())(t)
	testworld.Must(t, syscall.Kill(who.PID, syscall.SIGKILL))
}

// briefs counts the files in a worker's mailbox that give it the task.
func (w *world) briefs(t testing.TB, worker, id string) (n int) {
	t.Helper()
	files := testworld.Got(filepath.Glob(filepath.Join(w.home, "channels", "agent", worker, "*", "*.json")))(t)
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			continue // it was moved on
		}
		if e, err := envelope.Parse(data); err == nil && e.Kind == envelope.KindBrief && e.Thread == id {
			n++
		}
	}
	return n
}

// What was given out goes on over the deaths of the daemon and of the worker: the brief is there
// once, its answer closes the task, and what waited for it starts.
func TestTasksSurvive(t *testing.T) {
	t.Parallel()
	w := mustWorld(t)
	w.must(t, "netsky", "up", "2", "--type", "demo", "--no-attach")
	long := w.mustTask(t, "long", "--body", "/busy 10s", "--agent", "1")
	after := w.mustTask(t, "after", "--needs", long, "--agent", "2")
	w.must(t, "netsky", "task", "start", after)
	w.must(t, "netsky", "task", "start", long)
	w.mustBe(t, "busy")
	w.mustKillDaemon(t)
	h := w.mustHome(t)
	k := testworld.Got(h.LoadKeeper("agent1"))(t)
	if err := syscall.Kill(k.PID, syscall.SIGKILL); err != nil { // with nobody there to see it
		t.Fatal(err)
	}
	w.must(t, "netsky", "watchdog", "tick")
	for _, id := range []string{long, after} {
		s := w.mustBecome(t, id, "claimed")
		if len(s.Starts) != 1 || s.Starts[0].Answer == "" || w.briefs(t, string(s.Assignee), id) != 1 {
			t.Errorf("%s was given out %d times: %+v", s.Title, w.briefs(t, string(s.Assignee), id), s.Starts)
		}
	}
}

// The task of a worker that was ended is said to wait, and is handed on with what is known of it.
func TestTaskIsHandedOn(t *testing.T) {
	t.Parallel()
	w := mustWorld(t)
	w.must(t, "netsky", "up", "2", "--type", "demo", "--no-attach")
	id := w.mustTask(t, "crash", "--body", "/busy 1h", "--agent", "1")
	w.must(t, "netsky", "task", "start", id)
	w.mustBe(t, "busy")
	w.must(t, "netsky", "down", "agent1", "--force")
	testworld.Contains(t, w.must(t, "netsky", "task", "ls"), "crash  agent1 is down", "ls")
	out := w.must(t, "netsky", "task", "start", id, "--agent", "2")
	testworld.Contains(t, out, "given to agent2 (brief-"+id+"-2)", "start")
	s := w.story(t, id)
	if s.Word != "in_progress" || s.Assignee != "agent2" || s.Task.Starts != 2 {
		t.Errorf("%+v", s)
	}
	// The former worker leaves it, however it comes back.
	w.must(t, "netsky", "agent", "1")
	w.mustBe(t, "idle")
	w.must(t, "netsky", "interrupt", "agent2")
	s = w.mustBecome(t, id, "blocked")
	if len(s.Notes) != 1 || s.Notes[0].Author != "agent2" || !strings.Contains(s.Notes[0].Text, "interrupted") {
		t.Errorf("notes: %+v", s.Notes)
	}
}

// The tool with which an agent cancels a task takes its brief back as the verb does.
func TestToolTakesTaskBack(t *testing.T) {
	t.Parallel()
	w := mustWorld(t)
	w.must(t, "netsky", "up", "1", "--type", "demo", "--no-attach")
	w.must(t, "netsky", "down", "agent1", "--force") // without asking it: that would be mail, too
	id := w.mustTask(t, "one", "--agent", "1")
	w.must(t, "netsky", "task", "start", id, "--queue")
	inbox := filepath.Join(w.home, "channels", "agent", "agent1", "inbox", "*.json")
	// The daemon may send it, too, under the same id, if it looks before the verb has.
	if list, err := filepath.Glob(inbox); err != nil || len(list) == 0 {
		t.Fatalf("agent1's inbox has %v, %v", list, err)
	}
	call := w.mustTools(t, "0")
	if text, bad := call("task_update", `{"id":"`+id+`","state":"cancelled"}`); bad {
		t.Error(text)
	}
	w.mustBecome(t, id, "cancelled")
	testworld.Len(t, testworld.Got(filepath.Glob(inbox))(t), 0, "agent1 still has the brief of a cancelled task")
}
