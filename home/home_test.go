package home_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"netsky/agent"
	"netsky/home"
	"netsky/internal/proc"
	"netsky/internal/testworld"
)

func TestFindHome(t *testing.T) {
	login := testworld.Got(user.Current())(t)
	for _, tt := range []struct {
		name, home, netsky string
		want, socket       string // want "" means refused
	}{
		{"usual", login.HomeDir, "", login.HomeDir + "/.netsky", "netsky"},
		{"named, and HOME elsewhere", "/home/ann", login.HomeDir + "/.netsky", login.HomeDir + "/.netsky", "netsky"},
		{"HOME elsewhere", "/home/ann", "", "/home/ann/.netsky", ""},
		{"named", "/home/ann", "/srv/n", "/srv/n", ""},
		{"named as usual", login.HomeDir, login.HomeDir + "/.netsky/", login.HomeDir + "/.netsky", "netsky"},
		{"no HOME", "", "/srv/n", "/srv/n", ""},
		{"nothing", "", "", "", ""},
		{"relative", "/home/ann", "n", "", ""},
		{"too long", "/home/ann", "/" + strings.Repeat("x", 80), "", ""},
		{"longest", "/home/ann", "/" + strings.Repeat("x", 79), "/" + strings.Repeat("x", 79), ""},
		{"newline", "/home/ann", "/srv/a\nb", "", ""},
		{"not UTF-8", "/home/ann", "/srv/a\xff", "", ""},
		{"HOME not UTF-8", "/home/ann\xff", "", "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h, err := home.Find(func(k string) string {
				return map[string]string{"HOME": tt.home, "NETSKY_HOME": tt.netsky}[k]
			})
			if h.Root() != tt.want || (err == nil) != (tt.want != "") {
				t.Fatalf("home %q, error %v; want %q", h.Root(), err, tt.want)
			}
			if tt.socket != "" && h.TmuxSocket() != tt.socket {
				t.Errorf("socket %q, want %q", h.TmuxSocket(), tt.socket)
			}
			if err == nil && tt.socket == "" && !strings.HasPrefix(h.TmuxSocket(), "netsky-") {
				t.Errorf("socket %q: shared with the usual home", h.TmuxSocket())
			}
		})
	}
}

// The umask is the process's, so this test has a process of its own.
func TestModesWhateverTheUmask(t *testing.T) {
	for _, mask := range []int{0, 0o777} {
		dir := filepath.Join(t.TempDir(), "h")
		cmd := exec.Command(os.Args[0], "-test.run=^$")
		cmd.Env = append(os.Environ(), "AGENT_TEST_MAKE="+dir, "AGENT_TEST_UMASK="+map[int]string{0: "0", 0o777: "0777"}[mask])
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("umask %04o: %v\n%s", mask, err, out)
		}
		err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := e.Info()
			want := fs.FileMode(0o600)
			if e.IsDir() {
				want = 0o700
			}
			if err == nil && info.Mode().Perm() != want {
				t.Errorf("umask %04o: %s has mode %04o, want %04o", mask, path, info.Mode().Perm(), want)
			}
			return err
		})
		testworld.Equal(t, err, nil)
	}
}

func TestMain(m *testing.M) {
	if dir := os.Getenv("AGENT_TEST_MAKE"); dir != "" {
		mask := 0
		if os.Getenv("AGENT_TEST_UMASK") != "0" {
			mask = 0o777
		}
		if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
			panic(err)
		}
		if err := os.Mkdir(dir, 0o700); err != nil {
			panic(err)
		}
		unix.Umask(mask)
		h, err := home.At(dir)
		if err == nil {
			_, err = h.Make()
		}
		if err == nil {
			err = home.Desired(h).Set("agent1", true, "owner")
		}
		if err == nil {
			var l *home.Lock
			if l, err = h.Lock("up"); err == nil {
				err = l.Unlock()
			}
		}
		if err != nil {
			panic(err)
		}
		os.Exit(0)
	}
	if os.Getenv("AGENT_TEST_HOLD") != "" {
		h, err := home.At(os.Getenv("AGENT_TEST_HOLD"))
		if err != nil {
			panic(err)
		}
		if _, err := h.Lock("up"); err != nil {
			panic(err)
		}
		if os.Getenv("AGENT_TEST_CHILD") != "" {
			for fd := 3; fd < 32; fd++ {
				unix.FcntlInt(uintptr(fd), unix.F_SETFD, 0)
			}
			if err := exec.Command("sleep", "0.3").Start(); err != nil {
				panic(err)
			}
		}
		os.Stdout.WriteString("held\n")
		select {}
	}
	os.Exit(m.Run())
}

func TestOpenHomeIsRepaired(t *testing.T) {
	h := testworld.Home(t)
	testworld.Must(t, os.Chmod(h.Root(), 0o755))
	repaired, err := h.Make()
	if err != nil || len(repaired) != 1 || !strings.Contains(repaired[0], "0755") {
		t.Fatalf("repaired %q, %v", repaired, err)
	}
	if info, err := os.Stat(h.Root()); err != nil || info.Mode().Perm() != 0o700 {
		t.Fatalf("mode %v, %v", info.Mode(), err)
	}
}

func TestNoLinkIsFollowed(t *testing.T) {
	h := testworld.Home(t)
	outside := t.TempDir()
	secret := filepath.Join(outside, "secret")
	testworld.Must(t, os.WriteFile(secret, []byte("mine"), 0o600))
	testworld.Must(t, os.RemoveAll(h.Path("state/launch")))
	testworld.Must(t, os.Symlink(outside, h.Path("state/launch")))
	testworld.ErrorIs(t, h.SaveLaunch(agent.Launch{Agent: "agent1"}), home.ErrLink, "SaveLaunch through a linked directory")
	testworld.ErrorIs(t, testworld.Err(h.LoadLaunch("agent1")), home.ErrLink, "LoadLaunch through a linked directory")
	link := h.Path(home.KeeperDir, "agent1.json")
	testworld.Must(t, os.Symlink(secret, link))
	testworld.ErrorIs(t, testworld.Err(h.LoadKeeper("agent1")), home.ErrLink, "LoadKeeper of a link")
	testworld.Equal(t, h.SaveKeeper("agent1", agent.Keeper{Start: "s"}), nil, "SaveKeeper over a link")
	testworld.Equal(t, string(testworld.Got(os.ReadFile(secret))(t)), "mine", "the link's target was touched")
	for _, rel := range []string{"../x", "state/../../x", "state//x/../../../y"} {
		testworld.Fails(t, h.WriteFile(rel, nil, false), "", "WriteFile(%q) left the home", rel)
	}
}

func TestOddFilesDoNotBlock(t *testing.T) {
	h := testworld.Home(t)
	testworld.Must(t, syscall.Mkfifo(h.Path("state/fifo"), 0o600))
	testworld.Fails(t, testworld.Err(h.ReadFile("state/fifo", 10)), "", "a FIFO was read")
	testworld.Fails(t, testworld.Err(h.ReadFile("state", 10)), "", "a directory was read")
	testworld.Must(t, h.WriteFile("state/big", bytes.Repeat([]byte("x"), 11), false))
	testworld.Fails(t, testworld.Err(h.ReadFile("state/big", 10)), "", "a file over the limit was read")
}

func TestStateFiles(t *testing.T) {
	h := testworld.Home(t)
	testworld.ErrorIs(t, testworld.Err(h.LoadReport("agent1")), fs.ErrNotExist, "a report that was never made")
	three := 3
	k := agent.Keeper{Start: "s1", Process: proc.Process{PID: 7, Start: 9}, Program: "p", StartedMS: 1, EndedMS: 2, Status: &three}
	testworld.Must(t, h.SaveKeeper("agent1", k))
	got, err := h.LoadKeeper("agent1")
	if err != nil || got.PID != 7 || got.How() != "exited 3" || got.Process != k.Process {
		t.Errorf("keeper %+v, %v", got, err)
	}
	data, err := h.ReadFile("state/keepers/agent1.json", 1<<10)
	want := `{"start":"s1","pid":7,"pid_start":9,"program":"p","started_ms":1,"ended_ms":2,"status":3}` + "\n"
	if err != nil || string(data) != want {
		t.Errorf("keeper file %s, want %s", data, want)
	}
	testworld.Must(t, h.ClearReports("agent1"))
	testworld.ErrorIs(t, testworld.Err(h.LoadKeeper("agent1")), fs.ErrNotExist, "after ClearReports")
}

// What is wanted of several agents is written as one file, of which nothing shows:
// each is replaced by itself later, and what could not be written leaves no rest.
func TestDesiredOfSeveral(t *testing.T) {
	h := testworld.Home(t)
	desired := func() (s string) {
		names := testworld.Got(os.ReadDir(h.Path(home.DesiredDir)))(t)
		for _, e := range names {
			d, err := home.Desired(h).Load(e.Name())
			info, ierr := e.Info()
			if ierr != nil || info.Mode() != 0o600 && !info.IsDir() {
				t.Errorf("%s: %v, %v", e.Name(), info.Mode(), ierr)
			}
			s += fmt.Sprintf(" %s:%v:%s:%v", e.Name(), d.Up, d.By, err == nil)
		}
		return s
	}
	set := func(up bool, by string, ids ...agent.ID) error { return home.Desired(h).SetAll(ids, up, by) }
	for _, c := range []struct {
		name string
		do   func() error
		want string
	}{
		{"none", func() error { return set(true, "a") }, ""},
		{"one twice", func() error { return set(true, "a", "agent3", "agent2", "agent3", "agent1") },
			" agent1:true:a:true agent2:true:a:true agent3:true:a:true"},
		{"one of them", func() error { return home.Desired(h).Set("agent2", false, "b") },
			" agent1:true:a:true agent2:false:b:true agent3:true:a:true"},
		{"again", func() error { return set(false, "c", "agent1", "agent2", "agent4") },
			" agent1:false:c:true agent2:false:c:true agent3:true:a:true agent4:false:c:true"},
	} {
		testworld.Must(t, c.do(), "%s", c.name)
		testworld.Equal(t, desired(), c.want, "%s", c.name)
	}
	testworld.Must(t, os.Mkdir(h.Path(home.DesiredDir, "agent0"), 0o700))
	testworld.Fails(t, set(true, "d", "agent1", "agent0"), "", "a directory in the place of a file is no error")
	testworld.Equal(t, desired(), " agent0:false::false agent1:false:c:true agent2:false:c:true agent3:true:a:true agent4:false:c:true", "after a failure")
}

func TestLock(t *testing.T) {
	h := testworld.Home(t)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "AGENT_TEST_HOLD="+h.Root())
	out, err := cmd.StdoutPipe()
	testworld.Must(t, err)
	testworld.Must(t, cmd.Start())
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	testworld.Got(out.Read(make([]byte, 5)))(t)
	_, err = h.Lock("up")
	if !errors.Is(err, home.ErrLocked) || !strings.Contains(err.Error(), "pid ") {
		t.Fatalf("a lock that another process holds: %v", err)
	}
	if who, ok := h.LockHolder("up"); !ok || who.PID != cmd.Process.Pid {
		t.Errorf("holder %+v, %v; want pid %d", who, ok, cmd.Process.Pid)
	}
	told := make(chan error, 1)
	got := make(chan error, 1)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	go func() {
		l, err := h.WaitLock(ctx, "up", func(err error) { told <- err })
		if err == nil {
			err = l.Unlock()
		}
		got <- err
	}()
	testworld.ErrorIs(t, <-told, home.ErrLocked, "told")
	if err := cmd.Process.Kill(); err != nil { // kill -9 leaves no lock
		t.Fatal(err)
	}
	cmd.Wait()
	testworld.Equal(t, <-got, nil, "WaitLock after the holder's death")
	// Neither a dead process is the holder, nor we, who have given it back.
	if who, ok := h.LockHolder("up"); ok {
		t.Errorf("held by %+v, and nobody holds it", who)
	}
}

// A holder that is killed while it starts a program leaves the lock to that for a
// moment: it is waited for.
func TestLockOutlivesHolder(t *testing.T) {
	h := testworld.Home(t)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "AGENT_TEST_HOLD="+h.Root(), "AGENT_TEST_CHILD=1")
	out := testworld.Got(cmd.StdoutPipe())(t)
	testworld.Must(t, cmd.Start())
	testworld.Equal(t, testworld.Err(out.Read(make([]byte, 5))), nil)
	cmd.Process.Kill()
	cmd.Wait()
	if held, err := h.Locked("up"); err != nil || !held {
		t.Errorf("the child has not got the lock: %v, %v", held, err)
	}
	l := testworld.Got(h.Lock("up"))(t)
	l.Unlock()
}

// Who removes run/ while a lock is held does not get a second holder in, and the
// holder can name itself again.
func TestLockOutlivesRunDir(t *testing.T) {
	for _, name := range []string{agent.DaemonName, "receiver-agent1", "router", "up"} {
		t.Run(name, func(t *testing.T) {
			h := testworld.Home(t)
			box, err := h.OpenDir(home.Mailbox("agent1"), true)
			testworld.Must(t, err)
			box.Close()
			l, err := h.Lock(name)
			testworld.Must(t, err)
			testworld.Must(t, os.RemoveAll(h.Path(home.RunDir)))
			testworld.ErrorIs(t, testworld.Err(h.Lock(name)), home.ErrLocked, "a second holder")
			if who, held := h.LockHolder(name); !held || who.Named() && who.PID != os.Getpid() {
				t.Errorf("the holder is %+v, held %v", who, held)
			}
			if removed, err := l.Keep(); !removed || err != nil {
				t.Fatalf("Keep() = %v, %v; want it made again", removed, err)
			}
			if removed, err := l.Keep(); removed || err != nil {
				t.Errorf("Keep() = %v, %v; want nothing to do", removed, err)
			}
			if who, held := h.LockHolder(name); !held || who.PID != os.Getpid() {
				t.Errorf("the holder is %+v, held %v", who, held)
			}
			if held, err := h.Locked(name); !held || err != nil {
				t.Errorf("Locked() = %v, %v", held, err)
			}
			testworld.Equal(t, l.Here(), true, "the home counts as gone")
			testworld.Equal(t, l.Unlock(), nil)
			if held, err := h.Locked(name); held || err != nil {
				t.Errorf("after Unlock: Locked() = %v, %v", held, err)
			}
			if l, err = h.Lock(name); err != nil {
				t.Fatal(err)
			}
			l.Unlock()
		})
	}
}

// A lock's file says who holds it only by a whole identity: a number alone may
// be anybody's.
func TestLockHolderWithoutBirth(t *testing.T) {
	h := testworld.Home(t)
	line := fmt.Sprintf(`{"pid":%d,"pid_start":0,"program":"netsky daemon"}`, os.Getpid())
	for _, name := range []string{agent.DaemonName, "up", "tmux"} {
		testworld.Must(t, h.WriteFile(home.LockDir+"/"+name, []byte(line), false))
		if who, held := h.LockHolder(name); held {
			t.Errorf("%s: held by %+v", name, who)
		}
	}
}

func TestProcesses(t *testing.T) {
	me := proc.Self()
	if !me.Alive() || me.PID != os.Getpid() || me.Start == 0 {
		t.Fatalf("Self() = %+v", me)
	}
	testworld.Equal(t, (proc.Process{PID: me.PID, Start: me.Start + 1}).Alive(), false, "another process with our number counts as alive")
	nobody := proc.Process{PID: me.PID}
	if nobody.Alive() || nobody.Gone() {
		t.Error("a number without a birth counts as a process")
	}
	testworld.ErrorIs(t, nobody.Signal(0), fs.ErrNotExist, "signalling a number without a birth")
	testworld.Equal(t, me.Signal(0), nil)
	cmd := exec.Command("sh", "-c", "setsid sleep 60 & read x")
	in, err := cmd.StdinPipe()
	testworld.Must(t, err)
	cmd.Env = append(os.Environ(), "LONG="+strings.Repeat("x", 100_000), "NETSKY_START=abc")
	testworld.Must(t, cmd.Start())
	defer func() { in.Close(); cmd.Wait() }()
	var list []proc.Process
	for end := time.Now().Add(10 * time.Second); len(list) == 0 && time.Now().Before(end); {
		if list, err = proc.Descendants(cmd.Process.Pid, ""); err != nil {
			t.Fatal(err)
		}
	}
	if len(list) != 1 {
		t.Fatalf("descendants %v, want the one sleep", list)
	}
	defer syscall.Kill(list[0].PID, syscall.SIGKILL)
	marked, err := proc.Descendants(0, "NETSKY_START=abc")
	if err != nil || len(marked) != 2 {
		t.Errorf("marked %v, %v; want the shell and the sleep", marked, err)
	}
	kept, err := proc.Descendants(0, "NETSKY_START=abc", cmd.Process.Pid, list[0].PID)
	if err != nil || len(kept) != 0 {
		t.Errorf("kept processes were listed: %v, %v", kept, err)
	}
}

// Who took mail in passing is told apart from a receiver by the role in the lock's
// file, whatever its program is called; a netsky that wrote none is read as before.
func TestLockRoles(t *testing.T) {
	h := testworld.Home(t)
	name := home.ReceiverLock("agent1")
	testworld.ErrorIs(t, testworld.Err(h.LastHolder(name)), fs.ErrNotExist, "the last holder of a lock that nobody took")
	for _, role := range []home.Role{home.Passing, ""} {
		l := testworld.Got(h.WaitLockAs(t.Context(), name, role, nil))(t)
		who, held := h.LockHolder(name)
		if !held || who.Passing() != (role == home.Passing) {
			t.Errorf("role %q: held %v by %+v", role, held, who)
		}
		testworld.Must(t, l.Unlock())
		if last, err := h.LastHolder(name); err != nil || last.PID != os.Getpid() || last.Role != role || !last.Released {
			t.Errorf("role %q: the last holder is %+v, %v", role, last, err)
		}
	}
	for line, want := range map[string]bool{
		`{"pid":7,"pid_start":7,"program":"netsky channel"}`:                  true,
		`{"pid":7,"pid_start":7,"program":"other channel"}`:                   true,
		`{"pid":7,"pid_start":7,"program":"netsky io"}`:                       false,
		`{"pid":7,"pid_start":7,"program":"netsky mail","role":"passing"}`:    true,
		`{"pid":7,"pid_start":7,"program":"netsky channel","role":"unheard"}`: false,
		`{"pid":7,"pid_start":7,"program":"channel"}`:                         false,
	} {
		testworld.Must(t, h.WriteFile(home.LockDir+"/"+name, []byte(line+"\n"), false))
		testworld.Equal(t, testworld.Got(h.LastHolder(name))(t).Passing(), want, "%s: passing", line)
	}
}
