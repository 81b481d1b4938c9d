package check_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"netsky/home"
	"netsky/internal/testworld"
	"netsky/work/check"
)

func TestRun(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, text string
		within     time.Duration
		status     int
		reason     string
		log        string
	}{
		{name: "it passes", text: "echo out; echo err >&2", log: "out\nerr\n"},
		{name: "it fails", text: "echo no; exit 7", status: 7, log: "no\n"},
		{name: "it kills itself", text: "kill -9 $$", status: -1, reason: "ended by killed"},
		{name: "it hangs", text: "echo begun; sleep 600", within: 50 * time.Millisecond, status: -1, reason: "timed out after 50ms", log: "begun\n"},
		{name: "it refuses to end", text: "trap '' TERM; echo begun; while :; do sleep 600; done", within: 50 * time.Millisecond, status: -1, reason: "timed out after 50ms", log: "begun\n"},
		{name: "it leaves something behind", text: "sleep 600 & echo done", log: "done\n"},
		{name: "its environment", text: `echo "$NETSKY_START/$NETSKY_HOME/$AGENT_N/$GIT_DIR/$NETSKY_PORT/$MINE"; pwd`, log: "////20010/kept\nDIR\n"},
		{name: "it reads nothing", text: "cat", log: ""},
		{name: "it prints much", text: "yes | head -c 5000000; echo end", log: "… 2902852 bytes left out …"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h, dir := testworld.FastHome(t), t.TempDir()
			if tt.within == 0 {
				tt.within = time.Minute
			}
			var out strings.Builder
			r, err := check.Command{What: "check", Text: tt.text}.Run(t.Context(), check.Options{
				Home: h, Dir: dir, Log: "logs/check-1.log", Within: tt.within, Out: &out,
				Env:   append(os.Environ(), "NETSKY_START=s", "NETSKY_HOME=/h", "AGENT_N=1", "GIT_DIR=/x", "MINE=kept"),
				Extra: []string{"NETSKY_PORT=20010"},
			})
			if err != nil || r.Status != tt.status || r.Reason != tt.reason || r.OK() != (tt.status == 0) {
				t.Errorf("%+v, %v", r, err)
			}
			log := testworld.Got(h.ReadFile("logs/check-1.log", 4<<20))(t)
			want := strings.ReplaceAll(tt.log, "DIR", dir)
			if got := string(log); got != want && !(strings.Contains(want, "left out") && strings.Contains(got, want) && strings.HasSuffix(got, "\nend\n")) {
				t.Errorf("log %.200q, want %q", got, want)
			}
		})
	}
}

// Nothing of it is left when its time is over, nor when the caller gives up.
func TestRunLeavesNothing(t *testing.T) {
	t.Parallel()
	h, dir := testworld.FastHome(t), t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	file := filepath.Join(dir, "pid")
	done := make(chan check.Result, 1)
	go func() {
		r, _ := check.Command{What: "check", Text: "sleep 600 & echo $! > pid.new; mv pid.new pid; wait"}.Run(ctx, check.Options{
			Home: h, Dir: dir, Log: "logs/check-1.log", Within: time.Minute,
		})
		done <- r
	}()
	var pid int
	testworld.Wait(t, "its child", func() bool {
		data, err := os.ReadFile(file)
		pid, _ = strconv.Atoi(strings.TrimSpace(string(data)))
		return err == nil
	})
	cancel()
	if r := <-done; r.OK() || r.Reason != "cut off" {
		t.Errorf("%+v", r)
	}
	testworld.Wait(t, "its child's end", func() bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) })
}

// Consent is to the exact text, for the one purpose.
func TestAgreed(t *testing.T) {
	t.Parallel()
	h := testworld.FastHome(t)
	c := check.Command{What: "check", Text: "make test"}
	if ok, err := c.Agreed(h); ok || err != nil {
		t.Errorf("%v, %v", ok, err)
	}
	testworld.Must(t, c.Agree(h))
	for _, tt := range []struct {
		c    check.Command
		want bool
	}{{c, true}, {check.Command{What: "setup", Text: c.Text}, false}, {check.Command{What: "check", Text: c.Text + " "}, false}} {
		testworld.Equal(t, testworld.Got(tt.c.Agreed(h))(t), tt.want, "%+v", tt.c)
	}
	if c.Digest() == (check.Command{What: "check", Text: "make"}).Digest() {
		t.Error("one digest for two texts")
	}
}

// TestMain is, in a process of its own, a netsky that runs a command.
func TestMain(m *testing.M) {
	if dir := os.Getenv("COMMAND_TEST_DIR"); dir != "" {
		h, err := home.At(os.Getenv("COMMAND_TEST_HOME"))
		if err == nil {
			_, err = check.Command{What: "check", Text: "(sleep 600 & echo $! >child); echo $$ >self; exec sleep 600"}.Run(context.Background(),
				check.Options{Home: h, Dir: dir, Log: "logs/check-1.log", Within: time.Hour})
		}
		panic(err) // it is killed before
	}
	os.Exit(m.Run())
}

// What a command has started ends with it, also what has made a session of its own.
func TestDaemonEnds(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip("there is no setsid")
	}
	h, dir := testworld.FastHome(t), t.TempDir()
	testworld.Got(check.Command{What: "check", Text: "setsid sh -c 'echo $$ >pid; exec sleep 600' >/dev/null 2>&1 & while ! [ -s pid ]; do :; done"}.Run(t.Context(),
		check.Options{Home: h, Dir: dir, Log: "logs/check-1.log", Within: time.Minute, Daemons: true}))(t)
	pid, _ := os.ReadFile(filepath.Join(dir, "pid"))
	testworld.Wait(t, "the daemon to end", func() bool {
		out, err := exec.Command("ps", "-o", "stat=", "-p", strings.TrimSpace(string(pid))).Output()
		return err != nil || strings.HasPrefix(string(out), "Z")
	})
}
