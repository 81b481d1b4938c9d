package codex

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"netsky/agent"
	"netsky/codex/appserver"
	"netsky/internal/tty"
)

// A tui shows Codex's own TUI in the terminal, as a foreground child, as often as a
// person wants to see it. The agent does not depend on it.
type tui struct {
	id      agent.ID
	program string
	remote  string // of the server
	dir     string
	env     []string
	goals   []string // as the server has it
	tty     *tty.Terminal
	free    func()   // no longer catches what the terminal sends
	poke    *os.File // the write end of a pipe: something has changed
	poked   *os.File
	done    chan struct{}

	mu     sync.Mutex // guards the fields below
	thread string     // to show; "" none yet
	seen   []string   // overrides for announcements that need not be shown
	shown  string     // with which the running child was started
	child  *tty.Child // nil: not running
	closed bool
}

// uiHome is a CODEX_HOME for the TUI alone. It keeps Codex from asking what netsky
// would have to answer, and from writing into the person's own.
func uiHome(id agent.ID) string { return "state/codex-ui/" + string(id) }

const uiConfig = `check_for_update_on_startup = false
[tui]
animations = false
show_tooltips = false
screen_reader_detection_done = true
`

// noNudge keeps a dialog off the screen that near a limit offers another model.
const noNudge = "notice.hide_rate_limit_model_nudge=true"

// newTUI returns nil if there is no terminal for it.
func newTUI(s *resident) (*tui, error) {
	term := tty.Open(0)
	if term == nil {
		return nil, nil
	}
	home := uiHome(s.Agent)
	d, err := s.Home.OpenDir(home, true)
	if err != nil {
		return nil, err
	}
	d.Close()
	if err := s.Home.WriteFile(home+"/config.toml", []byte(uiConfig), false); err != nil {
		return nil, err
	}
	t := &tui{
		id: s.Agent, program: s.program, goals: goals(s.Goals), remote: "unix://" + appserver.SocketPath(s.Home, s.Agent), dir: s.Dir,
		env: append(append([]string(nil), s.env...), "CODEX_HOME="+s.Home.Path(home)),
		tty: term, free: tty.Catch(), done: make(chan struct{}),
	}
	if t.poked, t.poke, err = os.Pipe(); err != nil {
		return nil, err
	}
	go t.run()
	return t, nil
}

// show sets the thread to show from now on. seen are overrides of Codex's configuration
// that keep its announcements off the screen.
func (t *tui) show(thread string, seen []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.seen = seen
	if t.thread == thread {
		return
	}
	t.thread = thread
	if t.shown != thread {
		t.kill(unix.SIGTERM)
	}
	t.poke.Write([]byte{0})
}

// close ends the TUI and waits for it.
func (t *tui) close() {
	t.mu.Lock()
	t.closed = true
	t.kill(unix.SIGTERM)
	t.poke.Write([]byte{0})
	t.mu.Unlock()
	select {
	case <-t.done:
	case <-time.After(patience / 2):
		t.mu.Lock()
		t.kill(unix.SIGKILL)
		t.mu.Unlock()
		<-t.done
	}
	t.tty.Lend()
	t.free()
	t.poke.Close()
	t.poked.Close()
}

// kill signals the running child, if any; the caller holds mu.
func (t *tui) kill(sig unix.Signal) {
	if t.child != nil {
		t.child.Signal(sig)
	}
}

func (t *tui) run() {
	// A parent-death signal is sent when the thread that started the child ends, so
	// this one must not end.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(t.done)
	for {
		child, err := t.start()
		ending := ""
		switch {
		case err != nil:
			ending = err.Error()
		case child != nil:
			ending = how(child.Wait())
			fmt.Print(t.tty.Take())
		}
		t.mu.Lock()
		again := t.thread != t.shown
		closed := t.closed
		t.mu.Unlock()
		switch {
		case closed:
			return
		case again && err == nil:
			continue
		case ending != "":
			fmt.Printf("\r\n%s continues without Codex's screen (%s): mail is processed and answered as before.\r\n"+
				"Press Enter to bring the screen back.\r\n", t.id, ending)
		}
		t.key()
	}
}

// start starts the TUI, if there is a thread to show.
func (t *tui) start() (*tty.Child, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.child, t.shown = nil, t.thread
	if t.closed || t.thread == "" {
		return nil, nil
	}
	t.tty.Lend()
	argv := []string{"codex", "resume", t.thread, "--remote", t.remote}
	for _, o := range slices.Concat([]string{noNudge}, t.goals, t.seen) {
		argv = append(argv, "-c", o)
	}
	child, err := tty.Start(t.tty, t.program, argv, t.env, t.dir)
	if err != nil {
		fmt.Print(t.tty.Take()) // the child that failed to start had the terminal
		return nil, fmt.Errorf("start codex: %w", err)
	}
	t.child = child
	return child, nil
}

// how returns how the TUI ended.
func how(end unix.WaitStatus) string {
	switch {
	case end.Signaled():
		return "killed: " + unix.SignalName(end.Signal())
	case end.ExitStatus() != 0:
		return fmt.Sprintf("exited: %d", end.ExitStatus())
	}
	return "closed"
}

// key waits for Enter or a space, or until something has changed.
func (t *tui) key() {
	keys := true
	for {
		fds := []unix.PollFd{{Fd: int32(t.poked.Fd()), Events: unix.POLLIN}, {Fd: 0, Events: unix.POLLIN}}
		if !keys {
			fds = fds[:1]
		}
		if _, err := unix.Poll(fds, -1); err != nil && err != unix.EINTR {
			return
		}
		buf := make([]byte, 64)
		if fds[0].Revents != 0 {
			t.poked.Read(buf)
			return
		}
		if !keys || fds[1].Revents == 0 {
			continue
		}
		n, err := unix.Read(0, buf)
		if n <= 0 && err != unix.EINTR && err != unix.EAGAIN {
			keys = false // the terminal has hung up
		}
		for _, c := range buf[:max(n, 0)] {
			if c == '\r' || c == '\n' || c == ' ' {
				return
			}
		}
	}
}
