package service

import (
	"os"
	"path/filepath"
	"strings"

	"netsky/home"
	"netsky/internal/execx"
)

// packageUnits is where packages of the system put units for its users.
const packageUnits = "/usr/lib/systemd/user/"

// systemd returns the user units: one that runs at the start of the user's manager, and
// a timer. KillMode=process keeps what they start alive: agents and daemon are no part of
// the service.
func (o Options) systemd() plan {
	config := execx.Value(o.Environ, "XDG_CONFIG_HOME")
	if !filepath.IsAbs(config) {
		config = filepath.Join(o.UserHome, ".config")
	}
	dir := filepath.Join(config, "systemd", "user")
	name, how := o.name(), "`netsky service uninstall` removes it."
	if o.packaged {
		name, how = "netsky", "Of netsky's package: `systemctl --user enable --now netsky-tick.timer netsky.service`. `netsky service install` writes one of your own over it."
	}
	var env strings.Builder
	for _, e := range o.environ() {
		env.WriteString("Environment=" + unitWord(e, false) + "\n")
	}
	run := func(args string) string {
		return "Type=oneshot\nKillMode=process\n" + env.String() + "ExecStart=" + o.start() + " " + args + "\n"
	}
	top := "# " + o.mark() + "\n# " + how + "\n\n[Unit]\n"
	about := strings.ReplaceAll(o.Home.Root(), "%", "%%")
	service := top + "Description=netsky: bring up the agents of " + about + " that are wanted up\n\n" +
		"[Service]\n" + run("service run") + "RemainAfterExit=yes\nTimeoutStartSec=15min\n\n" +
		"[Install]\nWantedBy=default.target\n"
	tick := top + "Description=netsky: start the daemon of " + about + " if it is wanted and gone\n\n" +
		"[Service]\n" + run("watchdog tick") + "TimeoutStartSec=90s\n"
	timer := top + "Description=netsky: look after the daemon of " + about + "\n\n" +
		"[Timer]\nOnStartupSec=2min\nOnUnitInactiveSec=1min\nAccuracySec=10s\n\n" +
		"[Install]\nWantedBy=timers.target\n"
	ctl := func(args ...string) []string { return append([]string{"systemctl", "--user"}, args...) }
	note := "it begins when you log in, and what it starts ends when you log out; `loginctl enable-linger` has it begin with the machine, and stay"
	if lingers() {
		note = "it begins with the machine, as lingering is enabled for you"
	}
	return plan{
		files: []File{
			{filepath.Join(dir, name+".service"), service},
			{filepath.Join(dir, name+"-tick.service"), tick},
			{filepath.Join(dir, name+"-tick.timer"), timer},
		},
		links: []string{
			filepath.Join(dir, "default.target.wants", name+".service"),
			filepath.Join(dir, "timers.target.wants", name+"-tick.timer"),
		},
		on: [][]string{
			ctl("daemon-reload"),
			ctl("enable", name+".service"),
			ctl("enable", "--now", name+"-tick.timer"),
		},
		off: [][]string{
			ctl("disable", "--now", name+"-tick.timer"),
			ctl("disable", name+".service"),
		},
		after: [][]string{ctl("daemon-reload")},
		states: map[string][]string{
			"enabled": ctl("is-enabled", name+".service"),
			"active":  ctl("is-active", name+"-tick.timer"),
		},
		note: note,
	}
}

// Packaged returns the units for the package of a system, by their names: those of ~/.netsky,
// whoever's that is.
func Packaged(binary string) (map[string]string, error) {
	h, err := home.At("/%h/.netsky")
	if err != nil {
		return nil, err
	}
	path := "PATH=/%h/.local/bin:/usr/local/bin:/usr/bin:/bin"
	p := Options{Home: h, System: "linux", UserHome: "/%h", Binary: binary, Environ: []string{path}, packaged: true}.systemd()
	units := make(map[string]string)
	for _, f := range p.files {
		// systemd puts the user's directory for %h, which begins with a slash.
		units[filepath.Base(f.Path)] = strings.NewReplacer("/%%h/", "%h/", "/%h/", "%h/").Replace(f.Text)
	}
	return units, nil
}

// start begins a command line of a unit. systemd refuses some characters in the path of the
// program that it runs itself, however they are quoted, and takes them in its arguments.
func (o Options) start() string {
	if strings.ContainsAny(o.Binary, `'"\$`) {
		return "/bin/sh -c " + unitWord(`exec "$0" "$@"`, true) + " " + unitWord(o.Binary, true)
	}
	return unitWord(o.Binary, true)
}

// lingers reports whether the user's manager runs without a login.
func lingers() bool {
	u, err := execx.LookupUser(os.Getuid())
	if err != nil {
		return false
	}
	_, err = os.Stat("/var/lib/systemd/linger/" + u.Username)
	return err == nil
}

// unitWord quotes one word for a unit file. A dollar stands for a variable in commands
// only.
func unitWord(s string, command bool) string {
	s = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "%", "%%", "\t", `\t`).Replace(s)
	if command {
		s = strings.ReplaceAll(s, "$", "$$")
	}
	return `"` + s + `"`
}
