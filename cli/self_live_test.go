//go:build live

package cli_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"netsky/agent"
	"netsky/daemon"
	"netsky/daemon/update"
	"netsky/fleet/plan"
	"netsky/home"
	"netsky/internal/testworld"
)

// A self is a world with a netsky of its own, which is updated.
type self struct {
	testing.TB
	w       *world
	home    home.Dir
	program string
}

// newSelf installs a program in a world.
func newSelf(t testing.TB, w *world, program string) *self {
	t.Helper()
	s := &self{t, w, w.mustHome(t), filepath.Join(w.dir, "p", "netsky")}
	testworld.Must(t, os.Mkdir(filepath.Dir(s.program), 0o700))
	testworld.Must(t, os.WriteFile(s.program, testworld.Got(os.ReadFile(program))(t), 0o700))
	return s
}

func (s *self) netsky(words ...string) (string, error) {
	out, err := s.w.command(s.Context(), s.program, words...).CombinedOutput()
	return string(out), err
}

func (s *self) must(words ...string) string {
	s.Helper()
	out, err := s.netsky(words...)
	if err != nil {
		s.Fatalf("netsky %q: %v\n%s", words, err, out)
	}
	return out
}

// keepers returns which starts of the agents run, in which processes.
func (s *self) keepers(list ...agent.ID) (keepers []string) {
	s.Helper()
	for _, id := range list {
		k := testworld.Got(s.home.LoadKeeper(id))(s)
		keepers = append(keepers, fmt.Sprintf("%s: start %s, keeper %d, program %d, alive: %v", id, k.Start, k.Own.PID, k.PID, k.Alive() && k.Own.Alive()))
	}
	return keepers
}

// daemon returns the version of the daemon that answers.
func (s *self) daemon() string {
	s.Helper()
	var p daemon.Pong
	testworld.Wait(s, "a daemon", func() (up bool) { p, up = s.ping(); return up })
	return p.Version
}

func (s *self) ping() (daemon.Pong, bool) {
	p, err := daemon.Ping(s.Context(), s.home)
	return p, err == nil
}

// send sends messages to the agents in turn, until the returned function is called, which returns their ids.
func (s *self) send(to ...agent.ID) (stop func() []string) {
	var ended atomic.Bool
	sent := make(chan []string, 1)
	go func() {
		var ids []string
		for n := 0; !ended.Load() || n < len(to); n++ {
			out, err := s.w.command(s.Context(), s.program, "channel", "send", string(to[n%len(to)]), fmt.Sprintf("message %d", n)).Output()
			if err != nil {
				s.Errorf("message %d: %v", n, err)
				break
			}
			ids = append(ids, strings.TrimSpace(string(out)))
			time.Sleep(100 * time.Millisecond) // as somebody who writes
		}
		sent <- ids
	}()
	return func() []string { ended.Store(true); return <-sent }
}

// inbox returns how often the owner has got each message, and each answer.
func (s *self) inbox() (messages, answers map[string]int) {
	s.Helper()
	var v struct {
		Messages []struct {
			ID, Kind  string
			InReplyTo string `json:"in_reply_to"`
		}
	}
	testworld.Must(s, json.Unmarshal([]byte(s.must("inbox", "--all", "--json")), &v))
	messages, answers = make(map[string]int), make(map[string]int)
	for _, m := range v.Messages {
		messages[m.ID]++
		if m.Kind == "reply" {
			answers[m.InReplyTo]++
		}
	}
	return messages, answers
}

// told returns how many notices of a run the owner has got.
func (s *self) told(run string) (n int) {
	s.Helper()
	messages, _ := s.inbox()
	for id, times := range messages {
		if strings.HasPrefix(id, run+"-") {
			n += times
		}
	}
	return n
}

// answeredOnce waits until each message has an answer, and fails if one has two.
func (s *self) answeredOnce(ids []string) {
	s.Helper()
	var answers map[string]int
	missing := 0
	testworld.WaitOr(s, func() bool {
		_, answers = s.inbox()
		missing = 0
		for _, id := range ids {
			if answers[id] == 0 {
				missing++
			}
		}
		return missing == 0
	}, func() string {
		return fmt.Sprintf("%d of %d are not answered\n%s", missing, len(ids), s.must("status", "-v"))
	})
	for _, id := range ids {
		testworld.Equal(s, answers[id], 1, "answers to", id)
	}
}

// states are those of a run, in their order.
var states = []update.State{
	update.Preparing, update.Prepared, update.Stopping, update.Copying, update.Installing, update.Starting, update.Undoing,
	update.Done, update.Undone, update.Failed,
}

// cut begins an update or a rollback and kills one of its processes once it is in a state, or just behind it. It returns the
// run when that is over.
func (s *self) cut(victim string, state update.State, words ...string) (r update.Run, killedAt update.State) {
	s.Helper()
	last, err := update.Load(s.home)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.Fatal(err)
	}
	before, _ := s.ping()
	cmd := s.w.command(s.Context(), s.program, words...)
	testworld.Must(s, cmd.Start())
	reached := func(state update.State) bool {
		r, err = update.Load(s.home)
		return err == nil && r.ID != last.ID && slices.Index(states, r.State) >= slices.Index(states, state)
	}
	for _, next := range states[:slices.Index(states, state)+1] { // each with quick looks at first
		testworld.Wait(s, string(next), func() bool { return reached(next) })
	}
	testworld.Wait(s, fmt.Sprintf("%s to be killed in %s", victim, state), func() bool {
		return s.kill(victim, cmd, before.PID) || reached(update.Done)
	})
	r = testworld.Got(update.Load(s.home))(s)
	killedAt = r.State
	err = cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		s.Fatal(err)
	}
	testworld.WaitOr(s, func() bool {
		r, err = update.Load(s.home)
		return err == nil && (r.State.Over() || r.State == update.Preparing)
	}, func() string { return fmt.Sprintf("%+v, %v\n%s", r, err, s.must("self", "status")) })
	return r, killedAt
}

// kill kills the verb, the supervisor or the new daemon, if it is there.
func (s *self) kill(victim string, verb *exec.Cmd, oldDaemon int) bool {
	switch victim {
	case "verb":
		return verb.Process.Kill() == nil
	case "supervisor":
		who, held := s.home.LockHolder(home.SelfLock)
		return held && who.Named() && who.PID != verb.Process.Pid && who.Signal(unix.SIGKILL) == nil
	}
	who, held := s.home.LockHolder(agent.DaemonName)
	return held && who.Named() && who.PID != oldDaemon && who.Signal(unix.SIGKILL) == nil
}

// A netsky is updated and rolled back under mail, to demo agents, Codex and Claude Code, while the verb, its supervisor and
// the new daemon are killed. Nothing is lost or answered twice, no agent is restarted, and the program that is installed
// runs. At last the agents are renewed, on their conversations.
func TestSelfUpdateKilled(t *testing.T) {
	t.Parallel()
	w, _ := mustCodex(t)
	w.addClaude(t)
	old := filepath.Join(t.TempDir(), "netsky")
	mustNetsky(t, old, "0.1.0")
	s, releases := newSelf(t, w, old), mustRelease(t, "0.2.0")
	team := night{demos: 3, codexes: 1, claudes: 1}.world(t, w)
	w.mustUpBy(t, s.program, append(team.Up, "--yes")...)
	keepers := s.keepers(team.Agents...)
	stop := s.send("agent1", "agent2", "agent3")
	counts := make(map[update.State]int)
	for _, c := range []struct {
		victim string
		state  update.State
	}{
		{"verb", update.Preparing}, {"verb", update.Stopping}, {"supervisor", update.Prepared}, {"supervisor", update.Stopping}, {"supervisor", update.Copying},
		{"supervisor", update.Installing}, {"supervisor", update.Starting}, {"daemon", update.Starting},
	} {
		words := []string{"self", "update", releases, "--yes"}
		if s.version() == "0.2.0" {
			words = []string{"self", "rollback", "--yes"}
		}
		began, from := time.Now(), s.version()
		r, at := s.cut(c.victim, c.state, words...)
		t.Logf("%s killed in %s: %s from %s: %s after %.1f s; %s", c.victim, at, r.Kind, from, r.State, time.Since(began).Seconds(), r.Why)
		counts[r.State]++
		testworld.Equal(t, s.daemon(), s.version(), "the daemon's version")
		testworld.EqualList(t, s.keepers(team.Agents...), keepers)
		want := 1
		if r.State == update.Preparing || r.State == update.Failed { // whoever has asked sees it
			want = 0
		}
		testworld.Equal(t, s.told(r.ID), want, "notices to the owner of %s, %v", r.ID, r.State)
	}
	if s.version() == "0.2.0" {
		s.must("self", "rollback", "--yes")
	}
	testworld.EqualList(t, s.keepers(team.Agents...), keepers)
	sent := stop()
	s.answeredOnce(sent)
	conversations := s.conversations("agent2", "agent3")
	t.Logf("%d messages, each answered once; runs %v", len(sent), counts)

	s.must("self", "update", releases, "--yes", "--agents")
	testworld.Equal(t, s.daemon(), "0.2.0")
	for _, id := range team.Agents {
		k := testworld.Got(s.home.LoadKeeper(id))(t)
		testworld.Equal(t, k.Version, "0.2.0", string(id))
	}
	testworld.EqualList(t, s.conversations("agent2", "agent3"), conversations)
	s.answeredOnce(s.send("agent1", "agent2", "agent3")())
}

// conversations returns the conversations of agents.
func (s *self) conversations(list ...agent.ID) (all []string) {
	s.Helper()
	for _, id := range list {
		all = append(all, testworld.Got(plan.Conversation(s.home, id))(s))
	}
	return all
}

// version is that of the installed program.
func (s *self) version() string { s.Helper(); return strings.Fields(s.must("version"))[1] }
