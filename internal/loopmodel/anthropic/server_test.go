package anthropic_test

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"netsky/internal/loopmodel/anthropic"
	"netsky/internal/testworld"
)

// mustPost posts a body to the model and returns the status and the answer.
func mustPost(tb testing.TB, url, body string) (int, string) {
	tb.Helper()
	answer := testworld.Got(http.Post(url, "application/json", strings.NewReader(body)))(tb)
	defer answer.Body.Close()
	data := testworld.Got(io.ReadAll(answer.Body))(tb)
	return answer.StatusCode, string(data)
}

const tools = `"model":"m","tools":[{"name":"Bash"}]`

// text is what a stream's text deltas say.
func text(stream string) string {
	var b strings.Builder
	lines := bufio.NewScanner(strings.NewReader(stream))
	for lines.Scan() {
		var event struct{ Delta struct{ Text string } }
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok && json.Unmarshal([]byte(data), &event) == nil {
			b.WriteString(event.Delta.Text)
		}
	}
	return b.String()
}

func TestRules(t *testing.T) {
	t.Parallel()
	model := mustModel(t)
	answer := func(said string) string {
		t.Helper()
		status, stream := mustPost(t, model.URL()+"/v1/messages?beta=true", `{`+tools+`,"messages":[{"role":"user","content":"`+said+`"}]}`)
		if status != http.StatusOK {
			t.Fatalf("%q: status %d: %s", said, status, stream)
		}
		return text(stream)
	}
	for i, name := range []string{"old", "new"} {
		model.Handle(func(q anthropic.Request) *anthropic.Reply {
			if i == 1 && q.Last() != "both" || q.Last() == "none" {
				return nil
			}
			return &anthropic.Reply{Text: name}
		})
	}
	for said, want := range map[string]string{"both": "new", "one": "old", "none": "echo: none"} {
		testworld.Equal(t, answer(said), want, "answer to %q", said)
	}
}

func TestOthers(t *testing.T) {
	t.Parallel()
	model := mustModel(t)
	if answer, err := http.Head(model.URL() + "/api/hello"); err != nil || answer.StatusCode != http.StatusOK {
		t.Errorf("HEAD /api/hello = %v, %v", answer, err)
	}
	body := `{` + tools + `,"messages":[{"role":"user","content":"` + strings.Repeat("word ", 100) + `"}]}`
	if status, answer := mustPost(t, model.URL()+"/v1/messages/count_tokens", body); status != http.StatusOK || !strings.HasPrefix(answer, `{"input_tokens":1`) {
		t.Errorf("count_tokens = %d, %s", status, answer)
	}
	for path, want := range map[string]int{"/v1/files": http.StatusNotFound, "/v1/messages": http.StatusBadRequest} {
		status, answer := mustPost(t, model.URL()+path, `[]`)
		var body struct{ Type string }
		if status != want || json.Unmarshal([]byte(answer), &body) != nil || body.Type != "error" {
			t.Errorf("POST %s = %d, %s; want %d and an error as JSON", path, status, answer, want)
		}
	}
	testworld.EqualList(t, model.Strays(), []string{"POST /v1/files"}, "strays")
	testworld.Equal(t, len(model.Requests()), 0, "requests")
}

// Close ends what is being answered and what is waited for.
func TestClose(t *testing.T) {
	t.Parallel()
	model := mustModel(t)
	model.Handle(func(anthropic.Request) *anthropic.Reply { return &anthropic.Reply{Hold: make(chan struct{})} })
	ended := make(chan error, 1)
	go func() {
		answer, err := http.Post(model.URL()+"/v1/messages", "application/json", strings.NewReader(`{`+tools+`,"messages":[{"role":"user","content":"x"}]}`))
		if err == nil {
			answer.Body.Close()
		}
		ended <- err
	}()
	if _, ok := model.Wait(t.Context().Done(), said("x")); !ok {
		t.Fatal("the request was not seen")
	}
	for range 2 {
		testworld.Equal(t, model.Close(), nil, "Close")
	}
	testworld.Fails(t, <-ended, "", "the held request was answered")
	done := make(chan struct{})
	close(done)
	if _, ok := model.Wait(done, said("never")); ok {
		t.Error("Wait found what was never said")
	}
}

// What Claude Code writes around a text, or all by itself, is not what was said.
func TestSaid(t *testing.T) {
	t.Parallel()
	const (
		peer  = `Another Claude session sent a message:\nTEXT\n\nThis came from another Claude session — not typed by your user`
		while = `Another Claude session sent a message while you were working:\nTEXT\n\nThis came from another Claude session — not typed`
		typed = `The user sent a new message while you were working:\nTEXT\n\nThis is how Claude Code surfaces messages the user sends`
	)
	wrap := func(wrapper, said string) string { return strings.ReplaceAll(wrapper, "TEXT", said) }
	for _, tt := range []struct {
		name, messages string
		said           []string
		fresh          int
		outputs        []string
	}{
		{"reminder", `{"role":"user","content":[{"type":"text","text":"<system-reminder>x</system-reminder>\n"},{"type":"text","text":"<system-reminder>y</system-reminder>\nhi"}]}`, []string{"hi"}, 1, nil},
		{"peer", `{"role":"user","content":"` + wrap(peer, `a\nb`) + `"}`, []string{"a\nb"}, 1, nil},
		{"two peers", `{"role":"user","content":[{"type":"text","text":"` + wrap(peer, "a") + `"},{"type":"text","text":"` + wrap(peer, "b") + `"}]}`, []string{"a", "b"}, 2, nil},
		{"beside a tool", `{"role":"user","content":"go"},{"role":"assistant","content":"x"},
			{"role":"user","content":[{"type":"tool_result","content":"out"},{"type":"text","text":"` + wrap(typed, "c") + `"}]},
			{"role":"system","content":"` + wrap(while, "a") + `\n\n` + wrap(while, "b") + `\n\n# Environment\nx"}`, []string{"go", "c", "a", "b"}, 3, nil},
		{"tool", `{"role":"user","content":"go"},{"role":"assistant","content":"x"},{"role":"user","content":[{"type":"tool_result","content":[{"type":"text","text":"out\n\n<system-reminder>z</system-reminder>"}]}]}`, []string{"go"}, 0, []string{"out"}},
		{"interrupted", `{"role":"user","content":"go"},{"role":"user","content":"[Request interrupted by user]"},{"role":"user","content":"on"}`, []string{"go", "on"}, 1, nil},
		{"command", `{"role":"user","content":"<command-name>/clear</command-name>"},{"role":"user","content":"hi"}`, []string{"hi"}, 1, nil},
		{"rules", `{"role":"user","content":"hi"},{"role":"system","content":"# Environment"}`, []string{"hi"}, 1, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			model := mustModel(t)
			mustPost(t, model.URL()+"/v1/messages", `{`+tools+`,"messages":[`+tt.messages+`]}`)
			list := model.Requests()
			if len(list) != 1 {
				t.Fatalf("%d requests, want 1", len(list))
			}
			if q := list[0]; !slices.Equal(q.Said, tt.said) || q.Fresh != tt.fresh || !slices.Equal(q.Outputs, tt.outputs) {
				t.Errorf("said %q, %d fresh, outputs %q; want %q, %d, %q", q.Said, q.Fresh, q.Outputs, tt.said, tt.fresh, tt.outputs)
			}
		})
	}
}

// Whatever the text: Messages ends, and gives only what has an id.
func FuzzMessages(f *testing.F) {
	f.Add("<channel source=\"agent\" from=\"a\" id=\"i\">\n&lt;x&amp;\n</channel>")
	f.Add(`<channel id="a"><channel id="b">x</channel>`)
	f.Add(`<channel `)
	f.Fuzz(func(t *testing.T, text string) {
		for _, m := range anthropic.Messages(text) {
			if m.ID == "" {
				t.Errorf("Messages(%q) has one without an id", text)
			}
		}
	})
}
