package proc_test

import (
	"os"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"

	"netsky/internal/proc"
	"netsky/internal/testworld"
)

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
