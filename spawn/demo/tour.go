// This file shows what netsky is for: two demo agents on one git repository, in a home
// and on a tmux server of its own, with an agent and the daemon killed on the way. What
// it shows are netsky's own verbs, run by a shell. Whatever ends the tour, nothing of it
// remains: its home is a [chaos.Sandbox], and the repository is beside that.

package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/internal/chaos"
	"netsky/internal/execx"
	"netsky/internal/proc"
	"netsky/work/git"
)

// answerWithin is how long the tour waits for what must come.
const answerWithin = 30 * time.Second

// perWord is how long a reader takes for a word, and longestPause the longest wait for
// one: tables are skimmed. The whole tour takes less than a minute.
const (
	perWord      = time.Minute / 500
	longestPause = 5 * time.Second
)

// A scene is a part of the tour. In its lines, which a shell runs, LANDING is the last
// landing's id; "kill -9 NAME" ends an agent or the daemon as a crash would. The last line
// is repeated until it prints the word until.
type scene struct {
	title string
	lines []string
	until string
}

// scenes need git, and plain do not.
var (
	scenes = []scene{
		{title: "Start a manager and two workers. Each worker gets a branch and a worktree of its own.", lines: []string{
			"netsky up 2 --type demo",
		}},
		{title: "Have agent1 change a file, the script hi. Its answers are printed.", lines: []string{
			"netsky ask agent1 '/edit hi echo agent1 was here'",
			"netsky ask agent1 /commit",
		}},
		{title: "Have agent2 change the same file, and kill it and the daemon while it works. Messages are files, so none is lost.", lines: []string{
			"netsky send agent2 '/busy 1s'",
			"netsky send agent2 '/edit hi echo agent2 was here'",
			"netsky send agent2 /commit",
			"kill -9 agent2",
			"kill -9 daemon",
			"netsky status",
		}},
		{title: "Start what is missing. agent2 continues with the messages it had.", lines: []string{
			"netsky up 2 --type demo",
		}},
		{title: "Both have committed. netsky tries all merges after each turn, so you hear of a conflict before it happens.", lines: []string{
			"netsky needs",
		}, until: " conflict "},
		{title: "Check agent1's work: a command of yours runs on what your branch would become.", lines: []string{
			"netsky check agent1 --set 'sh hi'",
		}},
		{title: "It has passed, so it may land on your branch.", lines: []string{
			"netsky land agent1",
			"sh hi",
			"netsky work",
		}},
		{title: "Take it back.", lines: []string{
			"netsky undo LANDING",
			"sh hi",
		}},
	}
	plain = []scene{
		{title: "Start a manager and two workers.", lines: []string{
			"netsky up 2 --type demo",
		}},
		{title: "Ask the manager, which asks a worker.", lines: []string{
			"netsky ask agent0 '/delegate agent1 what is your name?'",
		}},
		{title: "Give agent2 work, and kill it and the daemon meanwhile. Messages are files, so none is lost.", lines: []string{
			"netsky send agent2 '/busy 1s'",
			"netsky send agent2 'what is your name?'",
			"kill -9 agent2",
			"kill -9 daemon",
			"netsky status",
		}},
		{title: "Start what is missing. agent2 continues with the messages it had.", lines: []string{
			"netsky up 2 --type demo",
		}},
	}
)

// TourOptions configure the tour.
type TourOptions struct {
	Binary  string   // netsky itself
	Environ []string // inherited by its verbs
	Quick   bool     // do not pause for reading
	Width   int      // of the terminal, in columns
	Colors  bool     // titles and commands stand out
	Say     func(text string)
	Err     io.Writer // of the process beside it
}

// ErrInterrupted is returned when the context has ended the tour.
var ErrInterrupted = errors.New("the tour was interrupted; everything it started has ended")

// Tour runs the tour. When it returns, everything that it has started has ended and is
// removed, or the error says what is left.
func Tour(ctx context.Context, o TourOptions) (err error) {
	h, err := chaos.NewSandbox(chaos.SandboxOptions{What: "tour", Binary: o.Binary, Environ: o.Environ, Err: o.Err})
	if err != nil {
		return err
	}
	t := &tour{TourOptions: o, Sandbox: h, dir: filepath.Dir(h.Root()), bus: bus.New(h.Dir, bus.Options{})}
	// Whatever happens, nothing of it remains.
	defer func() {
		if err != nil && ctx.Err() != nil {
			err = ErrInterrupted
		}
		if cerr := h.Close(ctx); cerr != nil {
			err = errors.Join(err, cerr)
		} else if err == nil {
			t.say("Everything has ended, and %s has been removed.", t.dir)
			t.paint(bold, "\nTo start agents of your own: `netsky up 2` where they should work.")
		}
	}()
	return t.run(ctx)
}

type tour struct {
	TourOptions
	*chaos.Sandbox
	bus     *bus.Bus
	dir     string // of all that is the tour's
	sent    int    // messages
	killed  int    // processes
	landing string
	unread  int // words printed since the last pause
}

// How titles and commands look.
const bold, cyan = "1", "36"

// say prints a text, broken at the terminal's width.
func (t *tour) say(format string, args ...any) { t.paint("", format, args...) }

func (t *tour) paint(color, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	t.unread += len(strings.Fields(text))
	text = strings.Join(wrap(envelope.Plain(text), t.Width), "\n")
	if t.Colors && color != "" {
		text = "\x1b[" + color + "m" + text + "\x1b[0m"
	}
	t.Say(text)
}

// rest waits until what was printed can have been read.
func (t *tour) rest(ctx context.Context) error {
	pause := min(time.Duration(t.unread)*perWord, longestPause)
	t.unread = 0
	if t.Quick {
		return ctx.Err()
	}
	return proc.Sleep(ctx, pause)
}

func (t *tour) run(ctx context.Context) error {
	t.paint(bold, "netsky runs coding agents side by side. This tour of it is in a temporary home, on a temporary repository, with agents that run no model. It touches nothing of yours.")
	if !t.Quick {
		t.say("It takes less than a minute, as it pauses for reading (--quick does not). Ctrl-C ends it.")
	}
	list := scenes
	if err := git.Version(ctx); err != nil {
		t.say("git is missing or older than 2.38, so it is a shorter one, without worktrees, checks and landings.")
		list = plain
	}
	if err := t.prepare(ctx, len(list) == len(scenes)); err != nil {
		return err
	}
	for i, s := range list {
		if err := t.rest(ctx); err != nil {
			return err
		}
		t.paint(bold, "\n%d. %s\n", i+1, s.title)
		if err := t.play(ctx, s); err != nil {
			return err
		}
	}
	if err := t.rest(ctx); err != nil {
		return err
	}
	t.paint(bold, "\n%d. Count the answers.\n", len(list)+1)
	return t.account(ctx)
}

// prepare makes the repository, and an environment in which nothing of the caller's is found: its
// paths are short on the screen, and no configuration of git's but the repository's own counts.
func (t *tour) prepare(ctx context.Context, repository bool) error {
	for _, sub := range []string{"bin", "project"} {
		if err := os.Mkdir(filepath.Join(t.dir, sub), 0o700); err != nil {
			return err
		}
	}
	if err := os.Symlink(t.Binary, filepath.Join(t.dir, "bin", "netsky")); err != nil {
		return err
	}
	path := filepath.Join(t.dir, "bin") + ":" + execx.Value(t.Sandbox.Environ, "PATH")
	t.Sandbox.Environ = append(execx.Without(t.Sandbox.Environ, "HOME", "PATH", "GIT_*"),
		"HOME="+t.dir, "PATH="+path, "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1")
	if !repository {
		return nil
	}
	out, err := t.shell(ctx, `git init -q -b main --template= && git config user.name You && git config user.email you@example.org &&
		git config maintenance.auto false && echo 'echo hello' > hi && git add hi && git commit -q -m 'say hello'`)
	if err != nil {
		return fmt.Errorf("git, for the tour's repository: %w: %s", err, out)
	}
	return nil
}

// shell runs a line as a person would.
func (t *tour) shell(ctx context.Context, line string) (string, error) {
	cmd := t.Command(ctx)
	cmd.Path, cmd.Args, cmd.Dir = "/bin/sh", []string{"sh", "-c", line}, filepath.Join(t.dir, "project")
	out, err := cmd.CombinedOutput()
	return strings.TrimRight(string(out), "\n"), err
}

var undoes = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile("`netsky undo ([0-9a-z]+)`") })

func (t *tour) play(ctx context.Context, s scene) error {
	for i, line := range s.lines {
		if name, ok := strings.CutPrefix(line, "kill -9 "); ok {
			if err := t.kill(ctx, name); err != nil {
				return fmt.Errorf("%s: %w", line, err)
			}
			continue
		}
		line = strings.ReplaceAll(line, "LANDING", t.landing)
		t.paint(cyan, "$ %s", line)
		out, err := t.shell(ctx, "exec "+line)
		for end := time.Now().Add(answerWithin); i == len(s.lines)-1 && !strings.Contains(out, s.until) && err == nil && time.Now().Before(end); {
			if err = proc.Sleep(ctx, 100*time.Millisecond); err == nil {
				out, err = t.shell(ctx, "exec "+line)
			}
		}
		t.say("%s", out)
		if err != nil {
			return fmt.Errorf("%s: %w", line, err)
		}
		if m := undoes().FindStringSubmatch(out); m != nil {
			t.landing = m[1]
		}
		if strings.HasPrefix(line, "netsky ask ") || strings.HasPrefix(line, "netsky send ") {
			t.sent++
		}
	}
	return nil
}

// kill ends an agent's program, or the daemon, and waits until it is gone.
func (t *tour) kill(ctx context.Context, name string) error {
	var p proc.Process
	if name == agent.DaemonName {
		who, running := t.LockHolder(name)
		if !running {
			return errors.New("not running")
		}
		p = who.Process
	} else {
		k, err := t.LoadKeeper(agent.ID(name))
		if err != nil {
			return err
		}
		p = k.Process
	}
	if err := p.Signal(syscall.SIGKILL); err != nil {
		return err
	}
	t.killed++
	t.paint(cyan, "$ kill -9 %d      # %s", p.PID, name)
	for end := time.Now().Add(answerWithin); p.Alive() && time.Now().Before(end); {
		if err := proc.Sleep(ctx, 10*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}
