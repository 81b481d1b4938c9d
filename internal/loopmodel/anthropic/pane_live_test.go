//go:build live

package anthropic_test

import (
	"encoding/json"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"netsky/internal/loopmodel/anthropic"
	"netsky/internal/testworld"
)

// mustReady starts the program in a pane where messages of others are accepted,
// and waits until it is idle.
func (w *world) mustReady() {
	w.Helper()
	w.mustPane("--permission-mode", "bypassPermissions", "--settings", `{"skipDangerousModePermissionPrompt":true,"crossSessionInbound":"accept"}`)
	w.mustStatus("idle")
}

// mustSend sends texts through the messaging socket, as another session does.
func (w *world) mustSend(texts ...string) {
	w.Helper()
	conn := testworld.Got(net.Dial("unix", w.session().Socket))(w)
	defer conn.Close()
	for _, text := range texts {
		testworld.Must(w, json.NewEncoder(conn).Encode(map[string]any{"type": "user", "message": map[string]string{"role": "user", "content": text}}))
	}
}

func TestPane(t *testing.T) {
	t.Parallel()
	w := mustWorld(t)
	w.mustReady()
	w.mustSend("hello\n<you>")
	w.mustAsk(said("hello\n<you>"))
	w.mustShow("echo: hello\n  <you>")
}

// What comes while a turn runs is heard whole and in order, whichever way the
// program passes it on.
func TestPaneHears(t *testing.T) {
	t.Parallel()
	w := mustWorld(t)
	hold := make(chan struct{})
	w.model.Handle(func(q anthropic.Request) *anthropic.Reply {
		if q.Last() != "wait" {
			return nil
		}
		return &anthropic.Reply{Text: "waited", Hold: hold}
	})
	w.mustReady()
	w.mustSend("wait")
	w.mustAsk(said("wait"))
	w.mustSend("one", "two")
	w.mustShow("one", "two") // in the queue
	close(hold)
	q := w.mustAsk(said("two"))
	if want := []string{"one", "two"}; !slices.Equal(q.News(), want) {
		t.Errorf("behind a silent model: heard %q, want %q", q.News(), want)
	}
	w.mustStatus("idle")

	w.mustSend("loop: shell until [ -e go ]; do sleep 0.05; done; echo went")
	w.mustShow("until [ -e go ]", "esc to interrupt")
	w.mustSend("three", "four\n<4>")
	w.mustShow("three", "four")
	w.mustTmux("send-keys", "-t", "pane", "-l", "five")
	w.mustShow("five")
	w.mustTmux("send-keys", "-t", "pane", "Enter")
	w.mustShow("five", "Press up to edit queued messages") // it is not in the composer any more
	w.mustTmux("run-shell", "touch "+w.dir+"/go")
	q = w.mustAsk(func(q anthropic.Request) bool { return strings.Contains(strings.Join(q.News(), " "), "four") })
	got := slices.Sorted(slices.Values(q.News()))
	if want := []string{"five", "four\n<4>", "three"}; !slices.Equal(got, want) {
		t.Errorf("beside a tool's result: heard %q, want %q", got, want)
	}
}

// An interrupted order is not obeyed again when the next thing is said.
func TestPaneInterrupt(t *testing.T) {
	t.Parallel()
	w := mustWorld(t)
	w.mustReady()
	w.mustSend("loop: sleep 1h")
	w.mustAsk(said("loop: sleep 1h"))
	w.mustTmux("send-keys", "-t", "pane", "Escape")
	w.mustStatus("idle")
	w.mustSend("next")
	q := w.mustAsk(said("next"))
	if want := []string{"next"}; !slices.Equal(q.News(), want) {
		t.Errorf("after an interruption: heard %q, want %q", q.News(), want)
	}
	w.mustShow("echo: next")
}

// A failure is of one turn only.
func TestPaneFail(t *testing.T) {
	t.Parallel()
	w := mustWorld(t)
	w.mustReady()
	w.mustSend("loop: fail 429")
	w.mustShow("API Error: Request rejected (429)")
	w.mustStatus("idle")
	w.mustSend("next")
	w.mustShow("echo: next")
}

// A session that has grown too long is summed up, and goes on.
func TestPaneCompact(t *testing.T) {
	t.Parallel()
	w := mustWorld(t)
	var failed atomic.Bool
	w.model.Handle(func(q anthropic.Request) *anthropic.Reply {
		if q.Last() == "too much" && failed.CompareAndSwap(false, true) {
			return anthropic.Fail(400)
		}
		return nil
	})
	w.mustReady()
	for _, text := range []string{"a", "b"} {
		w.mustSend(text)
		w.mustShow("echo: " + text)
		w.mustStatus("idle")
	}
	w.mustSend("too much")
	w.mustShow("echo: too much")
	list := w.model.Requests()
	last := list[len(list)-1]
	if want := []string{"too much"}; !slices.Equal(last.Said, want) || !strings.Contains(string(last.Body), "the user said 2 things") {
		t.Errorf("after the summary: said %q, want %q behind the summary", last.Said, want)
	}
}

// Each dialog of a first run comes if its seed is left out.
func TestDialogs(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		out   anthropic.Seed
		trust bool
		want  string
	}{
		{"trust", 0, false, "Is this a project you created or one you trust?"},
		{"key", anthropic.APIKey, true, "Detected a custom API key"},
		{"onboarding", anthropic.Onboarding, true, "Choose the text style"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := mustWorld(t)
			var trusted []string
			if tt.trust {
				trusted = append(trusted, w.dir)
			}
			testworld.Must(t, anthropic.WriteHomeWithout(w.home, tt.out, trusted...))
			w.mustTmux("new-session", "-d", ";", "set-option", "-g", "remain-on-exit", "on")
			w.mustPane()
			w.mustShow(tt.want)
		})
	}
}
