package home

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"
	"time"

	"netsky/agent"
	"netsky/internal/advice"
	"netsky/internal/proc"

	"golang.org/x/sys/unix"
)

// ErrLocked is returned by Lock when another process holds the lock.
var ErrLocked = advice.With(errors.New("held by another process"),
	"wait for it to finish, or see `netsky status`")

// A Lock is an flock on a file in run/lock and, for locks that must not be held twice even
// if run/ is removed meanwhile, on the directory they protect. The kernel releases both
// with the process, so a crash leaves none behind; the file stays and names the last
// holder, and whether it has released the lock. The flock belongs to the open file: a
// second Lock in the same process is refused like one in another.
type Lock struct {
	home  Dir
	name  string
	role  Role
	about *os.File // the directory; nil if the lock is on the file alone

	mu sync.Mutex
	f  *os.File // guarded by mu
}

// The locks of a home, by what their holder does. Their names are defined only here.
const (
	DaemonLock   = agent.DaemonName // is the daemon
	UpLock       = "up"             // starts or ends agents
	WatchdogLock = "watchdog"       // restarts agents that have died
	TickLock     = "tick"           // checks the daemon
	QuietLock    = "quiet"          // changes the quiet hours
	RouterLock   = "router"         // delivers mail from outboxes
	TmuxLock     = "tmux"           // makes or ends sessions, or attaches a control client
	BreakersLock = "breakers"       // changes a breaker
	EscalateLock = "escalate"       // changes the list of alerts that reached nobody
	PhoneLock    = "phone"          // carries messages to and from the phone
	AccessLock   = "phone-access"   // changes who may speak by phone, or a pairing
	EntriesLock  = "worktrees"      // adds or removes a git repository's entry of a worktree
	LandingLock  = "landing"        // lands work, or undoes that
	TasksLock    = "tasks"          // changes a task
	SelfLock     = "self"           // replaces netsky's program, or restarts the daemon
	LinkLock     = "link"           // changes which hosts belong to the team

	LinkServerLock = "link-server" // keeps what crosses between the team's hosts
)

const receiverLock = "receiver-"

// ReceiverLock returns the lock whose holder takes the mail of an address.
func ReceiverLock(id agent.ID) string { return receiverLock + string(id) }

// DialogLock returns the lock whose holder presses keys in an agent's pane.
func DialogLock(id agent.ID) string { return "dialog-" + string(id) }

// WorktreeLock returns the lock whose holder makes or removes an agent's worktree.
func WorktreeLock(id agent.ID) string { return "worktree-" + string(id) }

// CheckLock returns the lock whose holder runs a check of an agent's work.
func CheckLock(id agent.ID) string { return "check-" + string(id) }

// daemonFile names the daemon a second time, where removing run/ does not reach it.
const daemonFile = "state/daemon.json"

// lockAbout returns the directory that a lock protects: without removing it, nobody can
// hold the lock beside another. "" is none.
func lockAbout(name string) string {
	switch address, ok := strings.CutPrefix(name, receiverLock); {
	case ok:
		return Mailbox(agent.ID(address))
	case name == DaemonLock:
		return "."
	case name == RouterLock:
		return Channels
	case name == UpLock:
		return LaunchDir
	}
	return ""
}

// leftTime is how long a lock may outlive its last holder. One that was killed while it
// started a program leaves it to the child until that executes, and a process that only
// checks a lock holds it for a moment.
const leftTime = time.Second

// Lock takes the lock name without waiting. If another process holds it, the error matches
// ErrLocked and names the holder if known.
func (h Dir) Lock(name string) (*Lock, error) { return takeLock(h, name, "") }

func takeLock(h Dir, name string, role Role) (*Lock, error) {
	for end := time.Now().Add(leftTime); ; time.Sleep(5 * time.Millisecond) {
		l, err := tryLock(h, name, role)
		if !errors.Is(err, ErrLocked) {
			return l, err
		}
		who, held := h.LockHolder(name)
		switch {
		case held && who.Named():
			return nil, heldError{name, who}
		case held || !who.Named() || time.Now().After(end):
			return nil, err
		}
	}
}

func tryLock(h Dir, name string, role Role) (*Lock, error) {
	about, err := lockDir(h, lockAbout(name))
	if err == nil {
		var f *os.File
		if f, err = lockFile(h, name, role); err == nil {
			return &Lock{home: h, name: name, role: role, about: about, f: f}, nil
		}
	}
	if about != nil {
		about.Close()
	}
	if errors.Is(err, ErrLocked) {
		return nil, fmt.Errorf("%s: %w", name, ErrLocked)
	}
	return nil, fmt.Errorf("lock %s: %w", name, err)
}

// lockDir locks a directory of the home; nil without an error if it does not exist, or its
// file system can't lock directories.
func lockDir(h Dir, rel string) (*os.File, error) {
	if rel == "" {
		return nil, nil
	}
	d, err := h.OpenDir(rel, false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	// A process that only checks the lock holds it for a moment.
	for range 5 {
		if err = flock(d, unix.LOCK_EX); !errors.Is(err, ErrLocked) {
			break
		}
		time.Sleep(time.Millisecond)
	}
	if err == nil {
		return d, nil
	}
	d.Close()
	return nil, ignoreUnlockable(err)
}

// ignoreUnlockable drops the error of a file system that can't lock directories, such as
// NFS: there the lock's file alone must do.
func ignoreUnlockable(err error) error {
	if errors.Is(err, unix.EBADF) || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		return nil
	}
	return err
}

// lockFile creates and locks the lock's file and writes our identity into it.
func lockFile(h Dir, name string, role Role) (*os.File, error) {
	f, err := h.openFile(LockDir+"/"+name, unix.O_RDWR|unix.O_CREAT, true)
	if err != nil {
		return nil, err
	}
	me := ownHolder(role)
	if err = flock(f, unix.LOCK_EX); err == nil {
		err = me.write(f)
	}
	if err == nil && name == DaemonLock {
		err = h.Save(daemonFile, me, false)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// flock takes a lock without waiting; ErrLocked if another holds it.
func flock(f *os.File, how int) error {
	for {
		switch err := unix.Flock(int(f.Fd()), how|unix.LOCK_NB); err {
		case unix.EINTR:
		case unix.EWOULDBLOCK:
			return ErrLocked
		default:
			return err
		}
	}
}

// Keep creates the lock's file again if it has been removed, and reports whether it was:
// the lock is still ours, but its holder was unreadable. It is for locks that protect a
// directory, which keeps others out meanwhile.
func (l *Lock) Keep() (removed bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.about == nil || l.f == nil {
		return false, nil
	}
	there, err := os.Lstat(l.home.Path(LockDir, l.name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	if ours, ferr := l.f.Stat(); err == nil && (ferr != nil || os.SameFile(there, ours)) {
		return false, ferr
	}
	f, err := lockFile(l.home, l.name, l.role)
	if err != nil {
		return true, fmt.Errorf("lock %s: %w", l.name, err)
	}
	l.f.Close()
	l.f = f
	return true, nil
}

// Here reports whether the directory that the lock protects is still the one at its path.
func (l *Lock) Here() bool {
	if l.about == nil {
		who, ok := l.home.LockHolder(l.name)
		return ok && who.PID == os.Getpid()
	}
	ours, err := l.about.Stat()
	if err != nil {
		return false
	}
	there, err := os.Stat(l.home.Path(lockAbout(l.name)))
	return err == nil && os.SameFile(ours, there)
}

// WaitLock takes the lock, waiting until ctx ends. blocked, if not nil, is called once
// with the refusal if it has to wait.
func (h Dir) WaitLock(ctx context.Context, name string, blocked func(error)) (*Lock, error) {
	return h.WaitLockAs(ctx, name, "", blocked)
}

// WaitLockAs is WaitLock for a holder with a role.
func (h Dir) WaitLockAs(ctx context.Context, name string, role Role, blocked func(error)) (*Lock, error) {
	for wait := 2 * time.Millisecond; ; wait = min(wait*2, 100*time.Millisecond) {
		l, err := takeLock(h, name, role)
		if !errors.Is(err, ErrLocked) {
			return l, err
		}
		if blocked != nil {
			blocked(err)
			blocked = nil
		}
		if proc.Sleep(ctx, wait) != nil {
			return nil, err
		}
	}
}

// File returns the lock's open file. A child that inherits it holds the lock until it ends, too, also
// if this process ends before. It is for locks that protect no directory.
func (l *Lock) File() *os.File {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.f
}

// Unlock releases the lock. The file stays and says so, as its last holder may live long
// after.
func (l *Lock) Unlock() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.f == nil {
		return fs.ErrClosed
	}
	who := ownHolder(l.role)
	who.Released = true
	_ = who.write(l.f) // at worst the lock looks held while this process lives
	err := l.f.Close()
	l.f = nil
	if l.about != nil {
		err = errors.Join(err, l.about.Close())
	}
	return err
}

// LockHolder returns the living process that holds the lock. If the lock is held but its
// file does not say by whom, because somebody removed or damaged it, the holder has no
// number. Otherwise LockHolder takes no lock, so it never makes another's attempt fail.
func (h Dir) LockHolder(name string) (Holder, bool) {
	who, err := readHolder(h, LockDir+"/"+name)
	if err == nil && who.Named() {
		return who, !who.Released && who.Alive()
	}
	if held, err := dirLocked(h, lockAbout(name)); err != nil || !held {
		return Holder{}, false
	}
	if name == DaemonLock {
		if who, err := readHolder(h, daemonFile); err == nil && who.Alive() {
			return who, true
		}
	}
	return Holder{Program: "an unknown process"}, true
}

// LastHolder returns who took the lock last, according to its file; that process may have
// released it or died. The error matches fs.ErrNotExist if nobody has.
func (h Dir) LastHolder(name string) (Holder, error) { return readHolder(h, LockDir+"/"+name) }

// Abandoned reports whether a process that was started since the program was, not the
// program itself, has held the lock and died. One that held it in passing does not count.
func (h Dir) Abandoned(name string, program proc.Process) bool {
	who, held := h.LockHolder(name)
	return !held && who.Gone() && !who.Passing() && who.PID != program.PID && who.Start >= program.Start
}

func readHolder(h Dir, rel string) (who Holder, err error) {
	data, err := h.ReadFile(rel, 4096)
	if err == nil {
		err = json.NewDecoder(bytes.NewReader(data)).Decode(&who)
	}
	return who, err
}

// Locked reports whether a process holds the lock now, whatever its file says. It holds
// the lock for a moment itself, so call it only right before acting on the result.
func (h Dir) Locked(name string) (bool, error) {
	held, err := dirLocked(h, lockAbout(name))
	if held || err != nil {
		return held, err
	}
	f, err := h.openFile(LockDir+"/"+name, unix.O_RDONLY, false)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	return probe(f)
}

// dirLocked reports whether somebody holds the lock of a directory of the home.
func dirLocked(h Dir, rel string) (bool, error) {
	if rel == "" {
		return false, nil
	}
	d, err := h.OpenDir(rel, false)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer d.Close()
	return probe(d)
}

func probe(f *os.File) (held bool, err error) {
	if err = flock(f, unix.LOCK_SH); errors.Is(err, ErrLocked) {
		return true, nil
	}
	return false, ignoreUnlockable(err)
}
