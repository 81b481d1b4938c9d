// Package service registers a home with the system's service manager, systemd or launchd,
// so that what the owner wants up is up again after a reboot, and that a third watcher,
// besides the daemon and the ticker, starts the daemon.
//
// It writes the user's own unit files, never the system's, with no secret in them, and
// removes or replaces only files whose first words say that netsky made them for this
// home. What is started is what the desired state says at that moment, nothing else. A
// crash leaves complete files; installing or uninstalling again finishes.
package service

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
	"unicode"

	"netsky/home"
	"netsky/internal/advice"
	"netsky/internal/execx"
)

// ErrForeign is returned for a file of that name that netsky did not make for this home.
var ErrForeign = advice.With(errors.New("is not netsky's"),
	"move it away, then try again; netsky replaces and removes only files that begin with its own mark")

// ErrManager is returned when the files are in place but the service manager could not be
// told.
var ErrManager = errors.New("the service manager could not be told")

// Options say what to register, and where.
type Options struct {
	Home     home.Dir
	System   string   // runtime.GOOS
	UserHome string   // the user's directory
	Binary   string   // a path that outlives an update
	Environ  []string // of the caller: PATH and NETSKY_TMUX_SOCKET are passed on, XDG_CONFIG_HOME is obeyed
	User     int      // the user's number

	packaged bool // the units are for a package: see Packaged
}

// For returns the options of this process for a home. own is its program's path; a link
// named netsky on the PATH that leads to it outlives a checkout that is moved or rebuilt.
func For(h home.Dir, own string, environ []string) Options {
	o := Options{Home: h, System: runtime.GOOS, UserHome: execx.Value(environ, "HOME"), Binary: own, Environ: environ, User: os.Getuid()}
	link := execx.Find(execx.Value(environ, "PATH"), "netsky")
	if to, err := filepath.EvalSymlinks(link); link != "" && err == nil {
		if real, err := filepath.EvalSymlinks(own); err == nil && to == real {
			o.Binary = link
		}
	}
	return o
}

// A File is one file for the service manager.
type File struct {
	Path string `json:"path"`
	Text string `json:"text"`
}

// A plan is what one system needs.
type plan struct {
	files  []File
	links  []string   // that the manager makes when the service is enabled
	before [][]string // commands that may fail, before those of on
	on     [][]string
	off    [][]string
	after  [][]string          // after the files are removed
	states map[string][]string // questions: enabled, active
	note   string
}

func (o Options) plan() (plan, error) {
	if !filepath.IsAbs(o.UserHome) || !filepath.IsAbs(o.Binary) {
		return plan{}, fmt.Errorf("HOME %q and netsky's path %q must be absolute", o.UserHome, o.Binary)
	}
	if strings.ContainsFunc(o.UserHome+o.Binary, unicode.IsControl) {
		return plan{}, fmt.Errorf("HOME %q and netsky's path %q must not contain control characters", o.UserHome, o.Binary)
	}
	switch o.System {
	case "linux":
		return o.systemd(), nil
	case "darwin":
		return o.launchd(), nil
	}
	return plan{}, fmt.Errorf("%s has no service manager that netsky knows", o.System)
}

// name is that of the service: netsky for ~/.netsky, and one with a hash for any other
// home, like its tmux server.
func (o Options) name() string { return o.Home.TmuxSocket() }

// mark is part of the first lines of each file.
func (o Options) mark() string { return "netsky service for " + o.Home.Root() }

// environ is what the service's processes are given: no more than they need to find their
// programs, and this home.
func (o Options) environ() (list []string) {
	list = append(list, "NETSKY_HOME="+o.Home.Root())
	var dirs []string
	for _, dir := range filepath.SplitList(execx.Value(o.Environ, "PATH")) {
		if filepath.IsAbs(dir) && !strings.ContainsAny(dir, "\n\r\x00") {
			dirs = append(dirs, dir)
		}
	}
	list = append(list, "PATH="+strings.Join(dirs, ":"))
	if socket := execx.Value(o.Environ, "NETSKY_TMUX_SOCKET"); socket != "" && !strings.ContainsAny(socket, "\n\r\x00") {
		list = append(list, "NETSKY_TMUX_SOCKET="+socket)
	}
	return list
}

// A Result is what Install, Uninstall or a dry run did or would do.
type Result struct {
	Files    []File   `json:"files"`
	Commands []string `json:"commands"`
	Failed   []string `json:"failed,omitempty"` // of Commands
	Written  []string `json:"written,omitempty"`
	Removed  []string `json:"removed,omitempty"`
	Note     string   `json:"note,omitempty"`
}

// Plan returns what Install would write and run.
func Plan(o Options) (Result, error) {
	p, err := o.plan()
	return p.result(), err
}

func (p plan) result() Result {
	return Result{Files: p.files, Commands: words(append(p.before, p.on...)), Note: p.note}
}

// Lines says what was done, or with dry would be.
func (r Result) Lines(dry bool) (list []string) {
	if dry {
		for _, f := range r.Files {
			list = append(list, f.Path+":\n"+f.Text)
		}
		for _, line := range r.Commands {
			list = append(list, "would run: "+line)
		}
	}
	for _, path := range r.Written {
		list = append(list, "wrote "+path)
	}
	for _, path := range r.Removed {
		list = append(list, "removed "+path)
	}
	switch installed := len(r.Files) > 0 && !dry; {
	case installed && len(r.Failed) == 0:
		list = append(list, "enabled: what is up when the machine stops is started again; `netsky service uninstall` removes this")
	case !installed && !dry && len(r.Removed) == 0:
		list = append(list, "not installed")
	}
	if r.Note != "" {
		list = append(list, r.Note)
	}
	return list
}

func words(commands [][]string) (list []string) {
	for _, c := range commands {
		var quoted []string
		for _, w := range c {
			quoted = append(quoted, advice.Word(w))
		}
		list = append(list, strings.Join(quoted, " "))
	}
	return list
}

// Install writes the files and has the manager read them. It starts no agent. If only the
// manager can't be told, the error matches ErrManager.
func Install(ctx context.Context, o Options) (Result, error) {
	p, err := o.plan()
	r := p.result()
	if err != nil {
		return r, err
	}
	for _, f := range p.files {
		if _, err := o.own(f.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return r, err
		}
	}
	for _, f := range p.files {
		if have, err := o.own(f.Path); err == nil && have == f.Text {
			continue
		}
		if err := write(f); err != nil {
			return r, err
		}
		r.Written = append(r.Written, f.Path)
	}
	for _, c := range p.before {
		o.ask(ctx, c) // there may be nothing to replace
	}
	err = o.tell(ctx, &r, p.on)
	return r, err
}

// Uninstall has the manager forget the service and removes the files that are netsky's.
// Running agents stay. It is no error if there are none.
func Uninstall(ctx context.Context, o Options) (Result, error) {
	p, err := o.plan()
	r := Result{Files: []File{}, Commands: words(append(p.off, p.after...))}
	if err != nil {
		return r, err
	}
	var errs []error
	var ours []File
	for _, f := range p.files {
		switch _, err := o.own(f.Path); {
		case err == nil:
			ours = append(ours, f)
		case !errors.Is(err, fs.ErrNotExist):
			errs = append(errs, err)
		}
	}
	packaged := p.packaged()
	if len(ours)+len(packaged) == 0 {
		return r, errors.Join(errs...)
	}
	errs = append(errs, o.tell(ctx, &r, p.off))
	for _, link := range p.links {
		to, err := os.Readlink(link)
		if err == nil && slices.ContainsFunc(ours, func(f File) bool { return f.Path == to }) {
			errs = append(errs, os.Remove(link))
		}
	}
	for _, f := range ours {
		packaged = append(packaged, f.Path)
	}
	for _, path := range packaged {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
			continue
		}
		r.Removed = append(r.Removed, path)
	}
	if len(r.Failed) == 0 { // a manager that runs has files to forget
		errs = append(errs, o.tell(ctx, &r, p.after))
	}
	return r, errors.Join(errs...)
}

// packaged returns the links by which the user has enabled units of a package.
func (p plan) packaged() (list []string) {
	for _, link := range p.links {
		if to, err := os.Readlink(link); err == nil && strings.HasPrefix(to, packageUnits) {
			list = append(list, link)
		}
	}
	return list
}

// own reads a file that netsky made for this home; another one is ErrForeign.
func (o Options) own(path string) (string, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		return "", fmt.Errorf("%s: %w", path, ErrForeign)
	}
	data, err := home.ReadOwn(path, 1<<20)
	if err != nil {
		return "", err
	}
	first := strings.SplitN(string(data), "\n", 4)
	for _, line := range first[:max(len(first)-1, 0)] {
		if line == "# "+o.mark() || line == comment(o.mark()) {
			return string(data), nil
		}
	}
	return "", fmt.Errorf("%s: %w", path, ErrForeign)
}

// write replaces a file as a whole.
func write(f File) error {
	dir := filepath.Dir(f.Path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	temp, err := os.CreateTemp(dir, ".netsky-*")
	if err != nil {
		return err
	}
	_, err = temp.WriteString(f.Text)
	if cerr := temp.Chmod(0o644); err == nil {
		err = cerr
	}
	if cerr := temp.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(temp.Name(), f.Path)
	}
	if err != nil {
		os.Remove(temp.Name())
	}
	return err
}

// tell runs the manager's commands, each whatever became of the others: systemctl can
// enable units even where no manager runs. It puts those that failed into r.
func (o Options) tell(ctx context.Context, r *Result, commands [][]string) error {
	var first error
	for i, c := range commands {
		if _, err := o.ask(ctx, c); err != nil {
			r.Failed = append(r.Failed, words(commands[i:i+1])...)
			if first == nil { // often one cause
				first = fmt.Errorf("%w: %w", ErrManager, err)
			}
		}
	}
	return first
}

// ask runs one command of the manager's and returns its first line, also with an error.
func (o Options) ask(ctx context.Context, c []string) (string, error) {
	file := execx.Find(execx.Value(o.Environ, "PATH"), c[0])
	if file == "" {
		return "", fmt.Errorf("%s: not on the PATH", c[0])
	}
	out, err := execx.Question{Program: file, Args: c[1:], Env: o.Environ, Dir: "/", Wait: 10 * time.Second}.Ask(ctx)
	line, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	return line, err
}
