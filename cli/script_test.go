package cli_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"netsky/home"
	"netsky/internal/messagesim"
	"netsky/internal/testworld"
	"netsky/spawn"
	"netsky/tmux"
)

// TestMain puts netsky, alone in its directory, in front of the PATH.
func TestMain(m *testing.M) {
	if messagesim.Main() {
		return
	}
	os.Exit(testworld.Main(m, func(netsky string) { os.Setenv("PATH", filepath.Dir(netsky)+":"+os.Getenv("PATH")) }))
}

// scripts are patterns of the scripts' files. The tag live adds one.
var scripts = []string{"testdata/script/*.txtar"}

// TestScripts runs the scripts. Each has a home of its own in
// $NETSKY_HOME, whose mailboxes are $BOX, and a tmux server that follows from it;
// when it ends, nothing of them may be left.
func TestScripts(t *testing.T) {
	var files []string
	for _, pattern := range scripts {
		list := testworld.Got(filepath.Glob(pattern))(t)
		files = append(files, list...)
	}
	testscript.Run(t, testscript.Params{
		Files:               files,
		RequireUniqueNames:  true,
		RequireExplicitExec: true,
		Setup: func(e *testscript.Env) error {
			w, err := newWorld()
			if err != nil {
				return err
			}
			for _, v := range w.env {
				name, value, _ := strings.Cut(v, "=")
				e.Setenv(name, value)
			}
			e.Setenv("BIN", binDir())
			scripts, err := filepath.Abs("../scripts")
			if err != nil {
				return err
			}
			e.Setenv("SCRIPTS", scripts)
			e.Setenv("CODEX_DIR", filepath.Dir(os.Getenv("NETSKY_TEST_CODEX")))
			e.Setenv("LONG", strings.Repeat("a", 300))
			e.Setenv("NL", "\n")
			e.Setenv("ESC", "\x1b")
			e.Setenv("BADUTF", "\xff")
			e.Setenv("EVIL", "\x1b[31mred\u202e")
			e.Setenv("DIR", w.dir)
			e.Setenv("BOX", filepath.Join(w.home, home.Channels))
			e.Defer(func() {
				if err := w.end(); err != nil {
					e.T().Fatal(err)
				}
			})
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "waitfor": waitFor, "json": checkJSON, "get": get, "signal": sendSignal, "fill": fill,
			"hold": hold, "release": release, "witness": witness,
		},
	})
}

// A world is a person's account with netsky in it: directories below one short
// path, as the names of sockets are bounded.
type world struct {
	dir  string
	home string
	env  []string
}

func newWorld() (*world, error) {
	dir, err := os.MkdirTemp("", "n")
	if err != nil {
		return nil, err
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return nil, err
	}
	w := &world{dir: dir, home: filepath.Join(dir, "h")}
	for _, sub := range []string{"h", "u", "t", "s"} { // home, the person's home, temporary files, where tmux sockets shall not be
		if err := os.Mkdir(filepath.Join(dir, sub), 0o700); err != nil {
			return nil, err
		}
	}
	w.env = []string{
		"NETSKY_HOME=" + w.home,
		"HOME=" + filepath.Join(dir, "u"),
		"TMPDIR=" + filepath.Join(dir, "t"),
		"TMUX_TMPDIR=" + filepath.Join(dir, "s"),
		"TERM=xterm-256color", "LANG=C.UTF-8", "TZ=UTC",
		"NETSKY_LISTEN=127.0.0.1:0", // many worlds run at once
	}
	return w, nil
}

// command is a command in the world, as an outsider runs it.
func (w *world) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH")}, w.env...)
	cmd.Dir = w.dir
	return cmd
}

// end ends all that runs in the world and reports what does not.
func (w *world) end() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var errs []error
	if out, err := w.command(ctx, "netsky", "down", "--all", "--force").CombinedOutput(); err != nil {
		errs = append(errs, fmt.Errorf("down --all --force: %w\n%s", err, out))
	}
	// What was told to end may take a moment to be gone.
	var left []remnant
	testworld.Until(func() bool { left = w.left(); return len(left) == 0 })
	for _, r := range left {
		errs = append(errs, fmt.Errorf("left behind: %s", r.what))
		if r.pid > 1 { // the test has failed; at least nothing goes on
			errs = append(errs, syscall.Kill(r.pid, syscall.SIGKILL))
		}
	}
	if err := os.Remove(w.socket()); !errors.Is(err, fs.ErrNotExist) {
		errs = append(errs, err)
	}
	return errors.Join(append(errs, os.RemoveAll(w.dir))...)
}

// A remnant is something of a world that still runs.
type remnant struct {
	what string
	pid  int
}

// left lists the processes of the world, which are those whose environment
// names a path in it, and its tmux server if that answers.
func (w *world) left() []remnant {
	var list []remnant
	if c, err := net.Dial("unix", w.socket()); err == nil {
		c.Close()
		list = append(list, remnant{what: "a tmux server at " + w.socket()})
	}
	words := []string{"axwwe", "-o", "pid=,command="} // e, E: with the environment
	if runtime.GOOS == "darwin" {
		words[0] = "-AwwE"
	}
	out, err := exec.Command("ps", words...).Output()
	if err != nil {
		return append(list, remnant{what: "ps: " + err.Error()})
	}
	for line := range strings.Lines(string(out)) {
		if !strings.Contains(line, "="+w.dir+"/") {
			continue
		}
		line = strings.TrimSpace(line)
		number, _, _ := strings.Cut(line, " ")
		pid, _ := strconv.Atoi(number)
		list = append(list, remnant{line, pid})
	}
	return list
}

// socket is that of the world's tmux server.
func (w *world) socket() string {
	h, err := home.At(w.home)
	if err != nil {
		panic(err) // newWorld made it
	}
	return fmt.Sprintf("/tmp/tmux-%d/%s", os.Getuid(), h.TmuxSocket())
}

// agree returns the sessions of the world's tmux server, which package tmux and its witness
// see alike.
func (w *world) agree(ctx context.Context) ([]string, error) {
	return testworld.Agree(ctx, &tmux.Server{Socket: w.socket(), Tags: []string{spawn.TagHome, spawn.TagStart}})
}

// witness compares what package tmux believes of the script's server with what gotmux reads;
// the sessions there are exactly those that are named.
func witness(ts *testscript.TestScript, neg bool, args []string) {
	w := world{home: ts.Getenv("NETSKY_HOME")}
	have, err := w.agree(context.Background())
	ts.Check(err)
	if slices.Sort(args); neg || !slices.Equal(have, args) {
		ts.Fatalf("the sessions are %v, want %v", have, args)
	}
}

// binDir is the directory in which TestMain has put netsky, alone.
func binDir() string {
	dir, _, _ := strings.Cut(os.Getenv("PATH"), ":")
	return dir
}

// hold takes a lock of the home as another process would, until `release` or the
// script's end.
func hold(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: hold LOCK")
	}
	h, err := home.At(ts.Getenv("NETSKY_HOME"))
	ts.Check(err)
	ctx, cancel := context.WithTimeout(context.Background(), testworld.Patience)
	defer cancel()
	l, err := h.WaitLock(ctx, args[0], nil)
	ts.Check(err)
	held.Store(ts.Getenv("NETSKY_HOME")+" "+args[0], l)
	ts.Defer(func() { _ = l.Unlock() })
}

func release(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: release LOCK")
	}
	l, ok := held.LoadAndDelete(ts.Getenv("NETSKY_HOME") + " " + args[0])
	if !ok {
		ts.Fatalf("%s is not held", args[0])
	}
	ts.Check(l.(*home.Lock).Unlock())
}

// held are the locks that scripts hold, by home and name.
var held sync.Map
