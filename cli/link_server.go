package cli

import (
	"context"
	"io"
	"log/slog"

	"github.com/urfave/cli/v2"

	"netsky/fleet"
	"netsky/link/server"
	"netsky/spawn"
)

// linkServerCommand runs what keeps the mail between the hosts of a team.
func (a daemonVerbs) linkServerCommand() *cli.Command {
	return &cli.Command{
		Name: "server", Usage: "keep the mail between the hosts of the team until they have it", Hidden: true,
		Description: "For netsky itself: the daemon runs it where `netsky link serve` was said.",
		Flags:       []cli.Flag{&cli.BoolFlag{Name: "attached", Usage: "end when the standard input does"}},
		Action:      a.linkServer,
	}
}

func (a daemonVerbs) linkServer(c *cli.Context) error {
	if err := a.may("daemon run"); err != nil {
		return err
	}
	h, err := a.home()
	if err != nil {
		return err
	}
	ctx, end := context.WithCancel(c.Context)
	defer end()
	if c.Bool("attached") {
		go func() {
			_, _ = io.Copy(io.Discard, a.in)
			end()
		}()
	}
	s := server.Server{Home: h, Log: slog.New(slog.NewTextHandler(a.err, nil))}
	return s.Serve(ctx)
}

// linkKeeper returns what runs the server of a home from its daemon.
func (a daemonVerbs) linkKeeper(l *spawn.Launcher, log *slog.Logger) server.Keeper {
	return server.Keeper{
		Home: l.Home, Command: []string{l.Binary, "link", "server", "--attached"}, Environ: fleet.DaemonEnviron(l.Home, a.environ), Log: log,
	}
}
