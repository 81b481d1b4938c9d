//go:build live

package cli_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/claude"
	"netsky/home"
	"netsky/internal/loopmodel/anthropic"
	"netsky/internal/proc"
	"netsky/internal/testworld"
)

// A claudeRig is one agent on Claude Code that has had its first turn.
type claudeRig struct {
	*world
	agent   home.Dir
	config  string // Claude Code's directory
	pid     int    // its process
	model   *anthropic.Server
	events  *home.EventTail
	stops   int
	bucket  float64 // texts that Claude Code takes now
	filled  time.Time
	mu      sync.Mutex // guards arrived
	arrived map[string]time.Time
}

func mustClaudeRig(b *testing.B) *claudeRig {
	b.Helper()
	w, model := mustClaude(b)
	w.config(b, freely)
	h := testworld.Got(home.At(w.home))(b)
	r := &claudeRig{
		world: w, agent: h, config: filepath.Join(w.dir, "cc"), model: model, events: home.Events(h).Tail("agent1"),
		bucket: bucketSize, filled: time.Now(), arrived: make(map[string]time.Time),
	}
	b.Cleanup(func() { r.events.Close() })
	w.must(b, "netsky", "agent", "1", "--type", "claude", "--dir", filepath.Join(w.dir, "src"))
	k := testworld.Got(h.LoadKeeper("agent1"))(b)
	r.pid = k.PID
	return r
}

// Claude Code takes 30 texts in a row and one more every 2 s. What is beyond it
// drops, so the benchmark stays well below.
const (
	bucketSize  = 22
	bucketEvery = 2200 * time.Millisecond
)

// rest waits until Claude Code may be told n texts.
func (r *claudeRig) rest(n float64) {
	now := time.Now()
	r.bucket = min(bucketSize, r.bucket+float64(now.Sub(r.filled))/float64(bucketEvery))
	if r.bucket < n {
		wait := time.Duration((n - r.bucket) * float64(bucketEvery))
		<-time.After(wait)
		now, r.bucket = now.Add(wait), n
	}
	r.bucket, r.filled = r.bucket-n, now
}

// note is a rule that keeps when each message reached the model.
func (r *claudeRig) note(q anthropic.Request) *anthropic.Reply {
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range anthropic.Messages(strings.Join(q.News(), "\n")) {
		if _, ok := r.arrived[m.ID]; !ok {
			r.arrived[m.ID] = now
		}
	}
	return nil
}

// mustArrive waits until a message has reached the model and its turn has ended.
func (r *claudeRig) mustArrive(b *testing.B, id string) (at time.Time) {
	b.Helper()
	ok := false
	stops := r.stops
	r.until(b, "the turn of "+id, func() bool {
		r.mu.Lock()
		at, ok = r.arrived[id]
		r.mu.Unlock()
		return ok && r.countStops(b) > stops && r.idle(b)
	})
	return at
}

func (r *claudeRig) countStops(b *testing.B) int {
	b.Helper()
	testworld.Must(b, r.events.Read(func(e agent.Event) {
		if e.Event == agent.EventStop {
			r.stops++
		}
	}))
	return r.stops
}

// idle says that Claude Code does nothing, and that netsky knows.
func (r *claudeRig) idle(b *testing.B) bool {
	b.Helper()
	s, err := claude.FindSession(r.config, r.pid)
	testworld.Must(b, err)
	report, err := r.agent.LoadReport("agent1")
	return err == nil && s.Status == "idle" && report.State == agent.Idle
}

func (r *claudeRig) until(b *testing.B, what string, ok func() bool) {
	b.Helper()
	testworld.WaitOr(b, ok, func() string { return what + "\n" + r.must(b, "netsky", "peek", "agent1") })
}

// bare writes a text to the messaging socket, as the shortest program would.
func (r *claudeRig) bare(b *testing.B, text string) (began time.Time) {
	b.Helper()
	s := testworld.Got(claude.FindSession(r.config, r.pid))(b)
	var line bytes.Buffer
	enc := json.NewEncoder(&line)
	enc.SetEscapeHTML(false)
	testworld.Must(b, enc.Encode(map[string]any{"type": "user", "message": map[string]string{"role": "user", "content": text}}))
	began = time.Now()
	conn := testworld.Got(net.Dial("unix", s.Socket))(b)
	testworld.Got(conn.Write(line.Bytes()))(b)
	testworld.Must(b, conn.Close())
	return began
}

// BenchmarkClaudeDelivery is the way of an envelope, from the return of Send to
// the request that holds it, beside the same text written to Claude Code's
// messaging socket by hand. Both run the hook. They take turns, each of them when
// the agent is idle.
func BenchmarkClaudeDelivery(b *testing.B) {
	r := mustClaudeRig(b)
	mail := bus.New(r.agent, bus.Options{})
	r.must(b, "netsky", "ask", "agent1", "hello")
	r.model.Handle(r.note)
	r.until(b, "the first turn's end", func() bool { return r.countStops(b) > 0 && r.idle(b) })
	var ours, bare []time.Duration
	n := 0
	send := func() {
		n++
		e := envelope.Envelope{From: agent.Owner, To: "agent1", Text: fmt.Sprintf("say something about number %d", n)}
		receipt := testworld.Got(mail.Send(b.Context(), e))(b)
		began := time.Now()
		ours = append(ours, r.mustArrive(b, receipt.ID).Sub(began))
	}
	write := func() {
		n++
		e := envelope.Envelope{
			ID: fmt.Sprintf("bare-%d", n), From: agent.Owner, To: "agent1", Time: time.Now(),
			Text: fmt.Sprintf("say something about number %d", n),
		}
		began := r.bare(b, envelope.Render(e, time.Now()))
		bare = append(bare, r.mustArrive(b, e.ID).Sub(began))
	}
	for b.Loop() {
		r.rest(2)
		if n%4 == 0 { // neither is always the first
			send()
			write()
		} else {
			write()
			send()
		}
	}
	reportAgainst(b, ours, bare)
}

// BenchmarkClaudeAgent measures a Claude Code agent against the model on the
// loopback: its first turn, a warm one, and the memory of all its processes.
func BenchmarkClaudeAgent(b *testing.B) {
	r := mustClaudeRig(b)
	asked := len(r.model.Requests())
	ask := func() time.Duration {
		r.rest(1)
		began := time.Now()
		r.must(b, "netsky", "ask", "agent1", "hello")
		return time.Since(began)
	}
	cold := ask()
	var warm []time.Duration
	for b.Loop() {
		warm = append(warm, ask())
	}
	slices.Sort(warm)
	r.until(b, "the last turn's end", func() bool { return r.idle(b) })
	rss, pss := r.memory(b)
	b.ReportMetric(float64(asked), "requests-by-up")
	b.ReportMetric(float64(cold.Milliseconds()), "cold-ms")
	b.ReportMetric(float64(warm[len(warm)/2].Milliseconds()), "warm-ms")
	b.ReportMetric(rss, "rss-MB")
	if pss > 0 {
		b.ReportMetric(pss, "pss-MB")
	}
	b.ReportMetric(0, "ns/op")
}

// memory is what the agent's processes take, the keeper left out; pss counts what
// they share once, and is 0 where the system does not tell.
func (r *claudeRig) memory(b *testing.B) (rss, pss float64) {
	b.Helper()
	below := testworld.Got(proc.Descendants(r.pid, ""))(b)
	for _, p := range append(below, proc.Process{PID: r.pid}) {
		out := testworld.Got(exec.Command("ps", "-o", "rss=", "-p", strconv.Itoa(p.PID)).Output())(b)
		kib := testworld.Got(strconv.Atoi(strings.TrimSpace(string(out))))(b)
		rss += float64(kib) / 1024
		pss += proportional(p.PID) / 1024
	}
	return rss, pss
}

// proportional is a process's share of memory in KiB, where the system tells.
func proportional(pid int) (kib float64) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := bytes.Cut(data, []byte("\nPss:"))
	fmt.Sscan(string(rest), &kib)
	return kib
}

// BenchmarkClaudeUp brings three Claude Code agents up, to the last one ready,
// and takes them down when they are idle. Doing so must not ask the model.
func BenchmarkClaudeUp(b *testing.B) {
	w, model := mustClaude(b)
	w.config(b, freely+"[agents]\nruntime = \"claude\"\n[agents.infinity]\nruntime = \"demo\"\n")
	var up, down []time.Duration
	for b.Loop() {
		began := time.Now()
		out := w.must(b, "netsky", "up", "2", "--no-attach", "--dir", filepath.Join(w.dir, "src"))
		up = append(up, time.Since(began))
		if n := strings.Count(out, " ready     claude"); n != 3 {
			b.Fatalf("%d of 3 are ready\n%s", n, out)
		}
		began = time.Now()
		w.must(b, "netsky", "down")
		down = append(down, time.Since(began))
	}
	slices.Sort(up)
	slices.Sort(down)
	b.ReportMetric(up[len(up)/2].Seconds(), "up3-s")
	b.ReportMetric(down[len(down)/2].Seconds(), "down3-s")
	b.ReportMetric(float64(len(model.Requests())), "requests-by-up")
	b.ReportMetric(0, "ns/op")
}
