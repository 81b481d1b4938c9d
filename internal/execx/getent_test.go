package execx_test

import (
	"net"
	"path/filepath"
	"testing"

	"netsky/internal/execx"
	"netsky/internal/testworld"
)

// A user and a host that only getent knows are found; what it does not know is an error.
func TestGetent(t *testing.T) {
	l := testworld.Got(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	bin := t.TempDir()
	testworld.Program(t, filepath.Join(bin, "getent"), `#!/bin/sh
case $* in
"passwd -- 1999999999") echo 'ann:*:1999999999:100:Ann:/home/far/ann:/bin/sh' ;;
"ahosts -- mac.invalid") printf '%s\n' '127.0.0.1       STREAM mac.invalid' '127.0.0.1       DGRAM  ' ;;
*) exit 2 ;;
esac
`)
	t.Setenv("PATH", bin)

	u := testworld.Got(execx.LookupUser(1999999999))(t)
	if u.Username != "ann" || u.HomeDir != "/home/far/ann" || u.Gid != "100" {
		t.Errorf("LookupUser = %+v", u)
	}
	testworld.Equal(t, testworld.Got(execx.LookupUser(0))(t).Username, "root", "LookupUser(0)")
	if u, err := execx.LookupUser(1999999998); err == nil {
		t.Errorf("LookupUser = %+v, want an error", u)
	}

	dial := execx.DialContext(new(net.Dialer))
	for _, host := range []string{"127.0.0.1", "mac.invalid"} {
		conn, err := dial(t.Context(), "tcp", host+":"+port)
		if err != nil {
			t.Errorf("dial %s: %v", host, err)
			continue
		}
		conn.Close()
		tcp := testworld.Got(execx.ResolveTCPAddr("tcp", host+":"+port))(t)
		testworld.Equal(t, tcp.String(), l.Addr().String(), "ResolveTCPAddr")
	}
	if _, err := dial(t.Context(), "tcp", "other.invalid:1"); err == nil {
		t.Error("other.invalid was reached")
	}
	if _, err := execx.ResolveTCPAddr("tcp", "other.invalid:1"); err == nil {
		t.Error("other.invalid has an address")
	}
}
