package cli_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"netsky/home"
	"netsky/internal/execx"
	"netsky/internal/testworld"
	"netsky/link"
	"netsky/link/ssh"
)

// mustHosts returns a world that reaches another one by ssh, as build1. path is the PATH there.
func mustHosts(t *testing.T, path string) (here, there *world) {
	t.Helper()
	here, there = mustWorld(t), mustWorld(t)
	s := testworld.StartSSHD(t, append(there.env, "PATH="+path)...)
	here.env = append(here.env, "PATH="+s.Bin+":"+os.Getenv("PATH"))
	return here, there
}

// says runs netsky in the world and returns its exit status and what it prints.
func (w *world) says(t *testing.T, in string, args ...string) (status int, out string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testworld.Patience)
	defer cancel()
	cmd := w.command(ctx, "netsky", args...)
	cmd.Stdin = strings.NewReader(in)
	text, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(text)
}

// A verb on another host prints and exits as there, with its words and its input as they were
// given, and agents have no other rights there than here.
func TestOn(t *testing.T) {
	t.Parallel()
	here, there := mustHosts(t, os.Getenv("PATH"))
	const title = "it's \"$HOME\" `x` \\ * ; & é"
	status, id := here.says(t, "what is to be done\n", "--on=build1", "task", "add", title, "--file", "-")
	testworld.Equal(t, status, 0, id)
	var k struct{ Title, Body string }
	testworld.Must(t, json.Unmarshal([]byte(there.must(t, "netsky", "task", "show", strings.TrimSpace(id), "--json")), &k))
	testworld.Equal(t, k.Title+"|"+k.Body, title+"|what is to be done\n")

	here.must(t, "netsky", "init")
	far := link.Tunnels{"far": {Name: "far", Dest: "build1"}} // as `netsky link invite` leaves it
	testworld.Must(t, far.Save(testworld.Got(home.At(here.home))(t)))
	for _, tt := range []struct {
		line   string
		status int
		want   string
	}{
		{"--on build1 --version", 0, "netsky 0.1.0-dev "},
		{"--on far --version", 0, "netsky 0.1.0-dev "},
		{"attach 7@far", 1, "netsky: agent7: "},
		{"attach 7@nohost", 1, "nohost: there is no connection to it, or it broke\n`ssh nohost true` must work before netsky does; [host.nohost] in netsky.toml"},
		{"--on build1 task show nosuch", 1, "netsky: task show: "},
		{"--on build1 nosuch", 2, `netsky: no verb "nosuch"`},
		{"--on", 2, "--on: needs a host"},
		{"--on -oProxyCommand=x status", 2, "--on: needs a host"},
		{"--on me@-x status", 2, "begins with a dash"},
		{"--on build1 --on build1 status", 2, "--on: is there twice"},
		{"--on build1 hosts", 2, "`hosts` is only for this machine"},
		{"--on ssh://127.0.0.1:1 status", 1, "ssh://127.0.0.1:1: there is no connection to it, or it broke\n`ssh ssh://127.0.0.1:1 true` must work"},
	} {
		status, out := here.says(t, "", strings.Fields(tt.line)...)
		if status != tt.status || !strings.Contains(out, tt.want) {
			t.Errorf("netsky %s: exit status %d, want %d\n%s\nwant %s", tt.line, status, tt.status, out, tt.want)
		}
	}
	env := here.env
	defer func() { here.env = env }()
	here.env = append(env, "AGENT_N=0")
	if status, out := here.says(t, "", "--on", "build1", "approve", "x"); status != 2 || !strings.Contains(out, "only the owner can do this") {
		t.Errorf("agent0 approves there: exit status %d\n%s", status, out)
	}
	here.env = append(env, "AGENT_N=1")
	if status, out := here.says(t, "", "--on", "build1", "status"); status != 2 || !strings.Contains(out, "on: not allowed for clones") {
		t.Errorf("a clone uses another host: exit status %d\n%s", status, out)
	}
}

// What the daemon there prints is what a netsky would that is started for it, at a terminal and without one,
// and neither that nor ssh is started. Whatever else it is asked for, it refuses.
func TestOnLook(t *testing.T) {
	t.Parallel()
	here, there := mustHosts(t, os.Getenv("PATH"))
	there.mustDaemon(t)
	testworld.Must(t, os.MkdirAll(filepath.Join(there.home, "channels/agent/agent1/inbox"), 0o700)) // so that there is a line with a colour
	age := regexp.MustCompile(`[0-9.]+(ms|s)|"[a-z_]*(now|ms|since)": [0-9]+`)
	run := func(args ...string) string {
		status, out := here.says(t, "", append([]string{"--on", "build1"}, args...)...)
		testworld.Equal(t, status, 0, out)
		return age.ReplaceAllString(out, "AGE")
	}
	var want []string
	lines := [][]string{{"status"}, {"status", "-v"}, {"ls", "--json"}}
	for _, line := range lines {
		want = append(want, run(append(line, "--watch=false")...)) // not one that is asked for
	}
	run("status") // leads the connection there
	env := here.env
	none := filepath.Join(here.dir, "none")
	testworld.Must(t, os.Mkdir(none, 0o700))
	testworld.Program(t, filepath.Join(none, "ssh"), "#!/bin/sh\nexit 255\n")
	here.env = append(env, "PATH="+none+":"+os.Getenv("PATH"))
	for i, line := range lines {
		testworld.Equal(t, run(line...), want[i], strings.Join(line, " "))
	}
	s := here.mustScreen(t, "look", "env PS1='$ ' sh")
	shown := 0
	screen := func(line string) string {
		shown++
		s.types(fmt.Sprintf("clear; netsky --on build1 %s; echo rc%d=$?", line, shown), "Enter")
		s.shows(fmt.Sprintf(`(?m)^rc%d=0`, shown))
		return age.ReplaceAllString(s.tmux("capture-pane", "-e", "-p", "-t", "=look:"), "AGE")
	}
	quick := screen("status")
	testworld.Equal(t, here.command(t.Context(), "netsky", "--on", "build1", "status", "--watch=false").Run() != nil, true, "ssh is not to be had")
	s.types("PATH="+execx.Value(env, "PATH"), "Enter")
	testworld.Equal(t, strings.Replace(screen("status --watch=false"), "rc2=", "rc1=", 1), quick, "at a terminal")

	door := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(context.Context, string, string) (net.Conn, error) {
		return net.Dial("unix", filepath.Join(there.home, home.LookSocket))
	}}}
	for _, l := range []ssh.Look{
		{Words: []string{"down", "--all"}}, {Words: []string{"status", "--watch"}}, {Words: nil},
		{Words: []string{"status"}, Netsky: "/bin/sh"}, {Words: []string{"status"}, Vars: map[string]string{"AGENT_N": "1"}},
		{Words: []string{"status"}, Vars: map[string]string{"TZ": "Asia/Tokyo"}}, {Words: []string{"status"}, Vars: map[string]string{"NETSKY_HOME": here.home}},
	} {
		vars := map[string]string{"HOME": execx.Value(there.env, "HOME"), "NETSKY_HOME": there.home, "NETSKY_TMUX_SOCKET": execx.Value(there.env, "NETSKY_TMUX_SOCKET"), "TZ": os.Getenv("TZ")}
		maps.Copy(vars, l.Vars)
		l.Vars, l.Netsky = vars, cmp.Or(l.Netsky, filepath.Join(binDir(), "netsky"))
		answer := testworld.Got(door.Post("http://netsky/", "", bytes.NewReader(testworld.Got(json.Marshal(l))(t))))(t)
		answer.Body.Close()
		testworld.Equal(t, answer.StatusCode, http.StatusConflict, fmt.Sprint(l))
	}
	here.env = env
	there.must(t, "netsky", "daemon", "stop")
	testworld.Contains(t, run("status"), "daemon stopped", "without a daemon the verb runs there")
}

// Ctrl-C ends a verb there, at a terminal and without one.
func TestOnInterrupt(t *testing.T) {
	t.Parallel()
	here, there := mustHosts(t, os.Getenv("PATH"))
	s := here.mustScreen(t, "o", "env PS1='$ ' sh")
	s.types("netsky --on build1 status --watch; echo rc=$?", "Enter")
	s.shows(`every second; Ctrl-C ends`)
	s.keys("C-c")
	s.shows(`rc=0`)

	there.must(t, "netsky", "task", "add", "x") // so that there are records to follow
	cmd := here.command(t.Context(), "netsky", "--on", "build1", "log", "--follow")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out := testworld.Got(cmd.StdoutPipe())(t)
	testworld.Must(t, cmd.Start())
	follows := func() bool {
		return slices.ContainsFunc(there.left(), func(r remnant) bool { return strings.Contains(r.what, "log --follow") })
	}
	testworld.Wait(t, "the verb runs there", follows)
	testworld.Must(t, syscall.Kill(-cmd.Process.Pid, syscall.SIGINT))
	io.Copy(io.Discard, out)
	cmd.Wait()
	testworld.Equal(t, cmd.ProcessState.ExitCode(), 130, "exit status")
	testworld.Wait(t, "it ends there", func() bool { return !follows() })
}

// Each host of netsky.toml has a line, also one that can't be reached, and one without netsky.
func TestHosts(t *testing.T) {
	t.Parallel()
	here, _ := mustHosts(t, os.Getenv("PATH"))
	_, out := here.says(t, "", "hosts")
	testworld.Contains(t, out, "[host.build1]")
	testworld.Must(t, os.WriteFile(filepath.Join(here.home, "netsky.toml"),
		[]byte("[host.build1]\n[host.gone]\nssh = \"ssh://127.0.0.1:1\"\n[host.bare]\nssh = \"build1\"\nnetsky = \"~/nothing\"\n"), 0o600))
	_, out = here.says(t, "", "hosts")
	for _, want := range []string{"build1  build1             netsky 0.1.0-dev  0 up  0 need you", "gone    ssh://127.0.0.1:1  there is no connection", "bare    build1             no netsky is there: correct `netsky` under [host.bare] in netsky.toml"} {
		testworld.Contains(t, out, want)
	}
	var list struct {
		Hosts []struct{ Name, Version, Error string }
	}
	_, out = here.says(t, "", "hosts", "--json")
	testworld.Must(t, json.Unmarshal([]byte(out), &list))
	testworld.Equal(t, fmt.Sprint(len(list.Hosts), list.Hosts[1]), "3 {build1 0.1.0-dev }")
	for line, want := range map[string]string{"--on b": "bare\t\nbuild1\t\n", "--on=bu": "--on=build1\t\n", "hosts install g": "gone\t\n", "--on build1 stat": "status\tprint the state"} {
		testworld.Contains(t, here.must(t, "netsky", append([]string{"__complete"}, strings.Fields(line)...)...), want, line)
	}
	if status, out := here.says(t, "", "--on", "bare", "status"); status != 1 || !strings.Contains(out, "correct `netsky` under [host.bare]") {
		t.Errorf("--on bare: exit status %d\n%s", status, out)
	}
	testworld.Must(t, os.WriteFile(filepath.Join(here.home, "netsky.toml"), []byte("[agents]\nclonse = 1\n[host.build1]\n"), 0o600))
	if status, out := here.says(t, "", "hosts"); status != 0 || !strings.Contains(out, `unknown key "agents.clonse"`) || !strings.Contains(out, "build1  netsky 0.1.0-dev") {
		t.Errorf("with a mistake about something else: exit status %d\n%s", status, out)
	}
	if status, out := here.says(t, "", "--on", "build2", "status"); status != 2 || !strings.Contains(out, `unknown key "agents.clonse"`) {
		t.Errorf("a host that may be misspelled: exit status %d\n%s", status, out)
	}
	testworld.Must(t, os.Remove(filepath.Join(here.home, "netsky.toml")))
	kept := func() bool {
		return slices.ContainsFunc(here.left(), func(r remnant) bool { return strings.Contains(r.what, "ControlMaster=yes") })
	}
	testworld.Equal(t, kept(), true, "the connection is kept")
	here.must(t, "netsky", "down", "--all")
	testworld.Wait(t, "down --all ends it", func() bool { return !kept() })
}

// netsky is brought to a host that has none, and only what fits there; an update is left to the
// one that is there.
func TestHostsInstall(t *testing.T) {
	t.Parallel()
	bins := t.TempDir() // before the others on PATH there
	here, there := mustHosts(t, bins+":/usr/bin:/bin")
	if status, out := here.says(t, "", "--on", "build1", "status"); status != 1 || !strings.Contains(out, "`netsky hosts install build1` brings this one there") {
		t.Errorf("without a netsky there: exit status %d\n%s", status, out)
	}
	if status, out := here.says(t, "", "hosts", "install", "build1"); status != 2 || !strings.Contains(out, "use --yes") {
		t.Errorf("nobody is asked: exit status %d\n%s", status, out)
	}
	bin := filepath.Join(there.dir, "u", ".local", "bin")
	if _, err := os.Stat(bin); err == nil {
		t.Errorf("%s is made before anybody has agreed", bin)
	}
	out := here.must(t, "netsky", "hosts", "install", "build1", "--yes")
	testworld.Contains(t, out, "build1: netsky 0.1.0-dev ")
	own := testworld.Got(os.ReadFile(filepath.Join(binDir(), "netsky")))(t)
	if string(testworld.Got(os.ReadFile(filepath.Join(bin, "netsky")))(t)) != string(own) {
		t.Error("another program is there")
	}
	testworld.Len(t, testworld.Got(os.ReadDir(bin))(t), 1, "files there")
	testworld.Contains(t, here.must(t, "netsky", "--on", "build1", "status"), "no agents yet")
	testworld.Contains(t, here.must(t, "netsky", "hosts", "install", "build1", "--yes"), "has this netsky already")

	for _, tt := range []struct{ is, uname, want string }{
		{`"version":"0.0.9","kind":"archive"`, "", "updated"},
		{`"version":"0.1.0-dev","kind":"archive"`, "", "updated --yes --again"},
		{`"version":"9.0.0","kind":"archive"`, "", "its netsky 9.0.0 is newer"},
		{`"version":"0.0.9","kind":"package","package":"netsky (dpkg)","update":"sudo apt x"`, "", "belongs to the package netsky (dpkg)\nthere: `sudo apt x`"},
		{`"version":"0.0.9","kind":"checkout"`, "", "`netsky --on build1 self update`"},
		{`"version":"0.0.9","kind":"archive"`, "echo Darwin arm64", "is darwin/arm64, and this netsky is for " + runtime.GOOS + "/" + runtime.GOARCH + "\nbring netsky_0.1.0-dev_darwin_arm64.tar.gz"},
		{`"version":"0.0.9","kind":"archive"`, `printf "\n\n"`, "its netsky does not say what it is"},
	} {
		other := filepath.Join(bin, "netsky")
		testworld.Must(t, os.Remove(other))
		testworld.Program(t, other, fmt.Sprintf("#!/bin/sh\ncase $2 in\nstatus) echo '{%s,\"binary\":\"%s\"}' ;;\nupdate) cd \"$(dirname \"$3\")\" && sha256sum -c SHA256SUMS && tar -tzf \"$3\" && echo updated $4 $5 ;;\nesac\n", tt.is, other))
		if tt.uname != "" {
			testworld.Program(t, filepath.Join(bins, "uname"), "#!/bin/sh\n"+tt.uname+"\n")
		}
		_, out := here.says(t, "", "hosts", "install", "build1", "--yes")
		testworld.Contains(t, out, tt.want, tt.is)
	}
	testworld.Len(t, testworld.Got(os.ReadDir(bin))(t), 1, "files there, after the updates")
}
