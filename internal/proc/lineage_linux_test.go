package proc_test

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"netsky/internal/proc"
	"netsky/internal/testworld"
)

// What has left its session, its environment and its parent is among the
// survivors of the process that had started it, with what it starts itself.
func TestSurvivors(t *testing.T) {
	above := proc.OwnLineage()
	self := proc.Self()
	if len(above.Ancestors) == 0 || above.Space == "" {
		t.Fatalf("own lineage: %+v", above)
	}
	above.Ancestors = append([]proc.Process{self}, above.Ancestors...)
	cmd := exec.Command("/bin/sh", "-c", `(env -i /usr/bin/setsid /bin/sh -c 'sleep 7776 & echo $$; wait' &); read never`)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err := cmd.StdinPipe()
	testworld.Must(t, err)
	defer in.Close()
	out, err := cmd.StdoutPipe()
	testworld.Must(t, err)
	testworld.Must(t, cmd.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	testworld.Must(t, err)
	pid, _ := strconv.Atoi(strings.TrimSpace(line))
	left, err := proc.Find(pid)
	testworld.Must(t, err)
	t.Cleanup(func() { _ = syscall.Kill(-left.PID, syscall.SIGKILL) })
	first, err := proc.Find(cmd.Process.Pid)
	testworld.Must(t, err)
	testworld.Must(t, cmd.Process.Kill())
	_ = cmd.Wait()

	d := proc.Descent{First: first, Lineage: above}
	below := func() (n int) {
		lists := testworld.Got(proc.Survivors([]proc.Descent{d}))(t)
		at := slices.Index(lists[0], left)
		if at < 0 {
			t.Fatalf("%v, want %v among them", lists[0], left)
		}
		for _, p := range lists[0][at+1:] {
			if strings.Contains(p.Command(), "7776") {
				n++
			}
		}
		return n
	}
	testworld.Wait(t, "what it has started is among them", func() bool { return below() > 0 })
	if lists, err := proc.Survivors([]proc.Descent{d}, left); err != nil || slices.Contains(lists[0], left) {
		t.Errorf("with it known: %v, %v", lists, err)
	}
	testworld.Contains(t, left.Command(), "sleep 7776")
	if began, err := left.Began(); err != nil || time.Since(began) > time.Minute || time.Since(began) < -time.Second {
		t.Errorf("began %v, %v", began, err)
	}
	young, err := proc.Since(time.Now().Add(-time.Minute))
	if err != nil || !slices.Contains(young, left) {
		t.Errorf("since a minute: %v, %v; want it among them", young, err)
	}

	d.Space = "pid:[1]"
	testworld.ErrorIs(t, testworld.Err(proc.Survivors([]proc.Descent{d})), proc.ErrUntold, "in another namespace")
	d.Lineage = proc.Lineage{}
	testworld.ErrorIs(t, testworld.Err(proc.Survivors([]proc.Descent{d})), proc.ErrUntold, "without a lineage")
}

// Which processes could be of a dead one is a matter of their parent and birth.
func TestSurvivorsOf(t *testing.T) {
	p := func(pid int, start int64) proc.Process { return proc.Process{PID: pid, Start: start} }
	first := p(50, 1000)
	above := []proc.Process{p(40, 900), p(30, 800), p(1, 1)} // tmux, a session's manager, init
	table := func(more ...[3]int64) [][3]int64 {             // number, parent, birth
		return append([][3]int64{{1, 0, 1}, {2, 0, 1}, {30, 1, 800}, {40, 1, 900}, {45, 40, 950}, {46, 45, 2000}}, more...)
	}
	for _, tt := range []struct {
		name  string
		table [][3]int64
		known []proc.Process
		want  []int
	}{
		{"nothing young", table(), nil, nil},
		{"an orphan at init", table([3]int64{60, 1, 1000}), nil, []int{60}},
		{"an orphan at a manager, and its child", table([3]int64{60, 30, 1001}, [3]int64{61, 60, 1002}), nil, []int{60, 61}},
		{"an orphan at tmux", table([3]int64{60, 40, 1001}), nil, []int{60}},
		{"older than the first", table([3]int64{60, 1, 999}), nil, nil},
		{"the child of a process that is none above", table([3]int64{60, 46, 3000}), nil, nil},
		{"a thread of the kernel's", table([3]int64{60, 2, 3000}), nil, nil},
		{"one from outside the namespace", table([3]int64{60, 0, 3000}), nil, nil},
		{"the daemon, which is known", table([3]int64{60, 1, 3000}, [3]int64{61, 60, 3001}), []proc.Process{p(60, 3000)}, nil},
		{"another with the daemon's number", table([3]int64{60, 1, 3000}), []proc.Process{p(60, 2999)}, []int{60}},
		{"the manager's number is another's by now", [][3]int64{{1, 0, 1}, {30, 1, 5000}, {60, 30, 5001}}, nil, []int{30, 60}},
		{"tmux born within the same tick", [][3]int64{{1, 0, 1}, {40, 1, 1000}, {45, 40, 1000}}, []proc.Process{p(45, 1000)}, []int{40}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := proc.Descent{First: first, Lineage: proc.Lineage{Ancestors: above}}
			testworld.EqualList(t, proc.SurvivorsOf(tt.table, d, tt.known), tt.want)
		})
	}
	d := proc.Descent{First: first, Lineage: proc.Lineage{Ancestors: []proc.Process{p(40, 1000), p(1, 1)}}}
	testworld.EqualList(t, proc.SurvivorsOf([][3]int64{{1, 0, 1}, {40, 1, 1000}, {60, 40, 1001}}, d, nil), []int{60}, "60 alone")
}

// Processor time is that of the process and of its children which have ended.
// A process that has to share its processor counts for the time in which it waits for it, too.
func TestCPUWaits(t *testing.T) {
	var cpus unix.CPUSet
	testworld.Must(t, unix.SchedGetaffinity(0, &cpus))
	var one unix.CPUSet
	for n := 0; one.Count() == 0; n++ {
		if cpus.IsSet(n) {
			one.Set(n)
		}
	}
	var list []proc.Process
	for range 3 {
		cmd := exec.Command("/bin/sh", "-c", "read go; while :; do :; done")
		in, err := cmd.StdinPipe()
		if err == nil {
			err = cmd.Start()
		}
		testworld.Must(t, err)
		t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
		testworld.Must(t, unix.SchedSetaffinity(cmd.Process.Pid, &one))
		testworld.Got(io.WriteString(in, "go\n"))(t)
		p, err := proc.Find(cmd.Process.Pid)
		testworld.Must(t, err)
		list = append(list, p)
	}
	// All three together can use no more than the time that passes.
	began := time.Now()
	testworld.Wait(t, "more than one processor can give", func() bool {
		return proc.CPU(list) > time.Since(began)*2+100*time.Millisecond
	})
}

func TestCPU(t *testing.T) {
	cmd := exec.Command("/bin/sh", "-c", "sh -c 'i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done'; exec sleep 1000")
	testworld.Must(t, cmd.Start())
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	p := testworld.Got(proc.Find(cmd.Process.Pid))(t)
	testworld.Wait(t, "the child's time", func() bool { return proc.CPU([]proc.Process{p}) >= 50*time.Millisecond })
	testworld.Equal(t, proc.CPU([]proc.Process{{PID: 1 << 30}}), 0, "nobody used")
}

const fewFiles = "NETSKY_TEST_FEW_FILES"

// Who has no descriptor left for a look at the processes is told so: none of them
// counts as gone.
func TestNoDescriptorLeft(t *testing.T) {
	if os.Getenv(fewFiles) == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestNoDescriptorLeft$")
		cmd.Env = append(os.Environ(), fewFiles+"=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	above, self := proc.OwnLineage(), proc.Self()
	next := testworld.Got(unix.Open("/dev/null", unix.O_RDONLY|unix.O_CLOEXEC, 0))(t)
	unix.Close(next)
	for _, left := range []int{0, 1} { // not even for the list of them; for that alone
		limit := unix.Rlimit{Cur: uint64(next + left), Max: uint64(next + 100)}
		testworld.Must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &limit))
		list, err := proc.Descendants(self.PID, "A=1")
		testworld.Fails(t, err, "", "%d left: Descendants() = %v without an error", left, list)
		lists, err := proc.Survivors([]proc.Descent{{First: self, Lineage: above}})
		testworld.Fails(t, err, "", "%d left: Survivors() = %v without an error", left, lists)
	}
}
