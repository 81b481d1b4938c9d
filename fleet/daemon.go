package fleet

import (
	"context"
	"errors"
	"fmt"

	"netsky/agent"
	"netsky/config"
	"netsky/daemon"
	"netsky/daemon/update"
	"netsky/home"
	"netsky/internal/execx"
	"netsky/tmux"
)

// DaemonWanted returns an error if the daemon's desired state has become down meanwhile.
func DaemonWanted(h home.Dir) error {
	if d, err := home.Desired(h).Load(agent.DaemonName); err != nil || d.Up {
		return err
	}
	return fmt.Errorf("daemon: %w", daemon.ErrUnwanted)
}

// Daemon is the daemon of a fleet: what starts, sets up and ends it.
type Daemon struct{ *Fleet }

// PeerMay is [May] for whoever is at the other end of the control socket.
func (f Daemon) PeerMay(ctx context.Context, deed string) error {
	id, err := control(f).peer(ctx)
	if err != nil {
		return err
	}
	return May(id, deed)
}

// startDaemon starts the daemon if none answers.
func (f Daemon) startDaemon(ctx context.Context) (daemon.Pong, daemon.Started, error) {
	return StartDaemon(ctx, f.Home, f.Launcher.Binary, f.Environ, f.UI.Warn)
}

// StartDaemon starts the daemon of a home if none answers. It ends by itself if its desired state is down by
// then. While a supervisor has the daemon, or one has to finish what was cut off, that one starts it.
func StartDaemon(ctx context.Context, h home.Dir, binary string, environ []string, warn func(error)) (daemon.Pong, daemon.Started, error) {
	environ = DaemonEnviron(h, environ)
	if r, pending := update.Pending(h); pending {
		warn(fmt.Errorf("%s %s is not finished: a supervisor starts the daemon", r.Kind, r.ID))
		err := update.Finish(h, environ)
		if err == nil {
			var p daemon.Pong
			if p, err = update.Starts(ctx, h); err == nil {
				return p, daemon.Supervised, nil
			}
		}
		if !errors.Is(err, daemon.ErrNotRunning) {
			return daemon.Pong{}, "", err
		}
	}
	return daemon.Start(ctx, h, []string{binary, "daemon", "run", "--wanted"}, environ)
}

// DaemonEnviron returns the environment for a daemon, which outlives this process.
func (f Daemon) DaemonEnviron() []string { return DaemonEnviron(f.Home, f.Environ) }

// DaemonEnviron is that for a home.
func DaemonEnviron(h home.Dir, environ []string) []string {
	return append(execx.Inherited(environ), "NETSKY_HOME="+h.Root())
}

// WantDaemon starts the daemon if it is not running, and says so. Like Start, it waits for a
// running down.
func (f Daemon) WantDaemon(ctx context.Context) error {
	p, err := daemon.Ping(ctx, f.Home)
	if err == nil && !home.Removed(p.Binary) && DaemonWanted(f.Home) == nil {
		return nil
	}
	return f.Launcher.Alone(ctx, f.blocked, func() error {
		if err := home.Desired(f.Home).Set(agent.DaemonName, true, string(agent.Owner)); err != nil {
			return err
		}
		if errors.Is(err, daemon.ErrHung) {
			f.warn("the daemon does not answer: ending it and starting another")
		}
		p, started, err := f.startDaemon(ctx)
		switch started {
		case "":
		case daemon.Began:
			f.warn("started the daemon, pid %d; `netsky daemon stop` ends it", p.PID)
		default:
			f.warn("started another daemon, pid %d", p.PID)
		}
		return err
	})
}

// blocked says that the deed waits for another one.
func (f Daemon) blocked(err error) {
	f.warn("another `netsky up` or `netsky down` is running; waiting for it (%v)", err)
}

// tmuxSetup returns additional configuration lines for the tmux server. An error is about the
// owner's tmux.conf; the lines are valid without it.
func (f Daemon) tmuxSetup() (lines []string, err error) {
	if execx.Value(f.Environ, socketVariable) != "" {
		lines = append(lines, "set-environment -g "+socketVariable+" "+tmux.Quote(f.Launcher.Tmux.Socket))
	}
	if f.Config.Tmux.Conf == "" {
		return lines, nil
	}
	path, err := config.Path(f.Home, f.userHome(), f.Config.Tmux.Conf)
	if err == nil {
		_, err = home.ReadOwn(path, 1<<20)
	}
	if err != nil {
		return lines, fmt.Errorf("conf under [tmux]: %w", err)
	}
	// Agents must outlive whoever looks at them.
	return append(lines, "source-file "+tmux.Quote(path), "set-option -g destroy-unattached off", "set-option -s exit-unattached off"), nil
}
