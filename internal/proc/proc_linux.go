package proc

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Signal signals the process through a pidfd, which no other process can take over. The
// error matches fs.ErrNotExist if it is gone, or has no birth.
func (p Process) Signal(sig unix.Signal) error {
	if !p.Named() {
		return fmt.Errorf("process %d: not named by its birth: %w", p.PID, fs.ErrNotExist)
	}
	fd, err := unix.PidfdOpen(p.PID, 0)
	if err == nil {
		defer unix.Close(fd)
		// The birth identifies the process only now that the pidfd holds it.
		if !p.Alive() {
			err = unix.ESRCH
		} else {
			err = unix.PidfdSendSignal(fd, sig, nil, 0)
		}
	}
	if err == unix.ESRCH {
		err = fs.ErrNotExist
	}
	if err != nil {
		return fmt.Errorf("process %d: %w", p.PID, err)
	}
	return nil
}

// Reaps reports whether everything that a keeper's program starts stays below the
// keeper while that lives.
const Reaps = true

// Booted returns when the machine was started.
func Booted() (time.Time, error) {
	var since unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &since); err != nil {
		return time.Time{}, err
	}
	return time.Now().Add(-time.Duration(since.Nano())), nil
}

// procRead reads a file of a process's into buf, or a larger one. The error matches
// fs.ErrNotExist if the process is gone. (Listing all processes reads hundreds of
// these: os.ReadFile makes twice the system calls.)
func procRead(pid int, name string, buf []byte) ([]byte, error) {
	path := "/proc/" + strconv.Itoa(pid) + "/" + name
	fd, err := Open(path, unix.O_RDONLY)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	for buf = buf[:0]; ; {
		if len(buf) == cap(buf) {
			buf = slices.Grow(buf, max(cap(buf), 512))
		}
		n, err := unix.Read(fd, buf[len(buf):cap(buf)])
		switch {
		case err == unix.EINTR:
		case err == unix.ESRCH:
			return nil, fmt.Errorf("process %d: %w", pid, fs.ErrNotExist)
		case err != nil:
			return nil, &fs.PathError{Op: "read", Path: path, Err: err}
		case n == 0:
			return buf, nil
		default:
			buf = buf[:len(buf)+n]
		}
	}
}

// procStat reads /proc/PID/stat: fields 3 (state), 4 (parent), 5 (process group), 20
// (threads) and 22 (start) of proc(5), counted after the last ')' because a program's
// name may contain anything.
func procStat(pid int) (procEntry, error) {
	var room [1024]byte
	data, err := procRead(pid, "stat", room[:])
	if err != nil {
		return procEntry{}, err
	}
	_, rest, ok := bytes.Cut(data[max(bytes.LastIndexByte(data, ')'), 0):], []byte(") "))
	var f [20][]byte
	n := 0
	for word := range bytes.FieldsSeq(rest) {
		if f[n] = word; n == len(f)-1 {
			break
		}
		n++
	}
	if !ok || f[len(f)-1] == nil {
		return procEntry{}, fmt.Errorf("/proc/%d/stat: not understood", pid)
	}
	// The first thread of a process is a zombie, and its descriptors and locks are
	// kept, as long as another thread runs or is still dying.
	if threads := string(f[17]); f[0][0] == 'X' || f[0][0] == 'Z' && (threads == "0" || threads == "1") {
		return procEntry{}, fmt.Errorf("process %d: %w", pid, fs.ErrNotExist)
	}
	parent, err := strconv.Atoi(string(f[1]))
	if err != nil {
		return procEntry{}, err
	}
	group, err := strconv.Atoi(string(f[2]))
	if err != nil {
		return procEntry{}, err
	}
	start, err := strconv.ParseInt(string(f[19]), 10, 64)
	return procEntry{pid: pid, parent: parent, group: group, start: start}, err
}

// procCPU reads the fields 14 to 17 of /proc/PID/stat, which count hundredths of a second, and what
// its threads have waited.
func procCPU(pid int) (sum time.Duration) {
	var room [1024]byte
	data, err := procRead(pid, "stat", room[:])
	if err != nil {
		return 0
	}
	f := bytes.Fields(data[max(bytes.LastIndexByte(data, ')'), 0):])
	for i := 12; i < min(16, len(f)); i++ { // f[1] is field 3
		n, _ := strconv.ParseInt(string(f[i]), 10, 64)
		sum += time.Duration(n) * (time.Second / 100)
	}
	return sum + procWaits(pid)
}

// procWaits reads from each thread's schedstat the second number, the nanoseconds for which it was
// ready to run and had no processor. A kernel without CONFIG_SCHED_INFO has no such file.
func procWaits(pid int) (sum time.Duration) {
	d, err := os.Open("/proc/" + strconv.Itoa(pid) + "/task")
	if err != nil {
		return 0
	}
	defer d.Close()
	threads, _ := d.Readdirnames(-1)
	var room [128]byte
	for _, t := range threads {
		data, err := procRead(pid, "task/"+t+"/schedstat", room[:])
		if f := bytes.Fields(data); err == nil && len(f) > 1 {
			n, _ := strconv.ParseInt(string(f[1]), 10, 64)
			sum += time.Duration(n)
		}
	}
	return sum
}

func procTable() ([]procEntry, error) {
	d, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	list := make([]procEntry, 0, len(names))
	for _, n := range names {
		pid, err := strconv.Atoi(n)
		if err != nil {
			continue
		}
		switch e, err := procStat(pid); {
		case err == nil:
			list = append(list, e)
		case wanting(err):
			return nil, err
		}
	}
	return list, nil
}

// wanting reports whether a process could not be read for lack of descriptors or
// memory, and not because it is gone: it must not count as gone then.
func wanting(err error) bool {
	return errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) || errors.Is(err, unix.ENOMEM)
}

// A markReader reads environments, each into the same buffer.
type markReader struct {
	room []byte
	err  error // why the environment of a possible member could not be read
}

// find returns which of the words are in the environment with which a process was
// started. Another user's can't be read, and so never matches.
func (r *markReader) find(pid int, words map[string]int) (int, bool) {
	if len(words) == 0 {
		return 0, false
	}
	if r.room == nil {
		r.room = make([]byte, 8<<10)
	}
	env, err := procRead(pid, "environ", r.room)
	if err != nil {
		if wanting(err) {
			r.err = err
		}
		return 0, false
	}
	r.room = env[:cap(env)]
	for v := range bytes.SplitSeq(env, []byte{0}) {
		if i, ok := words[string(v)]; ok {
			return i, true
		}
	}
	return 0, false
}

// Env returns a variable of the environment with which the process was started. ok is
// false if it has none of that name, or can't be read.
func (p Process) Env(name string) (value string, ok bool) {
	for _, v := range p.Environ() {
		if value, ok = strings.CutPrefix(v, name+"="); ok {
			return value, true
		}
	}
	return "", false
}

// Environ returns the environment with which the process was started; nothing if it can't be read.
func (p Process) Environ() []string {
	env, err := procRead(p.PID, "environ", nil)
	if err != nil || !p.Alive() || len(env) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(env), "\x00"), "\x00")
}

// Cgroup names the process's control groups, "" if they can't be read.
func (p Process) Cgroup() string {
	text, err := procRead(p.PID, "cgroup", nil)
	if err != nil || !p.Alive() {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// Dir returns where the process is, "" if that can't be read.
func (p Process) Dir() string {
	dir, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", p.PID))
	if err != nil || !p.Alive() {
		return ""
	}
	return dir
}

// procSpace names this process's process namespace. It returns an error if /proc hides
// processes from it.
func procSpace() (string, error) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(mounts)) {
		f := strings.Fields(line)
		if len(f) < 5 || f[4] != "/proc" {
			continue
		}
		for option := range strings.FieldsFuncSeq(line, func(r rune) bool { return r == ' ' || r == ',' || r == '\n' }) {
			how, ok := strings.CutPrefix(option, "hidepid=")
			if ok && how != "0" && how != "off" || option == "subset=pid" {
				return "", fmt.Errorf("/proc: mounted with %s", option)
			}
		}
	}
	return os.Readlink("/proc/self/ns/pid")
}

// tick is the unit of a process's birth: the kernel reports 100 a second to programs,
// whatever its own clock does.
const tick = time.Second / 100

func procBegan(start int64) (time.Time, error) {
	booted, err := Booted()
	return booted.Add(time.Duration(start) * tick), err
}

func procUser(pid int) (uid int, ok bool) {
	info, err := os.Stat("/proc/" + strconv.Itoa(pid))
	if err != nil {
		return 0, false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int(st.Uid), true
}

// procCommand reads the beginning of the command line; a program without one still has
// a name.
func procCommand(pid int) string {
	dir := "/proc/" + strconv.Itoa(pid)
	buf := make([]byte, 4096)
	if f, err := os.Open(dir + "/cmdline"); err == nil {
		n, _ := f.Read(buf)
		f.Close()
		if text := strings.TrimSpace(strings.ReplaceAll(string(buf[:n]), "\x00", " ")); text != "" {
			return text
		}
	}
	name, err := os.ReadFile(dir + "/comm")
	if err != nil {
		return ""
	}
	return "[" + strings.TrimSpace(string(name)) + "]"
}

// Memory returns how many bytes of memory the process occupies, 0 if that is not known.
func (p Process) Memory() int64 {
	var room [128]byte
	data, err := procRead(p.PID, "statm", room[:])
	f := bytes.Fields(data)
	if err != nil || len(f) < 2 || !p.Alive() {
		return 0
	}
	pages, _ := strconv.ParseInt(string(f[1]), 10, 64)
	return pages * int64(os.Getpagesize())
}
