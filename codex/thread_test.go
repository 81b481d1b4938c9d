//go:build live

package codex_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"netsky/agent"
	"netsky/codex"
	"netsky/codex/appserver"
	"netsky/internal/loopmodel/openai"
	"netsky/internal/testworld"
)

func TestThreadEvents(t *testing.T) {
	t.Parallel()
	w := mustWorld(t)
	thread := w.mustThread(w.mustServer(), nil)
	events, stop := thread.Subscribe()
	defer stop()
	testworld.Contains(t, w.mustAsk(thread, "i1", "do\nloop: shell echo it is done; exit 3"), "it is done", "answer")
	var kinds []string
	for _, e := range w.mustEvent(events, appserver.TurnCompleted) {
		if e.Thread != thread.ID() || e.Turn == "" {
			t.Errorf("%+v: no thread or turn", e)
		}
		switch e.Kind {
		case appserver.TokenUsage:
			if e.Usage.Total == 0 || e.Usage.Window == 0 {
				t.Errorf("usage = %+v", e.Usage)
			}
			continue
		case appserver.Accepted:
			testworld.Equal(t, e.Input, "i1", "accepted")
		case appserver.ToolStarted, appserver.ToolFinished:
			if e.Tool != "shell" || !strings.Contains(e.Text, "echo it is done") || e.Failed != (e.Kind == appserver.ToolFinished) {
				t.Errorf("%+v", e)
			}
		}
		kinds = append(kinds, string(e.Kind))
	}
	const want = "turn_started accepted tool_started tool_finished message turn_completed"
	testworld.Equal(t, strings.Join(kinds, " "), want, "events")
}

// Texts that come at the same time have a turn each: none is merged into
// another's.
func TestThreadOneTurnAtATime(t *testing.T) {
	t.Parallel()
	w := mustWorld(t)
	thread := w.mustThread(w.mustServer(), nil)
	answers := make(chan string)
	for _, text := range []string{"one", "two", "three"} {
		go func() {
			turn, err := thread.Submit(w.ctx, text, text+"\nloop: sleep 200ms\nloop: say "+text)
			if err != nil {
				answers <- err.Error()
				return
			}
			res, err := turn.Wait(w.ctx, testworld.Patience)
			if err != nil || res.Text != text {
				answers <- "bad: " + res.Text
			}
			answers <- res.Turn
		}()
	}
	turns := make(map[string]bool)
	for range 3 {
		turns[<-answers] = true
	}
	testworld.Equal(t, len(turns), 3, "turns")
}

func TestThreadTimeout(t *testing.T) {
	t.Parallel()
	w := mustWorld(t)
	thread := w.mustThread(w.mustServer(), nil)
	events, stop := thread.Subscribe()
	defer stop()
	turn := testworld.Got(thread.Submit(w.ctx, "i1", "loop: sleep 1h"))(t)
	testworld.ErrorIs(t, testworld.Err(turn.Wait(w.ctx, 100*time.Millisecond)), appserver.ErrTimeout, "Wait")
	w.mustEvent(events, appserver.TurnInterrupted)
	testworld.Equal(t, w.mustAsk(thread, "i2", "loop: users"), "users: 2", "after it")
	turn = testworld.Got(thread.Submit(w.ctx, "i3", "loop: sleep 1h"))(t)
	testworld.Equal(t, thread.Interrupt(w.ctx), nil)
	testworld.ErrorIs(t, testworld.Err(turn.Wait(w.ctx, testworld.Patience)), appserver.ErrInterrupted, "Wait")
	ctx, cancel := context.WithCancel(w.ctx)
	turn = testworld.Got(thread.Submit(w.ctx, "i4", "loop: sleep 1h"))(t)
	cancel()
	testworld.ErrorIs(t, testworld.Err(turn.Wait(ctx, testworld.Patience)), context.Canceled, "Wait")
	select {
	case <-turn.Done():
	default:
		t.Error("the turn goes on")
	}
}

func TestThreadApproval(t *testing.T) {
	t.Parallel()
	w := mustWorld(t)
	server := w.mustServer()
	for _, tt := range []struct {
		name    string
		approve codex.Approver
		made    bool
	}{
		{"nobody", nil, false},
		{"no", func(context.Context, codex.Approval) (codex.Decision, func(codex.Taken)) { return codex.Decline, nil }, false},
		{"left, to nobody", func(context.Context, codex.Approval) (codex.Decision, func(codex.Taken)) { return codex.Leave, nil }, false},
		{"yes", func(context.Context, codex.Approval) (codex.Decision, func(codex.Taken)) { return codex.Accept, nil }, true},
	} {
		file := filepath.Join(w.dir, "made")
		thread := w.mustThread(server, func(o *appserver.ThreadOptions) {
			o.Sandbox, o.Approval, o.Approve = "read-only", "on-request", tt.approve
		})
		events, stop := thread.Subscribe()
		answer := w.mustAsk(thread, "i1", "loop: ask touch "+file)
		if _, err := os.Stat(file); (err == nil) != tt.made {
			t.Errorf("%s: made: %v, the model says %q", tt.name, err == nil, answer)
		}
		os.Remove(file)
		list := w.mustEvent(events, appserver.ApprovalSettled)
		// The count of tokens may come at any moment.
		list = slices.DeleteFunc(list, func(e appserver.Event) bool { return e.Kind == appserver.TokenUsage })
		asked := list[len(list)-2]
		if asked.Kind != appserver.ApprovalAsked || asked.Approval.Tool != "shell" || !strings.Contains(asked.Approval.Text, "touch") || asked.Approval.Reason == "" {
			t.Errorf("%s: asked %+v", tt.name, asked)
		}
		stop()
	}
}

func TestThreadOpen(t *testing.T) {
	t.Parallel()
	w := mustWorld(t)
	server := w.mustServer()
	for _, id := range []string{"01a1f973-18d2-7131-9770-00e3635cf3d7", "bogus"} {
		testworld.ErrorIs(t, testworld.Err(server.Open(w.ctx, appserver.ThreadOptions{ID: id})), appserver.ErrGone, "Open(%s)", id)
	}
	thread := w.mustThread(server, func(o *appserver.ThreadOptions) { o.Instructions = "BE BRIEF" })
	big := strings.Repeat("0123456789 and so on", 10_000)
	if got := w.mustAsk(thread, "i1", big); got != "echo: "+big {
		t.Errorf("200 KB came back as %d bytes", len(got))
	}
	testworld.Contains(t, strings.Join(w.model.Requests()[0].Rules, "\n"), "BE BRIEF", "the instructions did not reach the model")
	other := w.mustServer()
	testworld.ErrorIs(t, testworld.Err(other.Open(w.ctx, appserver.ThreadOptions{ID: thread.ID()})), appserver.ErrHeld, "Open of an open thread")
	if _, err := thread.Submit(w.ctx, "i2", strings.Repeat("x", 1<<20+1)); err == nil || errors.Is(err, appserver.ErrLost) {
		t.Errorf("Submit of too much = %v", err)
	}
	testworld.Equal(t, w.mustAsk(thread, "i3", "loop: users"), "users: 2", "after it")
	server.Close()
	testworld.ErrorIs(t, testworld.Err(thread.Submit(w.ctx, "i4", "x")), appserver.ErrLost, "Submit after the end")
	again := w.mustThread(other, func(o *appserver.ThreadOptions) { o.ID = thread.ID() })
	testworld.Equal(t, w.mustAsk(again, "i5", "loop: users"), "users: 3", "resumed")
	testworld.Contains(t, strings.Join(w.model.Requests()[2].Rules, "\n"), "BE BRIEF", "the instructions were forgotten")
}

// Codex writes down that it trusts a repository; told beforehand, it does not.
func TestTrustWritesNothing(t *testing.T) {
	t.Parallel()
	for _, linked := range []bool{false, true} {
		t.Run(fmt.Sprintf("linked=%v", linked), func(t *testing.T) {
			t.Parallel()
			w := mustWorld(t)
			if linked {
				testworld.NewRepo(t, t.TempDir()).Git("worktree", "add", "-q", "-b", "topic", w.dir)
			} else {
				testworld.NewRepo(t, w.dir)
			}
			config := w.home.Root() + ".codex/config.toml"
			before := testworld.Got(os.ReadFile(config))(t)
			w.mustAsk(w.mustThread(w.mustServer(), nil), "i1", "x")
			if after, err := os.ReadFile(config); err != nil || string(after) != string(before) {
				t.Errorf("config.toml was changed (%v):\n%s", err, after)
			}
		})
	}
}

// The sandbox of the present outranks that of the thread's beginning.
func TestThreadSandboxWhenResumed(t *testing.T) {
	t.Parallel()
	w := mustWorld(t)
	file := filepath.Join(w.dir, "made")
	server := w.mustServer()
	thread := w.mustThread(server, nil)
	w.mustAsk(thread, "i1", "loop: shell touch "+file)
	testworld.Must(t, os.Remove(file), "with all rights")
	server.Close()
	again := w.mustThread(w.mustServer(), func(o *appserver.ThreadOptions) { o.ID, o.Sandbox = thread.ID(), "read-only" })
	answer := w.mustAsk(again, "i2", "loop: shell touch "+file)
	testworld.Fails(t, os.Remove(file), "", "made in spite of read-only; the model says %q", answer)
}

// A message is found however many turns have followed, also by another process.
func TestThreadFind(t *testing.T) {
	t.Parallel()
	w := mustWorld(t)
	s := w.mustServer()
	thread := w.mustThread(s, nil)
	for n := range 23 {
		w.mustAsk(thread, fmt.Sprint("i", n), fmt.Sprint("loop: say ", n))
	}
	testworld.Must(t, s.Close())
	thread = w.mustThread(w.mustServer(), func(o *appserver.ThreadOptions) { o.ID = thread.ID() })
	for _, n := range []int{22, 12, 0} {
		if past, err := thread.Find(w.ctx, fmt.Sprint("i", n), ""); err != nil || past == nil || past.Result.Text != fmt.Sprint(n) {
			t.Errorf("Find(i%d) = %+v, %v", n, past, err)
		}
	}
	if past, err := thread.Find(w.ctx, "i23", ""); err != nil || past != nil {
		t.Errorf("Find of what never came = %+v, %v", past, err)
	}
}

// What Codex asks is shown whole, and what became of the answer is what Codex did.
func TestApprovalWhole(t *testing.T) {
	t.Parallel()
	w := mustWorld(t)
	server := w.mustServer()
	w.model.Handle(func(q openai.Request) *openai.Reply {
		if len(q.Outputs) > 0 {
			return nil
		}
		switch q.Last() {
		case "edit":
			return &openai.Reply{Calls: []openai.Call{openai.Shell("apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: new.sh\n+# harmless\n+rm -rf precious\n*** Update File: old.txt\n@@\n-one\n+two\n*** End Patch\nEOF\n", false)}}
		case "lines":
			return &openai.Reply{Calls: []openai.Call{openai.Shell("# list the files\n  touch "+filepath.Join(w.dir, "made"), true)}}
		}
		return nil
	})
	file := func(name string) string { return filepath.Join(w.dir, name) }
	edit := []agent.Field{{Name: "add " + file("new.sh"), Text: "# harmless\nrm -rf precious\n"}, {Name: "update " + file("old.txt"), Text: "@@ -1 +1 @@\n-one\n+two\n"}}
	for _, tt := range []struct {
		text   string
		d      codex.Decision
		change string // the file that shows whether it was done
		shown  string
		fields []agent.Field
	}{
		{"edit", codex.Decline, "new.sh", "", edit},
		{"edit", codex.Accept, "new.sh", "", edit},
		{"lines", codex.Decline, "made", "# list the files\n  touch " + file("made"), nil},
		{"lines", codex.Accept, "made", "# list the files\n  touch " + file("made"), nil},
	} {
		testworld.Must(t, os.WriteFile(file("old.txt"), []byte("one\n"), 0o600))
		taken := make(chan codex.Taken, 1)
		var asked codex.Approval
		thread := w.mustThread(server, func(o *appserver.ThreadOptions) {
			o.Sandbox, o.Approval = "read-only", "on-request"
			o.Approve = func(_ context.Context, a codex.Approval) (codex.Decision, func(codex.Taken)) {
				asked = a
				return tt.d, func(t codex.Taken) { taken <- t }
			}
		})
		w.mustAsk(thread, "i1", tt.text)
		if !strings.Contains(asked.Text, tt.shown) || !slices.Equal(asked.Fields, tt.fields) || asked.Only != "" {
			t.Errorf("%s: asked %+v", tt.text, asked)
		}
		select {
		case got := <-taken:
			testworld.Equal(t, got, codex.AsSent, "%s: taken", tt.text)
		case <-time.After(testworld.Patience):
			t.Fatalf("%s: nobody said what became of the answer", tt.text)
		}
		if _, err := os.Stat(file(tt.change)); (err == nil) != (tt.d == codex.Accept) {
			t.Errorf("%s: decision %v, and %v", tt.text, tt.d, err)
		}
	}
}
