//go:build linux && live

package testhosts_test

import (
	"os"
	"testing"
	"time"

	"netsky/internal/testhosts"
	"netsky/internal/testworld"
)

func TestMain(m *testing.M) { os.Exit(testhosts.Main(m)) }

// ssh runs a command at another host.
func ssh(t *testing.T, from *testhosts.Host, to string, words ...string) string {
	t.Helper()
	out, err := from.Command(append([]string{"ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=60", to}, words...)...).CombinedOutput()
	testworld.Must(t, err, "%s", out)
	return string(out)
}

// What one host's user asks another host's agent by ssh is answered there, and nowhere else.
func TestHosts(t *testing.T) {
	w := testhosts.New(t, "laptop", "build1", "build2")
	w.Allow("laptop", "build1")
	laptop, build1 := w.Host("laptop"), w.Host("build1")
	testworld.Equal(t, ssh(t, laptop, "build1", "hostname; id -un; echo $SSH_CONNECTION | cut -d' ' -f1,3"), "build1\nme\n"+laptop.Address+" "+build1.Address+"\n")
	if out, err := laptop.Command("ssh", "-o", "BatchMode=yes", "build2", "true").CombinedOutput(); err == nil {
		t.Errorf("build2 let laptop in: %s", out)
	}
	ssh(t, laptop, "build1", "netsky", "up", "1", "--type", "demo", "--no-attach")
	testworld.Contains(t, ssh(t, laptop, "build1", "netsky", "ask", "agent1", "hello"), "agent1 (demo) received: hello")
	testworld.Lacks(t, laptop.Run(t, "status"), "agent1")

	// Nothing is heard from a host that is cut off; afterwards all is as before.
	w.Cut("build1", "laptop")
	if out, err := laptop.Command("ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=1", "build1", "true").CombinedOutput(); err == nil {
		t.Errorf("a host that is cut off answered: %s", out)
	}
	w.Heal()
	w.Slow("build1", 20*time.Millisecond, 10*time.Millisecond, 0.02)
	testworld.Contains(t, ssh(t, laptop, "build1", "netsky", "ask", "agent1", "again"), "agent1 (demo) received: again")
	w.Heal()

	// A daemon that is killed is started again by the host's own ticker or verbs, and a power
	// cut ends everything.
	testworld.Equal(t, build1.KillDaemon(), 1, "daemons of build1")
	testworld.Contains(t, build1.Run(t, "ask", "agent1", "still there?"), "agent1 (demo) received: still there?")
	build1.PowerOff()
	testworld.Len(t, build1.Processes(""), 0)
	build1.Boot(t)
	build1.Run(t, "up", "1", "--type", "demo", "--no-attach")
	testworld.Contains(t, ssh(t, laptop, "build1", "netsky", "ask", "agent1", "back?"), "agent1 (demo) received: back?")
}
