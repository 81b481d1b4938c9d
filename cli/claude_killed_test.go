package cli_test

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"netsky/agent"
	"netsky/bus"
	claudemodel "netsky/spawn/claude/loopmodel"
)

// Fifty messages to each of two clones while their MCP servers and Claude Code
// itself are killed. Nothing is lost, nothing answered twice, and no conversation
// holds anything twice.
func TestClaudeKilled(t *testing.T) {
	t.Parallel()
	s := mustStorm(t, freely, "agent1", "agent2")
	for _, id := range s.agents {
		s.revive(id)
	}
	s.model.Handle(func(q claudemodel.Request) *claudemodel.Reply { // turns that are worth killing
		r := s.answer(q)
		r.Delay = rand.N(500 * time.Millisecond)
		return r
	})
	kinds := slices.Concat(slices.Repeat([]string{"claude"}, 6), slices.Repeat([]string{"server"}, 6))
	s.random.Shuffle(len(kinds), func(i, j int) { kinds[i], kinds[j] = kinds[j], kinds[i] })
	killed := map[string]int{}
	for i, kind := range kinds {
		for _, id := range s.agents {
			for n := len(s.sent[id]); n < 50*(i+1)/len(kinds); n++ {
				s.send(agent.Owner, id, fmt.Sprintf("message %d\n%s", n, s.text(20+s.random.IntN(200))))
			}
		}
		id := s.victim(kind)
		s.lines(id, s.random.IntN(8))
		pid := s.kill(kind, id)
		t.Logf("%d: %s of %s: %d", i, kind, id, pid)
		if pid > 0 {
			killed[kind]++
		}
		if kind == "claude" && s.random.IntN(3) > 0 {
			s.revive(id)
		}
	}
	for _, id := range s.agents {
		s.revive(id)
	}
	s.settled("killed")
	s.ended(func(e, answer bus.Envelope) {
		if answer.Kind != bus.KindReply {
			t.Errorf("%s: %s: %.200s", e.ID, answer.Kind, answer.Text)
		}
	})
	for _, id := range s.agents {
		s.remembered(id)
	}
	t.Logf("killed %v", killed)
}

// victim chooses an agent that has what is to be killed, or will: who is dead is
// brought up, and who has lost its server gets it back from the daemon.
func (s *storm) victim(kind string) agent.ID {
	s.Helper()
	at := s.random.IntN(len(s.agents))
	list := append(slices.Clone(s.agents[at:]), s.agents[:at]...)
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
	tail := s.home.Events(id)
	defer tail.Close()
	got := 0
	read := func() {
		if err := tail.Read(func(agent.Event) { got++ }); err != nil {
			s.Fatal(err)
		}
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

// kill kills a process of an agent's, and is its number; 0 if there was none.
func (s *storm) kill(kind string, id agent.ID) int {
	s.Helper()
	limit := time.NewTimer(3 * time.Second)
	defer limit.Stop()
	for {
		if p, ok := s.find(kind, id); ok {
			syscall.Kill(p.PID, syscall.SIGKILL) // gone already: killed all the same
			s.until(fmt.Sprintf("the end of %s, process %d", kind, p.PID), func() bool { return !p.Alive() })
			return p.PID
		}
		select {
		case <-limit.C:
			return 0
		default:
		}
	}
}

// find finds a process of an agent's.
func (s *storm) find(kind string, id agent.ID) (p agent.Process, ok bool) {
	s.Helper()
	k, err := s.home.LoadKeeper(id)
	if errors.Is(err, fs.ErrNotExist) {
		return p, false // it is about to be started
	}
	if err != nil {
		s.Fatal(err)
	}
	if kind == "claude" {
		return k.Process, k.Alive()
	}
	list, err := agent.Descendants(k.PID, "")
	if err != nil {
		s.Fatal(err)
	}
	for _, p := range list {
		data, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.PID))
		if err == nil && strings.Contains(string(data), "\x00serve\x00") {
			return p, true
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
