package cli_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"netsky/internal/testworld"
)

// Another program on the dashboard's port gets no visitor: the dashboard is
// served nowhere else, status and dashboard name the program, and once it is gone
// the dashboard is there. A second home learns that the first has the port.
func TestDashboardPortTaken(t *testing.T) {
	t.Parallel()
	first := mustWorld(t)
	base, _, _ := strings.Cut(first.link(t), "/login")
	second := mustWorld(t)
	second.env = append(second.env, "NETSKY_LISTEN="+strings.TrimPrefix(base, "http://"))
	who := testworld.Got(first.holder())(t)
	want := fmt.Sprintf("is taken by the netsky of %s (pid %d)", first.home, who.PID)
	if runtime.GOOS != "linux" {
		want = "is taken by another program"
	}
	for range 2 { // the first starts the daemon
		out, err := second.command(t.Context(), "netsky", "dashboard").CombinedOutput()
		if exit := new(exec.ExitError); !errors.As(err, &exit) || exit.ExitCode() != 1 {
			t.Fatalf("%v: %s", err, out)
		}
		mustContain(t, "dashboard", string(out), want, `listen = "127.0.0.1:0"`, "netsky dashboard --free-port")
		testworld.Lacks(t, string(out), "http", "a link was printed: %s", out)
	}
	mustContain(t, "status", second.must(t, "netsky", "status"), "! the dashboard is not served: ", want, "--free-port")
	first.must(t, "netsky", "daemon", "stop")
	var out []byte
	testworld.WaitOr(t, func() bool {
		var err error
		out, err = second.command(t.Context(), "netsky", "dashboard").CombinedOutput()
		return err == nil
	}, func() string { return fmt.Sprintf("the port is free, and: %s", out) })
	mustContain(t, "dashboard", string(out), base+"/login")
	testworld.Lacks(t, second.must(t, "netsky", "status"), "dashboard", "status")
}

// A second home takes a free port by one command, and keeps it.
func TestDashboardFreePort(t *testing.T) {
	t.Parallel()
	first := mustWorld(t)
	base, _, _ := strings.Cut(first.link(t), "/login")
	second := mustWorld(t)
	second.env = append(second.env, "NETSKY_LISTEN=") // the file says it
	second.config(t, fmt.Sprintf("[owner]\nname = \"Ada\"\n\n[dashboard]\nlisten = %q\nanswer = false\n", strings.TrimPrefix(base, "http://")))
	if out, err := second.command(t.Context(), "netsky", "dashboard").CombinedOutput(); err == nil {
		t.Fatalf("the port is taken, and: %s", out)
	}
	out, err := second.command(t.Context(), "netsky", "dashboard", "--free-port").Output()
	testworld.Must(t, err)
	free, _, _ := strings.Cut(strings.TrimSpace(string(out)), "/login")
	if again, _, _ := strings.Cut(second.link(t), "/login"); free == base || again != free {
		t.Errorf("the first home has %s; the second %s, then %s", base, free, again)
	}
	file, err := os.ReadFile(filepath.Join(second.home, "netsky.toml"))
	if want := "[owner]\nname = \"Ada\"\n\n[dashboard]\nlisten = \"127.0.0.1:0\"\nanswer = false\n"; err != nil || string(file) != want {
		t.Errorf("netsky.toml, %v:\n%s", err, file)
	}
	if again, _, _ := strings.Cut(first.link(t), "/login"); again != base {
		t.Errorf("the first home moved to %s", again)
	}
	said, err := second.command(t.Context(), "netsky", "dashboard", "--free-port").CombinedOutput()
	mustContain(t, "with a daemon that runs", string(said), "the daemon was ended, as it reads that when it starts", "started the daemon, pid ")
	if err != nil || strings.Contains(string(said), "was not running") {
		t.Errorf("with a daemon that runs: %v\n%s", err, said)
	}
	second.env = append(second.env, "NETSKY_LISTEN=127.0.0.1:0")
	refused, err := second.command(t.Context(), "netsky", "dashboard", "--free-port").CombinedOutput()
	if err == nil || !strings.Contains(string(refused), "NETSKY_LISTEN") {
		t.Errorf("%v: %s", err, refused)
	}
}
