// Package keeper runs an agent's program in its pane and records how it ended.
//
// The keeper (Run) is the pane's own process. It promises that the program has the
// terminal as it would below a shell, that its end is recorded with the right status or
// signal, and that its last lines stay readable until the keeper is told to exit. The line
// "[agent1 exited: 3]" or "[agent1 killed: SIGKILL]" is written to the terminal before the
// end is recorded. So a reader that sees ended_ms finds the line in the pane as soon as
// the terminal program has read the output before it, within milliseconds and without a
// further event. The one exception is a terminal that accepts no output for a second: then
// the record is written anyway, since a stuck screen must not hide a death.
//
// The package does not know tmux, runtimes, or how a death is handled: it states facts.
// While it waits it reads two small files each minute, as keepers are what notices that both
// the daemon and the ticker were killed.
//
// A keeper that is killed takes the program with it (Linux: by a parent-death signal;
// elsewhere by the hangup of the terminal) and leaves a record without an end, whose
// process is dead. Processes that left the program's group survive it; they are found by
// [proc.Descendants] and their environment.
package keeper

import (
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"netsky/agent"
	"netsky/home"
	"netsky/internal/proc"
	"netsky/internal/tty"
)

// patience is how long a program may take to end after SIGTERM or SIGHUP before it is
// killed.
const patience = 5 * time.Second

// An ending is how a program ended: by signal, or with a status if that is 0.
type ending struct {
	status int
	signal unix.Signal
}

// code returns the ending as a shell's $?.
func (e ending) code() int {
	if e.signal != 0 {
		return 128 + int(e.signal)
	}
	return e.status
}

type keeper struct {
	home home.Dir
	id   agent.ID
	tty  *tty.Terminal
	prog *tty.Child // the program; one that has ended if it could not be started
	out  console
	rec  agent.Keeper

	version string // of this netsky

	unwatched func()
	again     *time.Timer // the next look

	stop  chan os.Signal // SIGTERM, SIGHUP: we are told to go
	child chan os.Signal // SIGCHLD
}

// Run is the process in an agent's pane. It reads the agent's launch, runs the program in
// the foreground of the terminal on its standard input, records how it ended, prints that
// on the terminal, and stays until it gets SIGTERM or SIGHUP. If one arrives while the
// program runs, it is passed on to the program's process group, which is killed if it has
// not ended after 5 s.
//
// A program that stops (Ctrl-Z, even SIGSTOP) is continued at once: there is no shell to
// return to. One that can't be started counts as exited with 127 if it is missing, else
// 126, and the reason is printed; so does an unreadable launch, whose record then has no
// start id. If the record can't be written, that is only printed.
//
// Run uses the whole process: it reaps every child, on Linux it becomes the reaper of all
// orphans below it, and it changes signal handling. It returns the exit status for the
// process: the program's, or 128 and the signal. version is recorded as that of the
// keeper. unwatched is called, each minute, while neither the daemon, which is wanted, nor
// the ticker runs; what it starts must not stay below the keeper.
func Run(home home.Dir, id agent.ID, version string, unwatched func()) int {
	// A parent-death signal is sent when the thread that started the child ends, so this
	// one has to stay.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	k := &keeper{
		home: home, id: id, version: version, tty: tty.Open(0), prog: new(tty.Child),
		stop:      make(chan os.Signal, 2), // one of each; more say nothing new
		child:     make(chan os.Signal, 1), // one means: look
		unwatched: unwatched, again: time.NewTimer(lookFirst),
	}
	defer k.again.Stop()
	signal.Notify(k.stop, unix.SIGTERM, unix.SIGHUP)
	signal.Notify(k.child, unix.SIGCHLD)
	tty.Catch() // for good
	becomeReaper()

	end, told := k.program()
	k.tell(end)
	for !told {
		select {
		case <-k.stop:
			told = true
		case <-k.child:
			k.prog.Reap(true)
		case <-k.again.C:
			k.look()
		}
	}
	if proc.Reaps && k.alone() {
		k.cleared()
	}
	k.tty.Restore()
	return end.code()
}

// lingering is how long the program's other processes may take to end after it, once the
// keeper has been told to exit.
const lingering = 500 * time.Millisecond

// alone reports whether nothing is left below us: the program's processes hang below it
// or, when their parent has died, below us, so without a child there is none.
func (k *keeper) alone() bool {
	for late := time.After(lingering); ; {
		k.prog.Reap(true)
		if _, err := unix.Wait4(-1, nil, unix.WNOHANG, nil); err == unix.ECHILD {
			return true
		}
		select {
		case <-k.child:
		case <-late:
			return false
		}
	}
}

// cleared records that nothing is left, unless the record is a later start's.
func (k *keeper) cleared() {
	if now, err := k.home.LoadKeeper(k.id); err != nil || now.Start != k.rec.Start || now.Own != k.rec.Own {
		return
	}
	k.rec.ClearedMS = time.Now().UnixMilli()
	k.save()
}

// program runs the program to its end, and reports whether we were told to exit meanwhile.
func (k *keeper) program() (end ending, told bool) {
	if status := k.start(); status != 0 {
		return ending{status: status}, false
	}
	k.save()
	var late <-chan time.Time
	for {
		select {
		case <-k.child:
			if ws, ended := k.prog.Reap(true); ended {
				if ws.Signaled() {
					return ending{signal: ws.Signal()}, told
				}
				return ending{status: ws.ExitStatus()}, told
			}
		case s := <-k.stop:
			told = true
			k.prog.Signal(s.(unix.Signal))
			if late == nil {
				late = time.After(patience)
			}
		case <-late:
			k.prog.Signal(unix.SIGKILL)
		case <-k.again.C:
			k.look()
		}
	}
}

// start starts the program, or prints the reason for failure and returns its status.
func (k *keeper) start() (status int) {
	l, err := k.home.LoadLaunch(k.id)
	if err == nil {
		err = check(l, k.id)
	}
	k.rec = agent.Keeper{Start: l.Start, Own: proc.Self(), Version: k.version, StartedMS: time.Now().UnixMilli()}
	if len(l.Argv) > 0 {
		k.rec.Program = l.Argv[0]
	}
	status = cannotRun
	if err == nil {
		var child *tty.Child
		if child, status, err = start(l, k.tty); err == nil {
			k.prog = child
		}
	}
	// From here on we are in the background, and taking the terminal back would
	// stop us; also if the program was not found, since that is found out in a
	// child which has the terminal. Not sooner: the program would ignore it too.
	signal.Ignore(unix.SIGTTOU)
	if err != nil {
		k.out.print(fmt.Sprintf("%s: %v\r\n", k.id, err))
		return status
	}
	k.rec.Above = proc.OwnLineage()
	k.rec.Process, _ = proc.Find(k.prog.PID()) // ended already: its number, without a birth
	return 0
}

// tell reports how the program ended: on the terminal, then in the record.
func (k *keeper) tell(end ending) {
	k.rec.EndedMS = time.Now().UnixMilli()
	line := fmt.Sprintf("exited: %d", end.status)
	if end.signal == 0 {
		k.rec.Status = &end.status
	} else {
		k.rec.Signal = signalName(end.signal)
		line = "killed: " + k.rec.Signal
	}
	k.out.print(k.tty.Take() + fmt.Sprintf("\r\n[%s %s]\r\n", k.id, line))
	k.save()
}

func (k *keeper) save() {
	if err := k.home.SaveKeeper(k.id, k.rec); err != nil {
		k.out.print(fmt.Sprintf("\r\n%s: no record: %v\r\n", k.id, err))
	}
}

func signalName(sig unix.Signal) string {
	if name := unix.SignalName(sig); name != "" {
		return name
	}
	return fmt.Sprintf("SIG%d", int(sig)) // real-time signals have no names
}
