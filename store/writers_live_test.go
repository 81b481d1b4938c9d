//go:build live

package store_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"testing"

	"netsky/home"
	"netsky/internal/testworld"
)

func mustChild(tb testing.TB, home home.Dir, what string) *exec.Cmd {
	tb.Helper()
	self := testworld.Got(os.Executable())(tb)
	cmd := exec.CommandContext(tb.Context(), self)
	cmd.Env = append(os.Environ(), "STORE_TEST_CHILD="+what, "STORE_TEST_HOME="+home.Root())
	cmd.Stderr = os.Stderr
	return cmd
}

// Several processes make the database at the same moment and write to it.
func TestManyProcesses(t *testing.T) {
	t.Parallel()
	home := testworld.Home(t)
	const each = 100
	var all sync.WaitGroup
	for _, name := range []string{"a", "b", "c", "d"} {
		cmd := mustChild(t, home, fmt.Sprint(name, ":", each))
		all.Go(func() {
			if err := cmd.Run(); err != nil {
				t.Errorf("process %s: %v", name, err)
			}
		})
	}
	all.Wait()
	db := mustOpen(t, home)
	testworld.Equal(t, len(mustTexts(t, db)), 4*each, "logs")
	testworld.Must(t, db.Check(t.Context()))
}

// A process is killed while it writes, also while it makes the database: what
// Apply has returned for is there, and the file is sound.
func TestKilled(t *testing.T) {
	t.Parallel()
	home := testworld.Home(t)
	acked := map[string]bool{}
	for round := range 8 {
		cmd := mustChild(t, home, fmt.Sprintf("r%d:1000000", round))
		out := testworld.Got(cmd.StdoutPipe())(t)
		testworld.Must(t, cmd.Start())
		lines := bufio.NewScanner(out)
		for n := 0; n < round*7 && lines.Scan(); n++ {
			acked[lines.Text()] = true
		}
		testworld.Must(t, cmd.Process.Kill())
		for lines.Scan() { // what it had printed before it died
			acked[lines.Text()] = true
		}
		cmd.Wait()
	}
	db := mustOpen(t, home)
	texts := mustTexts(t, db)
	for text := range acked {
		if !texts[text] {
			t.Errorf("%s was acknowledged and is not there", text)
		}
	}
	if len(acked) == 0 {
		t.Error("nothing was acknowledged")
	}
	testworld.Must(t, db.Check(t.Context()))
}
