package fleet_test

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"netsky/home"
)

// A connection that a process has opened, as one below an agent, is not that of another which has got its number since.
func TestControlNumberUsedAgain(t *testing.T) {
	if path := os.Getenv(socketVariable); path != "" { // the first one, which opens the connection and ends
		if err := unix.Connect(3, &unix.SockaddrUnix{Name: path}); err != nil {
			t.Fatal(err)
		}
		return
	}
	next, err := os.OpenFile("/proc/sys/kernel/ns_last_pid", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer next.Close()
	c := newControl(t)
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	end := os.NewFile(uintptr(fd), "socket")
	defer end.Close()
	first := exec.Command(os.Args[0], "-test.run", "^TestControlNumberUsedAgain$")
	first.Env, first.ExtraFiles = append(os.Environ(), socketVariable+"="+c.home.Path(home.DaemonSocket)), []*os.File{end}
	if out, err := first.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	conn, err := net.FileConn(end)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for range 500 {
		if _, err := fmt.Fprint(next, first.Process.Pid-1); err != nil {
			t.Skip(err)
		}
		other := exec.Command("sleep", "60")
		if err := other.Start(); err != nil {
			t.Fatal(err)
		}
		if other.Process.Pid != first.Process.Pid {
			other.Process.Kill()
			other.Wait()
			continue
		}
		fmt.Fprint(conn, "POST /deeds/quiet HTTP/1.1\r\nHost: netsky\r\nContent-Length: 13\r\n\r\n{\"off\": true}")
		answer, err := io.ReadAll(conn)
		other.Process.Kill()
		other.Wait()
		if err != nil || !strings.Contains(string(answer), "it is unknown which process asks") {
			t.Errorf("the other one is answered %s, %v", answer, err)
		}
		return
	}
	t.Skip("no other process got the number")
}
