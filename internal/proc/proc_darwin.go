package proc

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"golang.org/x/sys/unix"
)

// Reaps reports whether everything that a keeper's program starts stays below the
// keeper while that lives.
const Reaps = false

// Booted returns when the machine was started.
func Booted() (time.Time, error) {
	t, err := unix.SysctlTimeval("kern.boottime")
	if err != nil {
		return time.Time{}, err
	}
	return time.Unix(t.Sec, int64(t.Usec)*1000), nil
}

// Signal signals the process if its number still means it. The error matches
// fs.ErrNotExist if it is gone, or has no birth.
func (p Process) Signal(sig unix.Signal) error {
	err := error(unix.ESRCH)
	if p.Alive() {
		err = unix.Kill(p.PID, sig)
	}
	if err == unix.ESRCH {
		err = fs.ErrNotExist
	}
	if err != nil {
		return fmt.Errorf("process %d: %w", p.PID, err)
	}
	return nil
}

func procStat(pid int) (procEntry, error) {
	k, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err == unix.EIO { // an empty answer: no process has the number
		return procEntry{}, fmt.Errorf("process %d: %w", pid, fs.ErrNotExist)
	}
	if err != nil {
		return procEntry{}, err
	}
	const zombie = 5 // SZOMB, <sys/proc.h>
	if int(k.Proc.P_pid) != pid || k.Proc.P_stat == zombie {
		return procEntry{}, fmt.Errorf("process %d: %w", pid, fs.ErrNotExist)
	}
	return entry(k), nil
}

// procCPU: macOS reports it by a call that needs C.
func procCPU(int) time.Duration { return 0 }

func procTable() ([]procEntry, error) {
	all, err := unix.SysctlKinfoProcSlice("kern.proc.all")
	if err != nil {
		return nil, err
	}
	list := make([]procEntry, len(all))
	for i := range all {
		list[i] = entry(&all[i])
	}
	return list, nil
}

func entry(k *unix.KinfoProc) procEntry {
	t := k.Proc.P_starttime
	return procEntry{
		pid:    int(k.Proc.P_pid),
		parent: int(k.Eproc.Ppid),
		group:  int(k.Eproc.Pgid),
		start:  t.Sec*1e6 + int64(t.Usec),
	}
}

// A markReader finds nothing: macOS does not show another process's environment without
// privilege.
type markReader struct{ err error }

func (*markReader) find(int, map[string]int) (int, bool) { return 0, false }

// Env finds nothing, as macOS does not show another process's environment.
func (p Process) Env(string) (value string, ok bool) { return "", false }

// Environ returns nothing, as macOS does not show another process's environment.
func (p Process) Environ() []string { return nil }

// Cgroup returns nothing: there are none.
func (p Process) Cgroup() string { return "" }

// Dir returns nothing: it is not asked for.
func (p Process) Dir() string { return "" }

// procSpace: macOS has no reaper but launchd, which adopts everybody's orphans, so they
// can't be told apart.
func procSpace() (string, error) {
	return "", errors.New("macOS does not report what a process has left behind")
}

func procBegan(start int64) (time.Time, error) { return time.UnixMicro(start), nil }

func procUser(pid int) (uid int, ok bool) {
	k, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil {
		return 0, false
	}
	return int(k.Eproc.Ucred.Uid), true
}

func procCommand(pid int) string {
	k, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil {
		return ""
	}
	return unix.ByteSliceToString(k.Proc.P_comm[:])
}

// Memory returns 0: macOS reports it by a call that needs C.
func (p Process) Memory() int64 { return 0 }
