package keeper

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"netsky/agent"
	"netsky/internal/execx"
	"netsky/internal/tty"
)

// The statuses a shell uses for what it could not start.
const (
	cannotRun = 126
	notFound  = 127
)

func check(l agent.Launch, id agent.ID) error {
	switch {
	case l.Agent != id:
		return fmt.Errorf("launch: belongs to %q", l.Agent)
	case len(l.Argv) == 0:
		return errors.New("launch: no program")
	case !filepath.IsAbs(l.Argv[0]):
		return fmt.Errorf("launch: program %q is not an absolute path", l.Argv[0])
	case !filepath.IsAbs(l.Dir):
		return fmt.Errorf("launch: directory %q is not an absolute path", l.Dir)
	}
	return nil
}

// start starts the program in the terminal, or returns the status for the failure.
func start(l agent.Launch, t *tty.Terminal) (child *tty.Child, status int, err error) {
	if info, err := os.Stat(l.Dir); err != nil {
		return nil, cannotRun, fmt.Errorf("directory %s: %w", l.Dir, reason(err))
	} else if !info.IsDir() {
		return nil, cannotRun, fmt.Errorf("directory %s: %w", l.Dir, unix.ENOTDIR)
	}
	child, err = tty.Start(t, l.Argv[0], l.Argv, paneEnv(l.Env, os.LookupEnv), l.Dir)
	if err == nil {
		return child, 0, nil
	}
	status = cannotRun
	if _, missing := os.Stat(l.Argv[0]); errors.Is(missing, fs.ErrNotExist) {
		status = notFound
	} else if err == syscall.ENOENT {
		return nil, status, fmt.Errorf("%s: its interpreter: %w", l.Argv[0], err)
	}
	return nil, status, fmt.Errorf("%s: %w", l.Argv[0], err)
}

// reason returns an error without its path, for messages that name the path.
func reason(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// paneEnv returns the launch's environment with the variables that describe a terminal
// taken from the pane: the one that `up` was typed into is another terminal.
func paneEnv(env []string, lookup func(string) (string, bool)) []string {
	names := []string{"TERM", "TERM_PROGRAM", "TERM_PROGRAM_VERSION"}
	list := execx.Without(env, names...)
	for _, name := range names {
		if v, ok := lookup(name); ok {
			list = append(list, name+"="+v)
		}
	}
	return list
}
