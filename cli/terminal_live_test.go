//go:build live

package cli_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"netsky/internal/testworld"
)

// TestTerminal sits at a terminal, as a person does: a pane of a tmux server of
// the test's own. What is typed there goes to netsky, or to the tmux client that
// netsky has become.
func TestTerminal(t *testing.T) {
	t.Parallel()
	w := mustWorld(t)
	s := w.mustScreen(t, "alone", "env -u TMUX -u TMUX_PANE sh")
	t.Cleanup(func() {
		if t.Failed() {
			for _, verb := range []string{"inbox", "log"} { // what may have mailed the owner
				out, err := w.command(context.Background(), "netsky", verb).CombinedOutput()
				t.Logf("netsky %s: %v\n%s", verb, err, out)
			}
		}
	})

	// up draws each agent's line in place.
	s.types("netsky up 1 --type demo --no-attach; echo $?", "Enter")
	s.shows(`(?m)^0 *$`)
	if n := strings.Count(s.text(), "agent1         ready"); n != 1 {
		t.Errorf("agent1's line stands there %d times:\n%s", n, s.text())
	}

	// It attaches when told what to run. (tmux throws away what the terminal has
	// not read by then, so what stood there before is not looked at.)
	s.types("clear; netsky up 1 --type demo", "Enter")
	s.shows(`agent0, a demo agent of netsky`)
	s.shows(`(?m)^ agent0 +` + filepath.Base(w.dir) + ` .* 0:idle 1:idle ∞:idle \| C-b d leaves *$`)
	s.keys("C-b", "d")
	s.shows(`\[detached \(from session agent0\)\]`)

	// In another directory it doesn't, as agent0 works elsewhere.
	s.types("clear; cd / && netsky up 1 --type demo; cd - && echo then", "Enter")
	s.shows(`(?s)not attached, as agent0 works in another directory: .netsky attach. opens its pane.*then`)

	// attach goes to an agent's pane; what is typed there is for the agent.
	s.types("clear; netsky attach agent1", "Enter")
	s.shows(`agent1, a demo agent of netsky`)
	s.shows(`(?m)^ agent1 .*C-b d leaves *$`)
	s.types("good morning", "Enter")
	s.shows(`received: good morning`)

	// The prefix and a number goes to that agent, e to agentinfinity.
	s.keys("C-b", "0")
	s.shows(`(?m)^ agent0 .*C-b d leaves *$`)
	s.keys("C-b", "e")
	s.shows(`(?m)^ agentinfinity .*C-b d leaves *$`)
	s.keys("C-b", "1")
	s.shows(`(?m)^ agent1 .*C-b d leaves *$`)

	// The prefix and s lists the agents' sessions, and not netsky's own.
	s.keys("C-b", "s")
	s.shows(`(?s)agent0: 1 windows.*agent1: 1 windows.*agentinfinity: 1 windows`)
	s.lacks(`netsky-`)
	s.keys("q")

	// In a narrow terminal no state is cut.
	s.tmux("resize-window", "-t", "=alone:", "-x", "50", "-y", "40")
	s.shows(`(?m)^ agent1 +3 idle \| C-b d leaves *$`)
	s.tmux("resize-window", "-t", "=alone:", "-x", "140", "-y", "40")
	s.shows(`(?m)^ agent1 .* 0:idle 1:idle ∞:idle \| C-b d leaves *$`)

	// The prefix and i shows the mail; the status line counts it. Enter closes.
	w.must(t, "netsky", "channel", "send", "agent0", "a letter", "--wait", "answered")
	s.shows(`1:idle ∞:idle mail:[1-9][0-9]* \|`) // a busy machine may be told of, too
	s.keys("C-b", "i")
	s.shows(`(?s)agent0 \(demo\) received: a letter.*\(Enter, Esc or q closes\)`)
	s.keys("Enter")
	s.lacks(`q closes`)
	for _, key := range []string{"q", "Escape"} {
		s.keys("C-b", "i")
		s.shows(`(?s)no new mail.*\(Enter, Esc or q closes\)`)
		s.keys(key)
		s.lacks(`q closes`)
	}
	s.shows(`1:idle ∞:idle \| C-b d leaves`)

	// In netsky's own tmux attach switches; a window that a person opens there
	// is not taken for the agent's.
	s.keys("C-b", "c")
	s.shows(`(?m)[$#] *$`)
	s.types(binDir()+"/netsky attach agent0", "Enter") // a login shell has a PATH of its own
	s.shows(`(?m)^ agent0 .*C-b d leaves *$`)
	testworld.Contains(t, w.must(t, "netsky", "peek", "agent1"), "received: good morning", "peek agent1 shows another window")
	s.keys("C-b", "d")
	s.shows(`\[detached \(from session agent0\)\]`)

	// With --read-only no key gets through but the prefix.
	s.types("clear; netsky attach --read-only agent1", "Enter")
	s.shows(`(?m)^ agent1 .*C-b d leaves *$`)
	s.keys("C-b", "d")
	s.shows(`\[detached \(from session agent1\)\]`)

	s.watches(t)
	w.must(t, "netsky", "down", "--all", "--verify")
}

// watches looks at what draws itself again, and at what asks.
func (s *screen) watches(t *testing.T) {
	t.Helper()
	s.types("clear; netsky status --watch", "Enter")
	s.shows(`(?s)● agent1 +idle.*\(every second; Ctrl-C ends\)`)
	s.world.must(t, "netsky", "channel", "send", "agent1", "/busy 1h")
	s.shows(`● agent1 +busy`)
	s.tmux("resize-window", "-t", "=alone:", "-x", "70", "-y", "4")
	s.shows(`(?s)netsky .*● agent1 +busy.*… 1 more: 1 idle  \(every second`)
	s.tmux("resize-window", "-t", "=alone:", "-x", "140", "-y", "40")
	s.keys("C-c")
	for _, env := range []string{"TERM=dumb", "NO_COLOR=1"} {
		s.types("clear; "+env+" netsky status; echo with "+env, "Enter")
		s.shows(`(?s)● agent1 +busy.*\nwith ` + env)
		testworld.Lacks(t, s.tmux("capture-pane", "-pe", "-t", "=alone:"), "\x1b[3", "with %s there are colours", env)
	}
	s.types("clear; netsky peek agent1 --follow", "Enter")
	s.shows(`busy for 1h0m0s`)
	s.keys("C-c")
	s.types("clear; netsky inbox --follow", "Enter")
	s.world.must(t, "netsky", "channel", "send", "agent0", "followed", "--wait", "answered")
	s.shows(`received: followed`)
	s.keys("C-c")
	s.types("clear; netsky ask agent0 '/busy 1s'", "Enter")
	s.shows(`netsky: sent m-[0-9a-f]+ to agent0`)
	s.shows(`was busy for 1s and is done`)
	s.types("clear; netsky uninstall", "Enter")
	s.shows(`End all agents and remove netsky\? \(.* stays\) \[y/N\]`)
	s.types("n", "Enter")
	s.shows(`nothing was done`)
	s.world.must(t, "netsky", "down", "--force", "agent1")
}

// TestTerminalInTmux runs netsky where most people will: inside a tmux of their
// own.
func TestTerminalInTmux(t *testing.T) {
	t.Parallel()
	w := mustWorld(t)
	s := w.mustScreen(t, "mine", "sh")
	s.types("netsky up 1 --type demo; echo do''ne", "Enter")
	s.shows(`(?s)agent1 +ready.*done`) // what is typed before that is up's
	s.lacks(`a demo agent of netsky`)

	// Attach opens a window in that tmux; the other windows stay as they are.
	s.types("clear; netsky attach agent1", "Enter")
	s.shows(`agent1, a demo agent of netsky`)
	testworld.Contains(t, s.tmux("list-windows", "-F", "#{window_name}"), "agent1\n", "the windows")
	s.keys("C-b", "d")
	s.shows(`opened agent1 in a new window of your tmux`)
	testworld.Lacks(t, s.tmux("list-windows", "-F", "#{window_name}"), "agent1\n", "after leaving it the windows")

	// An agent that ends while someone looks leaves its last words to be read.
	w.must(t, "netsky", "daemon", "stop") // which starts it again a second later
	s.types("clear; netsky attach agent1", "Enter")
	s.shows(`(?m)^ agent1 `)
	s.types("/crash 7", "Enter")
	s.shows(`\[agent1 exited: 7\]`)
	s.shows(`1:dead`)
	s.keys("C-b", "d")
	s.shows(`opened agent1 in a new window`)
}

// TestTerminalNested sits at a tmux of a person's own, and presses keys there: what
// the status line says leaves the agent's pane, and not that tmux.
func TestTerminalNested(t *testing.T) {
	t.Parallel()
	w := mustWorld(t)
	w.must(t, "netsky", "up", "1", "--type", "demo", "--no-attach")
	s := w.mustScreen(t, "terminal", "env -u TMUX -u TMUX_PANE sh")
	person := filepath.Join(w.dir, "p")
	t.Cleanup(func() { exec.Command("tmux", "-S", person, "kill-server").Run() })
	s.types("tmux -S "+person+" -f /dev/null new-session -s mine sh", "Enter")
	s.shows(`(?m)^\[mine\] 0:sh`)
	s.types("netsky attach agent1", "Enter")
	s.shows(`(?m)^ agent1 .*\| C-b C-b d leaves *$`)
	s.keys("C-b", "C-b", "d")
	s.shows(`opened agent1 in a new window of your tmux: C-b C-b d leaves it, C-b d leaves your tmux`)
	s.shows(`(?m)^\[mine\] 0:sh`)

	// With another prefix of theirs one is enough; and in a plain terminal.
	s.types("clear; tmux set -g prefix C-a; netsky attach agent1", "Enter")
	s.shows(`(?m)^ agent1 .*\| C-b d leaves *$`)
	s.keys("C-b", "d")
	s.shows(`opened agent1 in a new window of your tmux: C-b d leaves it`)
	s.shows(`(?m)^\[mine\] 0:sh`)
	s.types("clear; exit", "Enter")
	s.shows(`\[exited\]`)
	s.types("clear; netsky attach agent1", "Enter")
	s.shows(`(?m)^ agent1 .*\| C-b d leaves *$`)
	s.keys("C-b", "d")
	s.shows(`\[detached`)
}

// TestCompletionZsh types at a zsh, as it asks in its own way.
func TestCompletionZsh(t *testing.T) {
	t.Parallel()
	w := mustWorld(t)
	w.must(t, "netsky", "agent", "1", "--type", "demo")
	testworld.Must(t, os.WriteFile(filepath.Join(w.dir, "_netsky"), []byte(w.must(t, "netsky", "completion", "zsh")), 0o600))
	s := w.mustScreen(t, "zsh", "env -u TMUX -u TMUX_PANE zsh -f")
	s.types("fpath=("+w.dir+" $fpath); autoload -Uz compinit; compinit -u -d "+w.dir+"/dump; echo comp''leted", "Enter")
	s.shows(`(?m)^completed`)
	s.types("clear; netsky peek ag", "Tab")
	s.shows(`(?m)netsky peek agent1 *$`)
	s.keys("C-u")
	s.types("netsky up 1 --no", "Tab")
	s.shows(`(?m)netsky up 1 --no-attach *$`)
	s.keys("C-u")
	s.types("netsky channel p", "Tab")
	s.shows(`(?m)netsky channel poison *$`)
	s.keys("C-u")
	s.types("netsky agent 1 --type de", "Tab")
	s.shows(`(?m)netsky agent 1 --type demo *$`)
	s.keys("C-u")
	s.types("netsky in", "Tab")
	s.shows(`inbox +-- print your mail`)
}

func (s *screen) lacks(pattern string) { s.t.Helper(); s.wait(pattern, false) }
