//go:build live

package cli_test

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"netsky/agent"
	"netsky/bus/envelope"
	"netsky/home"
	"netsky/internal/loopmodel/anthropic"
	"netsky/internal/proc"
	"netsky/internal/testworld"
)

// Fifty messages to each of two clones while their MCP servers, Claude Code
// itself, its hooks and the daemon are killed. Nothing is lost, nothing answered
// twice or by what was said to another, and no conversation holds anything twice.
func TestClaudeKilled(t *testing.T) {
	t.Parallel()
	s := mustStorm(t, freely, "agent1", "agent2")
	for _, id := range s.agents {
		s.revive(id)
	}
	var mu sync.Mutex // guards what follows
	about := make(map[string]string)
	s.model.Handle(func(q anthropic.Request) *anthropic.Reply { // turns that are worth killing
		r := s.answer(q)
		r.Delay = rand.N(500 * time.Millisecond)
		mu.Lock()
		defer mu.Unlock()
		about[words(r.Text)] += strings.Join(q.News(), "\n")
		return r
	})
	kinds := slices.Concat(slices.Repeat([]string{"claude", "server"}, 4), slices.Repeat([]string{"prompt", "stop"}, 3), []string{"daemon"})
	s.random.Shuffle(len(kinds), func(i, j int) { kinds[i], kinds[j] = kinds[j], kinds[i] })
	killed := map[string]int{}
	for i, kind := range kinds {
		id := s.victim(kind)
		for _, id := range s.agents {
			for n := len(s.sent[id]); n < 50*(i+1)/len(kinds); n++ {
				s.send(agent.Owner, id, fmt.Sprintf("message %d\n%s", n, s.text(20+s.random.IntN(200))))
			}
		}
		after := time.Duration(s.random.IntN(60)) * time.Millisecond // at any point of what a hook does
		if !isHook(kind) {
			s.lines(id, s.random.IntN(8))
			after = 0
		}
		pid := s.kill(kind, id, after)
		t.Logf("%d: %s of %s: %d", i, kind, id, pid)
		if pid > 0 {
			killed[kind]++
		}
		if kind == "daemon" || kind == "claude" && s.random.IntN(3) > 0 {
			s.revive(id)
		}
	}
	for _, id := range s.agents {
		s.revive(id)
	}
	s.settled("killed")
	mu.Lock()
	defer mu.Unlock()
	s.ended(func(e, answer envelope.Envelope) {
		if answer.Kind != envelope.KindReply {
			t.Errorf("%s: %s: %.200s", e.ID, answer.Kind, answer.Text)
		}
		// By its ID in a message, or by that in a notice.
		if to := about[words(answer.Text)]; e.To != byTool && !strings.Contains(to, `id="`+e.ID+`"`) && !strings.Contains(to, e.ID+" from owner") {
			t.Errorf("%s: answered by what was said to another: %.200q", e.ID, answer.Text)
		}
	})
	for _, id := range s.agents {
		s.remembered(id)
	}
	t.Logf("killed %v", killed)
}

// Nobody tells of a turn's end, as if its hook had been killed, and the next turn
// begins at once: each message is answered by what the model said to it.
func TestClaudeEndNotTold(t *testing.T) {
	t.Parallel()
	const id = agent.ID("agent2")
	s := mustStorm(t, freely, id)
	// The hook's command does nothing the first time.
	script := fmt.Sprintf("#!/bin/sh\nsed -i \"s#'[^']*/netsky' hook Stop[^A-Za-z]#mkdir %s/first 2>/dev/null || &#\" %s 2>/dev/null\nexec %s \"$@\"\n",
		s.w.dir, s.home.Path(home.Mailbox(id), "settings.json"), os.Getenv("NETSKY_TEST_CLAUDE"))
	program := filepath.Join(s.w.dir, "b", "claude")
	testworld.Must(t, errors.Join(os.Remove(program), os.WriteFile(program, []byte(script), 0o700)))
	s.revive(id)
	s.send(agent.Owner, id, "hold this")
	s.asked()
	s.send(agent.Owner, id, "and this")
	s.onItsWay(1)
	close(s.held)
	s.settled("without a word of its end")
	testworld.Equal(t, testworld.Err(os.Stat(filepath.Join(s.w.dir, "first"))), nil, "the first end was told")
	s.ended(func(e, answer envelope.Envelope) {
		if want := "echo: " + e.Text; answer.Kind != envelope.KindReply || answer.Text != want || !isImplicit(answer) {
			t.Errorf("%s: %s %q, want %q", e.ID, answer.Kind, answer.Text, want)
		}
	})
}

// isHook reports whether what is killed is a hook, of a prompt or of a turn's end.
func isHook(kind string) bool { return kind == "prompt" || kind == "stop" }

// victim chooses an agent that has what is to be killed, or will: who is dead is
// brought up, and who has lost its server gets it back from the daemon.
func (s *storm) victim(kind string) agent.ID {
	s.Helper()
	at := s.random.IntN(len(s.agents))
	list := append(slices.Clone(s.agents[at:]), s.agents[:at]...)
	if isHook(kind) {
		kind = "server" // hooks come and go
	}
	for _, id := range list {
		if _, ok := s.find(kind, id); ok {
			return id
		}
	}
	s.revive(list[0])
	s.until(string(list[0])+" has a "+kind, func() bool { _, ok := s.find(kind, list[0]); return ok })
	return list[0]
}

// revive brings an agent up that may be dead, and the daemon.
func (s *storm) revive(id agent.ID) {
	s.Helper()
	cmd := s.w.command(s.Context(), "netsky", "agent", id.N())
	out, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState.ExitCode() != 3 { // 3: not ready yet
		s.Fatalf("agent %s: %v\n%s", id.N(), err, out)
	}
}

// lines waits for that many more lines of an agent's events, if they come.
func (s *storm) lines(id agent.ID, n int) {
	s.Helper()
	tail := home.Events(s.home).Tail(id)
	defer tail.Close()
	got := 0
	read := func() {
		testworld.Must(s, tail.Read(func(agent.Event) { got++ }))
	}
	read()
	n += got
	limit := time.NewTimer(3 * time.Second)
	defer limit.Stop()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for got < n {
		select {
		case <-tick.C:
			read()
		case <-limit.C:
			return
		}
	}
}

// kill kills a process of an agent's so long after it was found, and is its
// number; 0 if there was none.
func (s *storm) kill(kind string, id agent.ID, after time.Duration) int {
	s.Helper()
	limit := time.NewTimer(10 * time.Second)
	defer limit.Stop()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		if p, ok := s.find(kind, id); ok {
			<-time.After(after)
			syscall.Kill(p.PID, syscall.SIGKILL) // gone already: killed all the same
			s.until(fmt.Sprintf("the end of %s, process %d", kind, p.PID), func() bool { return !p.Alive() })
			return p.PID
		}
		select {
		case <-limit.C:
			return 0
		case <-tick.C:
		}
	}
}

// find finds a process of an agent's, or the daemon.
func (s *storm) find(kind string, id agent.ID) (p proc.Process, ok bool) {
	s.Helper()
	if kind == "daemon" {
		h, ok := s.home.LockHolder(agent.DaemonName)
		return h.Process, ok && h.Alive()
	}
	k, err := s.home.LoadKeeper(id)
	if errors.Is(err, fs.ErrNotExist) {
		return p, false // it is about to be started
	}
	testworld.Must(s, err)
	switch kind {
	case "claude":
		return k.Process, k.Alive()
	case "prompt":
		return below(k.PID, "\x00hook\x00UserPromptSubmit\x00")
	case "stop":
		return below(k.PID, "\x00hook\x00Stop\x00")
	}
	return below(k.PID, "\x00serve\x00")
}

// below finds a process below another by what stands in its command line. It must
// be quick: hooks live for some hundredths of a second.
func below(pid int, call string) (p proc.Process, ok bool) {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid)) // the pattern is right
	for _, list := range lists {
		data, _ := os.ReadFile(list) // gone: no child
		for number := range strings.FieldsSeq(string(data)) {
			n, err := strconv.Atoi(number)
			if err != nil {
				continue
			}
			line, _ := os.ReadFile("/proc/" + number + "/cmdline")
			if strings.Contains(string(line), call) {
				p, err = proc.Find(n)
				ok = err == nil
			} else {
				p, ok = below(n, call)
			}
			if ok {
				return p, true
			}
		}
	}
	return p, false
}

// remembered checks that the model was told each message, and that it stands at
// most once in each request. What a conversation holds in the end is Claude
// Code's own: killed, it may go on from an earlier point of its file, and forget
// what it had taken, and answered, since.
func (s *storm) remembered(id agent.ID) {
	s.Helper()
	last := s.told(id)
	sessions, forgotten := make(map[string]bool), 0
	for _, e := range s.sent[id] {
		told := false
		for _, q := range s.model.Requests() {
			if agentOf(q) != id {
				continue
			}
			sessions[q.Session] = true
			n := count(q, e.ID)
			if n > 1 {
				s.Errorf("%s stands %d times in a request of %s's", e.ID, n, id)
				break
			}
			told = told || n == 1
		}
		if !told {
			s.Errorf("%s: the model of %s was never told it", e.ID, id)
		}
		if count(last, e.ID) == 0 {
			forgotten++
		}
	}
	s.Logf("%s: %d of %d are not in the last request", id, forgotten, len(s.sent[id]))
	s.Logf("%s: %d conversations", id, len(sessions))
}
