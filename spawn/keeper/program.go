package keeper

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"netsky/agent"
)

// The statuses a shell gives to what it could not start.
const (
	cannotRun = 126
	notFound  = 127
)

func check(l agent.Launch, id agent.ID) error {
	switch {
	case l.Agent != id:
		return fmt.Errorf("launch: is for %q", l.Agent)
	case len(l.Argv) == 0:
		return errors.New("launch: no program")
	case !filepath.IsAbs(l.Argv[0]):
		return fmt.Errorf("launch: program %q is not an absolute path", l.Argv[0])
	case !filepath.IsAbs(l.Dir):
		return fmt.Errorf("launch: directory %q is not an absolute path", l.Dir)
	}
	return nil
}

// start starts the program in a process group of its own, which gets the
// terminal before the program's first instruction. Only descriptors 0 to 2 are
// handed on.
func start(l agent.Launch, tty terminal) (pid, status int, err error) {
	if info, err := os.Stat(l.Dir); err != nil {
		return 0, cannotRun, fmt.Errorf("directory %s: %w", l.Dir, reason(err))
	} else if !info.IsDir() {
		return 0, cannotRun, fmt.Errorf("directory %s: %w", l.Dir, unix.ENOTDIR)
	}
	attr := &syscall.ProcAttr{
		Dir:   l.Dir,
		Env:   paneEnv(l.Env, os.LookupEnv),
		Files: []uintptr{0, 1, 2},
		Sys:   &syscall.SysProcAttr{Setpgid: true, Foreground: tty.ok, Ctty: tty.fd},
	}
	dieWithUs(attr.Sys)
	pid, err = syscall.ForkExec(l.Argv[0], l.Argv, attr)
	if err == nil {
		return pid, 0, nil
	}
	status = cannotRun
	if _, missing := os.Stat(l.Argv[0]); errors.Is(missing, fs.ErrNotExist) {
		status = notFound
	} else if err == syscall.ENOENT {
		return 0, status, fmt.Errorf("%s: its interpreter: %w", l.Argv[0], err)
	}
	return 0, status, fmt.Errorf("%s: %w", l.Argv[0], err)
}

// reason is an error without the path, for where the path has been named.
func reason(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// paneEnv is the launch's environment with the names that describe a terminal
// taken from the pane: the one that `up` was typed into is another terminal.
func paneEnv(env []string, lookup func(string) (string, bool)) []string {
	names := []string{"TERM", "TERM_PROGRAM", "TERM_PROGRAM_VERSION"}
	var list []string
	for _, v := range env {
		name, _, _ := strings.Cut(v, "=")
		if name != names[0] && name != names[1] && name != names[2] {
			list = append(list, v)
		}
	}
	for _, name := range names {
		if v, ok := lookup(name); ok {
			list = append(list, name+"="+v)
		}
	}
	return list
}
