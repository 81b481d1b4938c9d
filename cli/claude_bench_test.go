package cli_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/home"
	"netsky/internal/testworld"
)

// reportAgainst tells medians and their ratio, and what one in twenty takes at
// least.
func reportAgainst(b *testing.B, ours, bare []time.Duration) {
	slices.Sort(ours)
	slices.Sort(bare)
	ms := func(list []time.Duration, percent int) float64 {
		return float64(list[len(list)*percent/100].Microseconds()) / 1e3
	}
	b.ReportMetric(ms(ours, 50), "ours-ms")
	b.ReportMetric(ms(bare, 50), "bare-ms")
	b.ReportMetric(ms(ours, 95), "ours-p95-ms")
	b.ReportMetric(ms(bare, 95), "bare-p95-ms")
	b.ReportMetric(ms(ours, 50)/ms(bare, 50), "ratio")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkHook times `netsky hook EVENT` as a whole process, as Claude Code runs
// it, against a Go program that prints a line, the two in turn.
func BenchmarkHook(b *testing.B) {
	common := `"session_id":"0b3cbb2c-3f9d-4a5e-8f6a-0d6b8d1f9a10","transcript_path":"/tmp/none.jsonl","cwd":"/tmp","permission_mode":"bypassPermissions"`
	for event, data := range map[string]func(n int) string{
		"PreToolUse": func(n int) string {
			return fmt.Sprintf(`{%s,"hook_event_name":"PreToolUse","tool_name":"Bash","tool_use_id":"t-%d",`+
				`"tool_input":{"command":"go test ./...","description":"run the tests"}}`, common, n)
		},
		"UserPromptSubmit": func(n int) string {
			e := envelope.Envelope{ID: fmt.Sprintf("m-%d", n), From: agent.Owner, To: "agent1", Time: time.Now(), Text: "do something"}
			prompt, _ := json.Marshal(envelope.Render(e, time.Now()))
			return fmt.Sprintf(`{%s,"hook_event_name":"UserPromptSubmit","prompt":%s}`, common, prompt)
		},
	} {
		b.Run(event, func(b *testing.B) { hooks(b, event, data) })
	}
}

func hooks(b *testing.B, event string, data func(n int) string) {
	w := mustWorld(b)
	hello := mustHello(b, b.TempDir())
	h := testworld.Got(home.At(w.home))(b)
	testworld.Must(b, bus.New(h, bus.Options{}).Make("agent1"))
	w.env = append(w.env, "AGENT_N=1", "NETSKY_START=0123456789abcdef")
	run := func(in string, name string, args ...string) time.Duration {
		cmd := w.command(b.Context(), name, args...)
		cmd.Stdin = strings.NewReader(in)
		began := time.Now()
		if out, err := cmd.CombinedOutput(); err != nil || name != hello && len(out) > 0 {
			b.Fatalf("%s: %v\n%s", name, err, out)
		}
		return time.Since(began)
	}
	ours := filepath.Join(binDir(), "netsky")
	var us, them []time.Duration
	n := 0
	for b.Loop() {
		n++
		in := data(n)
		us = append(us, run(in, ours, "hook", event))
		them = append(them, run(in, hello))
	}
	reportAgainst(b, us, them)
	w.env = slices.DeleteFunc(w.env, func(v string) bool { return strings.HasPrefix(v, "AGENT_N=") })
	tail, lines := home.Events(h).Tail("agent1"), 0
	defer tail.Close()
	if err := tail.Read(func(e agent.Event) { lines++ }); err != nil || lines < n {
		b.Fatalf("%d hooks left %d events: %v", n, lines, err)
	}
}
