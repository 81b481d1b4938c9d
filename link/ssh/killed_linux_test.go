package ssh_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"netsky/internal/testworld"
	"netsky/link/ssh"
)

const keeper = "SSH_TEST_KEEPER" // names the socket of a tunnel, and what it leads to

func TestMain(m *testing.M) {
	if here, there, ok := strings.Cut(os.Getenv(keeper), " "); ok {
		c := ssh.Client{Environ: os.Environ()}
		c.Forward(context.Background(), ssh.Tunnel{Host: ssh.Host{Dest: "build1"}, Here: here, There: there}, func(ssh.State) {})
		return
	}
	os.Exit(m.Run())
}

// A tunnel does not outlive whoever keeps it, by whatever it ends.
func TestForwardKilled(t *testing.T) {
	t.Parallel()
	s := testworld.StartSSHD(t)
	socket := filepath.Join(filepath.Dir(s.Bin), "socket")
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "PATH="+s.Bin+":"+os.Getenv("PATH"), keeper+"="+socket+" "+echo(t))
	testworld.Must(t, cmd.Start())
	t.Cleanup(func() { cmd.Process.Kill() })
	testworld.Wait(t, "the tunnel is up", func() bool { return carries(socket) })
	testworld.Len(t, mine(t, socket), 1, "tunnels")
	testworld.Must(t, cmd.Process.Signal(syscall.SIGKILL))
	cmd.Wait()
	testworld.Wait(t, "its ssh ends", func() bool { return s.Signal(0) == 0 })
}
