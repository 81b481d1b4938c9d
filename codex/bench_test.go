//go:build live

package codex_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"testing"
	"time"

	"netsky/agent"
	"netsky/bus/envelope"
	"netsky/codex"
	"netsky/internal/testworld"
	"netsky/store"
)

// BenchmarkDrain is a whole drain beside the same turn by a client that does
// nothing else; "ratio" is what netsky costs, of the medians. They take turns, so
// that what the machine does meanwhile hits both.
func BenchmarkDrain(b *testing.B) {
	w := mustWorld(b)
	w.ctx = b.Context()
	w.mustSend(envelope.Envelope{Text: "first"})
	w.mustOnce(nil)
	w.mustReply(agent.Root)
	thread := bareTurn(b, w, "")
	var ours, bare []time.Duration
	b.ResetTimer()
	for b.Loop() {
		w.mustSend(envelope.Envelope{Text: "hello"})
		began := time.Now()
		journal := store.NewJournal(w.home) // as a process of its own has it
		w.mustOnce(func(o *codex.OnceOptions) { o.Records = journal })
		journal.Close()
		ours = append(ours, time.Since(began))
		w.mustReply(agent.Root)
		began = time.Now()
		bareTurn(b, w, thread)
		bare = append(bare, time.Since(began))
	}
	slices.Sort(ours)
	slices.Sort(bare)
	o, r := ours[len(ours)/2], bare[len(bare)/2]
	b.ReportMetric(float64(o)/float64(r), "ratio")
	b.ReportMetric(float64(o.Microseconds())/1e3, "ours-ms")
	b.ReportMetric(float64(r.Microseconds())/1e3, "bare-ms")
}

// bareTurn is one turn by the shortest way through app-server.
func bareTurn(b *testing.B, w *world, thread string) string {
	b.Helper()
	cmd := exec.Command(w.program, "app-server")
	cmd.Env, cmd.Dir = w.env, w.dir
	in := testworld.Got(cmd.StdinPipe())(b)
	out := testworld.Got(cmd.StdoutPipe())(b)
	testworld.Must(b, cmd.Start())
	lines := bufio.NewReader(out)
	until := func(mark string) (line []byte) {
		for {
			line := testworld.Got(lines.ReadBytes('\n'))(b)
			if bytes.Contains(line, []byte(mark)) {
				return line
			}
		}
	}
	fmt.Fprintln(in, `{"id":1,"method":"initialize","params":{"clientInfo":{"name":"bare","title":"bare","version":"1"},"capabilities":{"experimentalApi":true}}}`)
	until(`"id":1`)
	if thread == "" {
		fmt.Fprintf(in, `{"id":2,"method":"thread/start","params":{"cwd":%q,"sandbox":"danger-full-access","approvalPolicy":"never"}}`+"\n", w.dir)
	} else {
		fmt.Fprintf(in, `{"id":2,"method":"thread/resume","params":{"threadId":%q,"excludeTurns":true}}`+"\n", thread)
	}
	var got struct {
		Result struct{ Thread struct{ ID string } }
	}
	testworld.Must(b, json.Unmarshal(until(`"id":2`), &got))
	thread = got.Result.Thread.ID
	fmt.Fprintf(in, `{"id":3,"method":"turn/start","params":{"threadId":%q,"input":[{"type":"text","text":"hello"}]}}`+"\n", thread)
	until(`"turn/completed"`)
	in.Close()
	io.Copy(io.Discard, out)
	testworld.Must(b, cmd.Wait())
	return thread
}
