package cli

import (
	"context"
	"errors"
	"fmt"

	"netsky/agent"
	"netsky/cli/view"
	"netsky/config"
	"netsky/daemon"
	"netsky/home"
	"netsky/internal/execx"
	"netsky/spawn"
	"netsky/tmux"
)

// stillWanted returns an error if the daemon's desired state has become down meanwhile.
func stillWanted(h home.Dir) error {
	if d, err := h.LoadDesired(agent.DaemonName); err != nil || d.Up {
		return err
	}
	return fmt.Errorf("daemon: %w", daemon.ErrUnwanted)
}

// startDaemon starts the daemon if none answers. It ends by itself if its desired
// state is down by then.
func (a *app) startDaemon(ctx context.Context, h home.Dir, bin string) (daemon.Pong, daemon.Started, error) {
	return daemon.Start(ctx, h, []string{bin, "daemon", "run", "--wanted"}, a.daemonEnv(h))
}

// wantDaemon starts the daemon if it is not running, and says so. Like an up, it waits
// for a running down.
func (a *app) wantDaemon(ctx context.Context, l *spawn.Launcher) error {
	p, err := daemon.Ping(ctx, l.Home)
	if err == nil && !home.Removed(p.Binary) && stillWanted(l.Home) == nil {
		return nil
	}
	return l.Alone(ctx, func(err error) { view.Blocked(a.warn, err) }, func() error {
		if err := l.Home.SetDesired(agent.DaemonName, true, string(agent.Owner)); err != nil {
			return err
		}
		if errors.Is(err, daemon.ErrHung) {
			a.warn("the daemon does not answer: ending it and starting another")
		}
		p, started, err := a.startDaemon(ctx, l.Home, l.Binary)
		switch started {
		case "":
		case daemon.Began:
			a.warn("started the daemon, pid %d; `netsky daemon stop` ends it", p.PID)
		default:
			a.warn("started another daemon, pid %d", p.PID)
		}
		return err
	})
}

// daemonEnv returns the environment for a daemon, which outlives this verb.
func (a *app) daemonEnv(h home.Dir) []string {
	return append(execx.Inherited(a.environ), "NETSKY_HOME="+h.Root())
}

// tmuxSetup returns additional configuration lines for the tmux server. An error is
// about the owner's tmux.conf; the lines are valid without it.
func (a *app) tmuxSetup() (lines []string, err error) {
	if a.getenv("NETSKY_TMUX_SOCKET") != "" {
		h, err := a.home()
		if err != nil {
			return nil, err
		}
		lines = append(lines, "set-environment -g NETSKY_TMUX_SOCKET "+tmux.Quote(a.serverFor(h, config.Default()).Socket))
	}
	c, err := a.cfg()
	if err != nil || c.Tmux.Conf == "" {
		return lines, err
	}
	path, err := a.placed(c.Tmux.Conf)
	if err == nil {
		_, err = home.ReadOwn(path, 1<<20)
	}
	if err != nil {
		return lines, fmt.Errorf("conf under [tmux]: %w", err)
	}
	// Agents must outlive whoever looks at them.
	return append(lines, "source-file "+tmux.Quote(path), "set-option -g destroy-unattached off", "set-option -s exit-unattached off"), nil
}
