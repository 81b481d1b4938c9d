package codex_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"netsky/codex"
	"netsky/internal/testworld"
)

const thread = "01a20b6a-0add-7bd3-abe1-e404fa7b2e98" // begun on 2026-11-24

// Lines as Codex 0.169 writes them, shortened.
const (
	meta        = `{"timestamp":"2026-11-24T02:37:08.739Z","ordinal":0,"type":"session_meta","payload":{"account_scoped":true,"session_id":"%s","id":"%s","cwd":"/w","cli_version":"0.169.0","source":"exec","model_provider":"loop"}}`
	turnContext = `{"timestamp":"2026-11-24T02:37:08.776Z","ordinal":5,"type":"turn_context","payload":{"turn_id":"T1","root_turn_id":"T1","cwd":"/w","model":"gpt-5.5","summary":"none"}}`
	record      = `{"timestamp":"2026-11-24T02:37:08.821Z","ordinal":10,"type":"token_usage_record","payload":{"thread_id":"TH","turn_id":"T1","session_id":"TH","root_turn_id":"T1","response_id":"resp_1","usage":{"input_tokens":100,"cached_input_tokens":60,"cache_write_input_tokens":10,"output_tokens":7,"reasoning_output_tokens":5,"total_tokens":107},"turn_token_usage":{"input_tokens":100,"total_tokens":107},"thread_token_usage":{"input_tokens":9516,"total_tokens":9523}}}`
	count       = `{"timestamp":"2026-11-24T02:37:08.917Z","ordinal":13,"type":"event_msg","payload":{"type":"token_count","info":{"total_token_usage":{"input_tokens":%d,"cached_input_tokens":0,"output_tokens":7,"total_tokens":%[1]d},"last_token_usage":{"input_tokens":100,"cached_input_tokens":60,"output_tokens":7,"reasoning_output_tokens":5,"total_tokens":107},"model_context_window":258400},"rate_limits":{"limit_id":"codex"}}}`
	limits      = `{"timestamp":"2026-11-24T02:37:08.917Z","type":"event_msg","payload":{"type":"token_count","info":null,"rate_limits":{"limit_id":"codex"}}}`
)

func given(turn, text string) string {
	return fmt.Sprintf(`{"timestamp":"2026-11-24T02:37:08.793Z","ordinal":8,"type":"event_msg","payload":{"type":"item_completed","thread_id":"TH","turn_id":%q,"item":{"type":"UserMessage","id":"i","content":[{"type":"text","text":%q,"text_elements":[]}]}}}`, turn, text)
}

// open opens a Reader of the thread.
func open(state string) testworld.Reader { return codex.OpenUsage(thread, state) }

func TestLine(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		lines []string
		want  string
	}{
		{"a record, and the sum after it", []string{turnContext, given("T1", testworld.Rendered("m-1")), record, fmt.Sprintf(count, 9523)}, "T1 resp_1|gpt-5.5|T1|m-1:30+7+60+10"},
		{"of another turn", []string{turnContext, given("T0", testworld.Rendered("m-1")), record}, "T1 resp_1|gpt-5.5|T1|:30+7+60+10"},
		{"steered", []string{turnContext, given("T1", testworld.Rendered("m-1")), given("T1", testworld.Rendered("m-2")), record}, "T1 resp_1|gpt-5.5|T1|m-1:30+7+60+10"},
		{"only sums, one of them repeated", []string{turnContext, fmt.Sprintf(count, 107), fmt.Sprintf(count, 107), limits, fmt.Sprintf(count, 214)},
			thread + " sum 107|gpt-5.5||:40+7+60+0 " + thread + " sum 214|gpt-5.5||:40+7+60+0"},
		{"more cached than there is", []string{strings.Replace(record, `"cached_input_tokens":60`, `"cached_input_tokens":600`, 1)}, "T1 resp_1||T1|:0+7+100+0"},
		{"others", []string{"", "{", fmt.Sprintf(meta, thread, thread), `{"type":"token_usage_record"}`, `{"type":"token_usage_record","payload":{"usage":{}}}`, `{"type":"event_msg","payload":{"type":"token_count"}}`}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			testworld.Check(t, open, tt.want, tt.lines...)
		})
	}
}

// A thread's files are its own and those of the threads that it began, nobody else's.
func TestFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	began := time.Date(2026, 11, 24, 2, 37, 8, 0, time.UTC)
	for name, session := range map[string]string{
		"2026/11/24/rollout-2026-11-24T02-37-08-" + thread + ".jsonl": thread,
		"2026/11/26/rollout-2026-11-26T01-00-00-child.jsonl":          thread,
		"2026/11/26/rollout-2026-11-26T01-00-00-other.jsonl":          "other",
		"2026/11/26/rollout-2026-11-26T01-00-01-torn.jsonl":           "",
	} {
		file := filepath.Join(dir, "sessions", name)
		testworld.Must(t, os.MkdirAll(filepath.Dir(file), 0o700))
		testworld.Must(t, os.WriteFile(file, []byte(fmt.Sprintf(meta, session, "x")+"\n"), 0o600))
	}
	var f codex.UsageFinder
	env := []string{"HOME=/nowhere", "CODEX_HOME=" + dir}
	for range 2 { // the second time from memory
		got := f.Files(env, thread, began.AddDate(0, 0, 2))
		if len(got) != 2 || !strings.HasSuffix(got[0], "child.jsonl") || !strings.HasSuffix(got[1], thread+".jsonl") {
			t.Errorf("Files = %q, want child's and its own", got)
		}
	}
	for _, bad := range []string{"", "../x", strings.Repeat("z", 36)} {
		testworld.EqualList(t, f.Files(env, bad, began), nil, "Files(%q)", bad)
	}
}

// What a thread began while nobody looked is found once somebody does.
func TestFilesOfDays(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	began := time.Date(2026, 11, 24, 2, 37, 8, 0, time.UTC)
	file := filepath.Join(dir, "sessions", began.AddDate(0, 0, 4).Format("2006/01/02"), "rollout-child.jsonl")
	testworld.Must(t, os.MkdirAll(filepath.Dir(file), 0o700))
	testworld.Must(t, os.WriteFile(file, []byte(fmt.Sprintf(meta, thread, "x")+"\n"), 0o600))
	var f codex.UsageFinder
	env := []string{"CODEX_HOME=" + dir}
	for _, want := range []int{1, 0} {
		if got := f.Files(env, thread, began.AddDate(0, 0, 9)); len(got) != want {
			t.Errorf("Files = %q, want %d", got, want)
		}
	}
}

func FuzzLine(f *testing.F) {
	for _, l := range []string{turnContext, record, fmt.Sprintf(count, 107), limits, given("T1", testworld.Rendered("m-1"))} {
		f.Add([]byte(l), "")
	}
	f.Fuzz(func(t *testing.T, line []byte, state string) {
		testworld.Fuzz(t, open, line, state)
		turns, _ := open(state).Line(line)
		for _, n := range turns {
			if u := n.Usage; u.CacheRead < 0 || u.CacheWrite < 0 {
				t.Errorf("%+v", n)
			}
		}
	})
}
