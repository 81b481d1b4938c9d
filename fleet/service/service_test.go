package service_test

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"netsky/fleet/service"
	"netsky/home"
	"netsky/internal/testworld"
)

// options are those of a home in a directory with that name, and of a manager that
// answers with a script and notes in calls what it is told.
func options(t *testing.T, system, name, script string) (o service.Options, calls string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "s") // the path of a home is bounded
	testworld.Must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	h, err := home.At(filepath.Join(dir, name))
	testworld.Must(t, err)
	calls = filepath.Join(dir, "calls")
	bin := filepath.Join(dir, "bin")
	testworld.Must(t, os.Mkdir(bin, 0o700))
	for _, ctl := range []string{"systemctl", "launchctl"} {
		testworld.Program(t, filepath.Join(bin, ctl), "#!/bin/sh\necho \""+ctl+" $*\" >>'"+calls+"'\n"+script+"\n")
	}
	return service.Options{
		Home: h, System: system, UserHome: filepath.Join(dir, "u"), Binary: filepath.Join(dir, name, "net$sky"), User: 501,
		Environ: []string{"PATH=" + bin + ":relative:/usr/bin:/bin", "ANTHROPIC_API_KEY=secret", "HOME=/x"},
	}, calls
}

func called(t *testing.T, calls string) string {
	t.Helper()
	data, err := os.ReadFile(calls)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return string(data)
}

const odd = `a "b" %h $X \n é 'c'`

// The words of a unit, as systemd reads them, are those that were meant.
func TestUnits(t *testing.T) {
	t.Parallel()
	o, _ := options(t, "linux", odd, "exit 0")
	r, err := service.Plan(o)
	if err != nil || len(r.Files) != 3 {
		t.Fatalf("%+v, %v", r, err)
	}
	for i, args := range [][]string{{"service", "run"}, {"watchdog", "tick"}} {
		unit := parseUnit(t, r.Files[i].Text)
		testworld.EqualList(t, unwords(t, unit["Service.ExecStart"][0], true), append([]string{"/bin/sh", "-c", `exec "$0" "$@"`, o.Binary}, args...), "ExecStart")
		var env []string
		for _, e := range unit["Service.Environment"] {
			env = append(env, unwords(t, e, false)...)
		}
		path := filepath.Dir(o.Home.Root()) + "/bin:/usr/bin:/bin"
		testworld.EqualList(t, env, []string{"NETSKY_HOME=" + o.Home.Root(), "PATH=" + path}, "Environment")
		if unit["Service.KillMode"][0] != "process" || unit["Service.Type"][0] != "oneshot" {
			t.Errorf("%v: would end what it has started", unit)
		}
	}
	if u := parseUnit(t, r.Files[0].Text); u["Install.WantedBy"][0] != "default.target" || u["Service.RemainAfterExit"][0] != "yes" {
		t.Errorf("%v", u)
	}
	if u := parseUnit(t, r.Files[2].Text); u["Install.WantedBy"][0] != "timers.target" || u["Timer.OnUnitInactiveSec"][0] != "1min" {
		t.Errorf("%v", u)
	}
	for _, f := range r.Files {
		testworld.Lacks(t, f.Text, "secret", "%s holds a secret", f.Path)
	}
}

// systemd's own check, where there is one.
func TestUnitsVerify(t *testing.T) {
	t.Parallel()
	verify, err := exec.LookPath("systemd-analyze")
	if err != nil {
		return // TestUnits reads them everywhere
	}
	for _, name := range []string{"with space", odd} {
		verified(t, verify, name)
	}
}

// verified has systemd check the units of a netsky in a directory of that name.
func verified(t *testing.T, verify, name string) {
	o, _ := options(t, "linux", name, "exit 0")
	o.Binary = filepath.Join(o.UserHome, name, "netsky")
	testworld.Must(t, os.MkdirAll(filepath.Dir(o.Binary), 0o700))
	testworld.Program(t, o.Binary, "#!/bin/sh\n")
	r := testworld.Got(service.Install(t.Context(), o))(t)
	args := []string{"verify", "--user"}
	for _, f := range r.Files {
		args = append(args, f.Path)
	}
	cmd := exec.Command(verify, args...)
	run := t.TempDir()
	cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+run, "HOME="+o.UserHome)
	if out, err := cmd.CombinedOutput(); err != nil || strings.Contains(string(out), filepath.Base(r.Files[0].Path)) {
		t.Errorf("systemd-analyze: %v\n%s", err, out)
	}
}

// parseUnit reads a unit file into "Section.Key" and its values.
func parseUnit(t *testing.T, text string) map[string][]string {
	t.Helper()
	unit, section := make(map[string][]string), ""
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		switch key, value, ok := strings.Cut(line, "="); {
		case line == "" || line[0] == '#':
		case line[0] == '[':
			section = strings.Trim(line, "[]")
		case !ok:
			t.Errorf("no assignment: %q", line)
		default:
			unit[section+"."+key] = append(unit[section+"."+key], value)
		}
	}
	return unit
}

// unwords splits a value as systemd does: quotes, escapes, specifiers, and in commands
// variables.
func unwords(t *testing.T, s string, command bool) (list []string) {
	t.Helper()
	for s = strings.TrimSpace(s); s != ""; s = strings.TrimSpace(s) {
		var b strings.Builder
		quoted := s[0] == '"'
		if quoted {
			s = s[1:]
		}
		for {
			if s == "" || !quoted && s[0] == ' ' {
				break
			}
			c := s[0]
			s = s[1:]
			if quoted && c == '"' {
				break
			}
			if c == '\\' || c == '%' || command && c == '$' {
				if s == "" || s[0] != c && c != '\\' {
					t.Errorf("%c is not escaped before %q", c, s)
					return list
				}
				c, s = s[0], s[1:]
			}
			b.WriteByte(c)
		}
		list = append(list, b.String())
	}
	return list
}

// A plist, read as XML, has the same words.
func TestPlists(t *testing.T) {
	t.Parallel()
	o, _ := options(t, "darwin", "a--b & <c> ---", "exit 0")
	r, err := service.Plan(o)
	if err != nil || len(r.Files) != 2 {
		t.Fatalf("%+v, %v", r, err)
	}
	for i, want := range [][]string{{"service", "run", "RunAtLoad"}, {"watchdog", "tick", "StartInterval"}} {
		var words []string
		for dec := xml.NewDecoder(strings.NewReader(r.Files[i].Text)); ; {
			token, err := dec.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%v in\n%s", err, r.Files[i].Text)
			}
			if text, ok := token.(xml.CharData); ok && strings.TrimSpace(string(text)) != "" {
				words = append(words, string(text))
			}
		}
		for _, w := range append(want, o.Binary, o.Home.Root(), "AbandonProcessGroup", "Aqua") {
			if !slices.Contains(words, w) {
				t.Errorf("%q is not among %q", w, words)
			}
		}
	}
}

func TestInstallAndUninstall(t *testing.T) {
	t.Parallel()
	for _, system := range []string{"linux", "darwin"} {
		o, calls := options(t, system, "h--x", "exit 0")
		if s := service.Inspect(t.Context(), o); s.Installed || s.Enabled != "no" || called(t, calls) != "" {
			t.Errorf("before: %+v", s)
		}
		if r, err := service.Uninstall(t.Context(), o); err != nil || len(r.Removed) > 0 || called(t, calls) != "" {
			t.Errorf("uninstall of nothing: %+v, %v", r, err)
		}
		r, err := service.Install(t.Context(), o)
		if err != nil || len(r.Written) != len(r.Files) {
			t.Fatalf("%+v, %v", r, err)
		}
		if s := service.Inspect(t.Context(), o); !s.Installed || s.Outdated || s.Enabled != "yes" || s.Active != "yes" {
			t.Errorf("%+v", s)
		}
		// Again: nothing is written. With another program: outdated, and renewed.
		if r, err = service.Install(t.Context(), o); err != nil || len(r.Written) > 0 {
			t.Errorf("again: %+v, %v", r, err)
		}
		o.Binary = "/elsewhere/netsky"
		if s := service.Inspect(t.Context(), o); !s.Outdated {
			t.Errorf("%+v", s)
		}
		if r, err = service.Install(t.Context(), o); err != nil || len(r.Written) == 0 {
			t.Errorf("renewed: %+v, %v", r, err)
		}
		if r, err = service.Uninstall(t.Context(), o); err != nil || len(r.Removed) != len(r.Commands[:len(r.Removed)]) || len(r.Removed) == 0 {
			t.Errorf("%+v, %v", r, err)
		}
		for _, f := range service.Inspect(t.Context(), o).Files {
			testworld.Fails(t, testworld.Err(os.Lstat(f.Path)), "", "%s is left", f.Path)
		}
	}
}

// The units of a package are those that a home's owner would get, and `systemctl --user enable`
// of them counts as installed.
func TestPackaged(t *testing.T) {
	t.Parallel()
	o, calls := options(t, "linux", ".netsky", "exit 0")
	dir := t.TempDir()
	o.UserHome, o.Binary = filepath.Dir(o.Home.Root()), testworld.Program(t, filepath.Join(dir, "netsky"), "#!/bin/sh\n")
	o.Environ = []string{o.Environ[0], "XDG_CONFIG_HOME=" + filepath.Join(o.UserHome, "c")}
	units := testworld.Got(service.Packaged(o.Binary))(t)
	for _, f := range testworld.Got(service.Plan(o))(t).Files {
		_, suffix, _ := strings.Cut(filepath.Base(f.Path), o.Home.TmuxSocket())
		text := units["netsky"+suffix]
		write(t, filepath.Join(dir, "netsky"+suffix), text)
		_, have, _ := strings.Cut(text, "\n\n")
		_, want, _ := strings.Cut(f.Text, "\n\n")
		want = strings.ReplaceAll(want, o.UserHome+"/bin:/usr/bin", "%h/.local/bin:/usr/local/bin:/usr/bin")
		testworld.Equal(t, have, strings.ReplaceAll(want, o.UserHome, "%h"), suffix)
	}
	link := filepath.Join(o.UserHome, "c/systemd/user/default.target.wants", o.Home.TmuxSocket()+".service")
	testworld.Must(t, os.MkdirAll(filepath.Dir(link), 0o700))
	testworld.Must(t, os.Symlink("/usr/lib/systemd/user/netsky.service", link))
	if s := service.Inspect(t.Context(), o); !s.Installed || s.Outdated || s.Enabled != "yes" {
		t.Errorf("%+v", s)
	}
	r := testworld.Got(service.Uninstall(t.Context(), o))(t)
	testworld.EqualList(t, r.Removed, []string{link}, "removed")
	testworld.Contains(t, called(t, calls), "systemctl --user disable ", "systemctl")
	if s := service.Inspect(t.Context(), o); s.Installed {
		t.Errorf("%+v", s)
	}
	if verify, err := exec.LookPath("systemd-analyze"); err == nil {
		cmd := exec.Command(verify, "verify", "--user", filepath.Join(dir, "netsky.service"), filepath.Join(dir, "netsky-tick.timer"))
		cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+dir, "HOME="+o.UserHome)
		if out, err := cmd.CombinedOutput(); err != nil || strings.Contains(string(out), "netsky") {
			t.Errorf("systemd-analyze: %s", out)
		}
	}
}

// What netsky did not write for this home stays, whatever its name.
func TestForeignFiles(t *testing.T) {
	t.Parallel()
	for name, harm := range map[string]func(t *testing.T, o service.Options, path, text string){
		"another file": func(t *testing.T, _ service.Options, path, _ string) { write(t, path, "[Unit]\n") },
		"a changed mark": func(t *testing.T, _ service.Options, path, text string) {
			write(t, path, strings.Replace(text, "# netsky service for", "# mine, once netsky service for", 1))
		},
		"another home's": func(t *testing.T, o service.Options, path, text string) {
			write(t, path, strings.ReplaceAll(text, o.Home.Root(), "/other"))
		},
		"a link": func(t *testing.T, _ service.Options, path, text string) {
			write(t, path+".real", text)
			testworld.Must(t, os.Symlink(path+".real", path))
		},
	} {
		o, calls := options(t, "linux", "h", "exit 0")
		p := testworld.Got(service.Plan(o))(t)
		file := p.Files[0]
		testworld.Must(t, os.MkdirAll(filepath.Dir(file.Path), 0o755))
		harm(t, o, file.Path, file.Text)
		before := testworld.Got(os.ReadFile(file.Path))(t)
		if r, err := service.Install(t.Context(), o); !errors.Is(err, service.ErrForeign) || len(r.Written) > 0 || called(t, calls) != "" {
			t.Errorf("%s: install %+v, %v", name, r, err)
		}
		testworld.ErrorIs(t, testworld.Err(service.Uninstall(t.Context(), o)), service.ErrForeign, "%s: uninstall", name)
		testworld.Equal(t, string(testworld.Got(os.ReadFile(file.Path))(t)), string(before), "%s", name)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	testworld.Must(t, os.WriteFile(path, []byte(text), 0o644))
}

// A manager that is missing or fails leaves the files, and is said.
func TestNoManager(t *testing.T) {
	t.Parallel()
	o, _ := options(t, "linux", "h", "exit 1")
	absent := o
	absent.Environ = []string{"PATH=" + t.TempDir()}
	for _, o := range []service.Options{o, absent} {
		r, err := service.Install(t.Context(), o)
		if !errors.Is(err, service.ErrManager) || !slices.Equal(r.Failed, r.Commands) || len(r.Failed) != 3 {
			t.Errorf("%+v, %v", r, err)
		}
		if s := service.Inspect(t.Context(), o); !s.Installed || s.Active != "unknown" || s.Why == "" {
			t.Errorf("%+v", s)
		}
		if r, err := service.Uninstall(t.Context(), o); !errors.Is(err, service.ErrManager) || len(r.Removed) != 3 {
			t.Errorf("%+v, %v", r, err)
		}
	}
	o.System = "plan9"
	testworld.Fails(t, testworld.Err(service.Install(t.Context(), o)), "", "plan9 has a service")
}
