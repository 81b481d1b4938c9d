package ssh_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"netsky/home"
	"netsky/internal/proc"
	"netsky/internal/testworld"
	"netsky/link/ssh"
)

// mustNetsky writes a program that takes netsky's place: it prints its words and its input.
func mustNetsky(t *testing.T, s *testworld.SSHD) ssh.Host {
	t.Helper()
	file := filepath.Join(filepath.Dir(s.Bin), "net sky")
	testworld.Program(t, file, "#!/bin/sh\nfor w; do echo \"[$w]\"; done\ncat\necho $X $AGENT_N >&2\nexit ${1#exit}\n")
	return ssh.Host{Name: "build1", Dest: "build1", Netsky: file}
}

// logins counts those that the server has seen.
func logins(t *testing.T, s *testworld.SSHD) int {
	t.Helper()
	return strings.Count(string(testworld.Got(os.ReadFile(s.Log))(t)), "Accepted publickey")
}

// Several verbs at once use one connection and leave no word about that; it is made anew once it
// is gone, and Close ends it. So it is in a home whose path is too long for a socket.
func TestKept(t *testing.T) {
	t.Parallel()
	for name, deep := range map[string]string{"short": "", "long": strings.Repeat("x", 40)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := testworld.StartSSHD(t)
			c := client(t, s)
			c.Alive = 0 // no connection is given up because the machine is busy
			if deep != "" {
				c.Home = testworld.Got(home.At(filepath.Join(filepath.Dir(c.Home.Root()), deep, deep[:20])))(t)
				testworld.Must(t, os.Mkdir(filepath.Dir(c.Home.Root()), 0o700))
				testworld.Err(c.Home.Make())
			}
			h := mustNetsky(t, s)
			runs := func(how string, want int) {
				t.Helper()
				var all sync.WaitGroup
				for range 5 {
					all.Go(func() {
						var out, errs bytes.Buffer
						if err := c.Run(t.Context(), h, strings.NewReader("in\n"), &out, &errs, "X=1 AGENT_N=0", "exit0", "it's $X"); err != nil || out.String() != "[exit0]\n[it's $X]\nin\n" || errs.String() != "1 0\n" {
							t.Errorf("%s: %v\n%s%s", how, err, out.String(), errs.String())
						}
					})
				}
				all.Wait()
				testworld.Equal(t, logins(t, s), want, how)
			}
			runs("the first", 1)
			runs("later", 1)
			s.Signal(syscall.SIGKILL)
			testworld.Wait(t, "it is made anew", func() bool {
				before := logins(t, s)
				_, err := c.Ask(t.Context(), h, testworld.Patience, nil, "exit 0")
				return err == nil && logins(t, s) == before
			})
			n := logins(t, s)
			runs("after its end", n)
			testworld.Must(t, c.Close(t.Context()))
			runs("after Close", n+1)
			testworld.Must(t, c.Close(t.Context()))
		})
	}
}

// Whatever the user's shell there is, words arrive as they were given.
func TestShells(t *testing.T) {
	t.Parallel()
	words := []string{`it's`, `\`, `\\`, `a\`, `'; echo bad; '`, `\'; echo bad #`, "$HOME `x` \"q\" ! ~ * ?", "two\nlines", "", "-x", "é"}
	dir := t.TempDir()
	netsky := testworld.Program(t, filepath.Join(dir, "net'sky"), "#!/bin/sh\nprintf '[%s]\\n' \"$@\"\n")
	for _, shell := range []string{"sh", "bash", "zsh", "fish"} {
		bin := filepath.Join(dir, shell)
		testworld.Must(t, os.Mkdir(bin, 0o700))
		testworld.Program(t, filepath.Join(bin, "ssh"), "#!/bin/sh\nfor last; do :; done\ncase \" $* \" in *' -N '*) exit 0 ;; esac\nexec "+shell+" -c \"$last\"\n")
		c := ssh.Client{Home: testworld.Home(t), Environ: append(os.Environ(), "HOME="+dir, "PATH="+bin+":"+os.Getenv("PATH"))}
		var out bytes.Buffer
		err := c.Run(t.Context(), ssh.Host{Dest: "x", Netsky: netsky}, nil, &out, &out, "", words...)
		testworld.Must(t, err, shell, out.String())
		testworld.Equal(t, out.String(), "["+strings.Join(words, "]\n[")+"]\n", shell)
	}
}

// The exit of a verb is told apart from what keeps it from running.
func TestRunErrors(t *testing.T) {
	t.Parallel()
	s := testworld.StartSSHD(t)
	c := client(t, s)
	h := mustNetsky(t, s)
	var out, errs bytes.Buffer
	err := c.Run(t.Context(), h, nil, &out, &errs, "", "exit3")
	testworld.Equal(t, err, error(ssh.Failed{Status: 3}))
	h.Netsky = "~/no such netsky"
	testworld.ErrorIs(t, c.Run(t.Context(), h, nil, &out, &errs, "", "x"), ssh.ErrNoNetsky)
	errs.Reset()
	testworld.ErrorIs(t, c.Run(t.Context(), ssh.Host{Dest: "ssh://127.0.0.1:1"}, nil, &out, &errs, "", "x"), ssh.ErrUnreachable)
	testworld.Contains(t, errs.String(), "Connection refused")
	_, err = c.Ask(t.Context(), h, time.Second, nil, "while kill -0 $PPID; do sleep 0.1; done")
	testworld.Fails(t, err, "no answer within 1s")
	for _, script := range []string{"yes", "yes >&2"} {
		_, err = c.Ask(t.Context(), h, testworld.Patience, nil, script)
		testworld.Fails(t, err, "it prints more than 4")
	}
	_, err = c.Ask(t.Context(), h, testworld.Patience, nil, `echo a; echo "$1" >&2; exit 4`, "why; 'it")
	if !errors.Is(err, ssh.Failed{Status: 4}) || !strings.HasSuffix(err.Error(), ": why; 'it") {
		t.Errorf("Ask: %v", err)
	}
}

// What ssh starts for a jump host asks no question where nobody is there to answer, whatever it
// hears of options: it has no terminal and no window, and ends when it is waited for no more.
func TestUnasked(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	testworld.Program(t, filepath.Join(dir, "ssh"), `#!/bin/sh
[ "$(ps -o sid= -p $$)" -eq $$ ] && echo "a session of its own, askpass $SSH_ASKPASS_REQUIRE" >`+dir+`/how
sleep 1000 &
echo $! >`+dir+`/jump
wait
`)
	c := ssh.Client{Home: testworld.Home(t), Environ: append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH")), Unasked: true}
	ctx, cancel := context.WithCancel(t.Context())
	asked := make(chan error, 1)
	go func() {
		_, err := c.Ask(ctx, ssh.Host{Dest: "inner"}, testworld.Patience, nil, "true")
		asked <- err
	}()
	var jump int
	testworld.Wait(t, "it asks at the jump host", func() bool {
		text, _ := os.ReadFile(dir + "/jump") // it is about to be there
		n, err := strconv.Atoi(strings.TrimSpace(string(text)))
		jump = n
		return err == nil
	})
	testworld.Equal(t, string(testworld.Got(os.ReadFile(dir+"/how"))(t)), "a session of its own, askpass never\n")
	cancel()
	testworld.ErrorIs(t, <-asked, context.Canceled)
	testworld.Wait(t, "the ssh of the jump host ends", func() bool { return testworld.Err(proc.Find(jump)) != nil })
}
