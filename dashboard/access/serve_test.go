package access_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"strings"
	"testing"

	"netsky/dashboard"
	"netsky/dashboard/access"
	"netsky/home"
	"netsky/internal/testworld"
)

// Row 36, the rest: without a token nothing starts, and without TLS or a word
// nothing is served beyond the loopback, not even on a listener that is there.
func TestRow36Refuses(t *testing.T) {
	for _, token := range []string{"", "short", strings.Repeat("t", 31)} {
		o := options(t)
		o.Token = token
		testworld.Fails(t, testworld.Err(dashboard.New(o)), "", "New with token %q: no error", token)
	}
	s := testworld.Got(dashboard.New(options(t)))(t)
	for _, addr := range []string{"0.0.0.0:0", ":0", "[::]:0"} {
		if l, err := s.Listen(t.Context(), addr); !errors.Is(err, access.ErrWide) {
			t.Errorf("Listen(%q) = %v, %v", addr, l, err)
		}
	}
	l := testworld.Got(net.Listen("tcp", "0.0.0.0:0"))(t)
	if err := s.Serve(t.Context(), l); !errors.Is(err, access.ErrWide) {
		t.Errorf("Serve on %v: %v", l.Addr(), err)
	}
	o := options(t)
	o.Wide = true
	s = testworld.Got(dashboard.New(o))(t)
	l = testworld.Got(s.Listen(t.Context(), "0.0.0.0:0"))(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	testworld.Must(t, s.Serve(ctx, l))
}

// A port that is taken is not exchanged for another, and whoever has it is named.
func TestListenTaken(t *testing.T) {
	s, err := dashboard.New(options(t))
	testworld.Must(t, err)
	a, err := s.Listen(t.Context(), "127.0.0.1:0")
	testworld.Must(t, err)
	defer a.Close()
	l, err := s.Listen(t.Context(), a.Addr().String())
	if !errors.Is(err, access.ErrTaken) {
		t.Fatalf("Listen = %v, %v, want ErrTaken", l, err)
	}
	want := "another program"
	if runtime.GOOS == "linux" {
		want = fmt.Sprintf("access.test (pid %d)", os.Getpid())
	}
	testworld.Contains(t, err.Error(), a.Addr().String()+" is taken by "+want, "Listen")
}

// Port 0 is the port that the home had last, as long as that is free.
func TestListenKeepsPort(t *testing.T) {
	o := options(t)
	listen := func() net.Listener {
		t.Helper()
		s := testworld.Got(dashboard.New(o))(t)
		l := testworld.Got(s.Listen(t.Context(), "127.0.0.1:0"))(t)
		return l
	}
	a := listen()
	b := listen() // while the first is there
	a.Close()
	b.Close()
	if a.Addr().String() == b.Addr().String() {
		t.Fatalf("two listen on %v", a.Addr())
	}
	c := listen()
	c.Close()
	if c.Addr().String() != b.Addr().String() {
		t.Errorf("the next is at %v, the last was at %v", c.Addr(), b.Addr())
	}
	testworld.Must(t, os.WriteFile(o.Home.Path("state/dashboard.json"), []byte(`{"port":99999`), 0o600))
	listen().Close()
}

func TestTokenFile(t *testing.T) {
	h := testworld.Home(t)
	first := testworld.Got(access.Token(h))(t)
	again := testworld.Got(access.Token(h))(t)
	if len(first) < 48 || first != again {
		t.Errorf("tokens %q and %q", first, again)
	}
	path := h.Path("run/token")
	info := testworld.Got(os.Stat(path))(t)
	if info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
	testworld.Must(t, os.Chmod(path, 0o644)) // others may have read it
	loose := testworld.Got(access.Token(h))(t)
	if info, _ := os.Stat(path); loose == first || info.Mode().Perm() != 0o600 {
		t.Errorf("a token that others could read stays")
	}
	testworld.Must(t, os.Remove(path))
	testworld.Must(t, os.Symlink("/dev/null", path))
	testworld.ErrorIs(t, testworld.Err(access.Token(h)), home.ErrLink, "through a link")
}
