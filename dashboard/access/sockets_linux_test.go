package access_test

import (
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"netsky/internal/testworld"
)

// The kernel knows whose connection it is: by IPv4, by IPv4 in an IPv6 socket,
// and another user's, as far as the test may be another user.
func TestPeerByKernel(t *testing.T) {
	o := options(t) // the kernel is asked
	_, at := serve(t, o, "127.0.0.1:0")
	request := "GET /api/agents HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nAuthorization: Bearer " + o.Token + "\r\n\r\n"
	say := func(c net.Conn) string {
		t.Helper()
		defer c.Close()
		testworld.Got(io.WriteString(c, request))(t)
		data := testworld.Got(io.ReadAll(c))(t)
		return string(data)
	}
	c, err := net.Dial("tcp", at)
	testworld.Must(t, err)
	if got := say(c); !strings.HasPrefix(got, "HTTP/1.1 200") {
		t.Errorf("from IPv4: %s", got)
	}
	fd, err := syscall.Socket(syscall.AF_INET6, syscall.SOCK_STREAM, 0)
	testworld.Must(t, err)
	to := &syscall.SockaddrInet6{Port: c.RemoteAddr().(*net.TCPAddr).Port}
	copy(to.Addr[:], net.IPv4(127, 0, 0, 1).To16())
	testworld.Must(t, syscall.Connect(fd, to))
	f := os.NewFile(uintptr(fd), "tcp6")
	c, err = net.FileConn(f)
	f.Close()
	testworld.Must(t, err)
	if got := say(c); !strings.HasPrefix(got, "HTTP/1.1 200") {
		t.Errorf("from IPv4 in IPv6: %s", got)
	}
	if os.Getuid() != 0 {
		return // only root can be another
	}
	dialled := make(chan net.Conn)
	go func() {
		defer close(dialled)
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		syscall.RawSyscall(syscall.SYS_SETFSUID, 65534, 0, 0)
		if c, err := net.Dial("tcp4", at); err == nil {
			dialled <- c
		}
	}()
	c, ok := <-dialled
	if !ok {
		t.Fatal("no connection")
	}
	if got := say(c); !strings.HasPrefix(got, "HTTP/1.1 403") || !strings.Contains(got, "65534") {
		t.Errorf("another user's: %s", got)
	}
}
