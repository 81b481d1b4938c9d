package cli

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/urfave/cli/v2"

	"netsky/cli/view"
	"netsky/config"
	"netsky/daemon"
	"netsky/dashboard/access"
	"netsky/fleet"
	"netsky/home"
	"netsky/internal/words"
)

// dashboardVerbs serves the dashboard and says who may see it.
type dashboardVerbs struct{ *app }

func (a dashboardVerbs) dashboardCommand() *cli.Command {
	return &cli.Command{
		Name:  "dashboard",
		Usage: "print a link to the web dashboard",
		Description: "The link opens the dashboard in one browser, once, within five minutes. That browser then stays signed in: it can\n" +
			"read everything and write to agents in your name. The daemon, which serves the dashboard, is started if it is not\n" +
			"running.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "free-port", Usage: "from now on, take a free port and keep it: for a second home, or if another program has the port"},
			&cli.BoolFlag{Name: "browsers", Usage: "list the browsers that are signed in"},
			&cli.StringFlag{Name: "sign-out", Usage: "sign out the browser with `ID`, as --browsers lists it; all signs out every browser"},
			&cli.BoolFlag{Name: "rotate", Usage: "replace the token that scripts use, and sign out all browsers"},
			&cli.BoolFlag{Name: "json", Usage: "print one JSON object"},
		},
		Action: a.dashboard,
	}
}

var errNoDashboard = errors.New("dashboard: not served")

func (a dashboardVerbs) dashboard(c *cli.Context) error {
	if err := a.may("dashboard"); err != nil {
		return err
	}
	cfg, err := a.cfg()
	if err != nil {
		return err
	}
	if cfg.Dashboard.Listen == "" {
		return fmt.Errorf("%w: `listen` under [dashboard] in netsky.toml is empty", errNoDashboard)
	}
	if c.Bool("free-port") {
		if err := a.takeFreePort(c.Context); err != nil {
			return err
		}
		cfg = a.config
	}
	encrypt, err := a.dashboardTLS()
	if err != nil {
		return err
	}
	if _, err := access.CheckListen(cfg.Dashboard.Listen, encrypt != nil, cfg.Dashboard.Wide); err != nil {
		return err
	}
	h, err := a.madeHome()
	if err != nil {
		return err
	}
	l, err := a.launcher()
	if err != nil {
		return err
	}
	if err := (fleet.Daemon{Fleet: a.fleetOf(l)}).WantDaemon(c.Context); err != nil {
		return err
	}
	err = a.dashboardOf(c, h)
	if ended := fleet.DaemonWanted(h); ended != nil {
		return errors.Join(ended, err)
	}
	return err
}

// takeFreePort has the home's dashboard listen on a free port that it keeps, on the address that
// it has. The daemon ends, as it reads the address when it starts.
func (a dashboardVerbs) takeFreePort(ctx context.Context) error {
	if v := a.getenv("NETSKY_LISTEN"); v != "" {
		return usagef("dashboard --free-port: NETSKY_LISTEN=%s overrides netsky.toml; unset it first", v)
	}
	h, err := a.madeHome()
	if err != nil {
		return err
	}
	host, _, err := net.SplitHostPort(a.config.Dashboard.Listen)
	if err != nil {
		host = "127.0.0.1"
	}
	addr := net.JoinHostPort(host, "0")
	if err := config.SetListen(h, addr); err != nil {
		return err
	}
	a.config.Dashboard.Listen = addr
	ended, err := daemon.Stop(ctx, h)
	if err != nil {
		return err
	}
	why := ""
	if ended {
		why = "; the daemon was ended, as it reads that when it starts"
	}
	a.warn("netsky.toml has listen = %q under [dashboard] now: a free port, which stays the same%s", addr, why)
	return nil
}

// dashboardOf does what the options ask for. The daemon is running.
func (a dashboardVerbs) dashboardOf(c *cli.Context, h home.Dir) error {
	switch {
	case c.Bool("rotate"):
		if err := daemon.Served(c.Context, func() error { return daemon.Rotate(c.Context, h) }); err != nil {
			return err
		}
		if !c.Bool("json") {
			fmt.Fprintln(a.err, "netsky: there is a new token, and all browsers are signed out")
		}
	case c.Bool("browsers"):
		return a.dashboardBrowsers(c, h)
	case c.IsSet("sign-out"):
		return a.dashboardSignOut(c, h, c.String("sign-out"))
	}
	var link access.Link
	err := daemon.Served(c.Context, func() (err error) { link, err = daemon.Link(c.Context, h); return err })
	if err != nil {
		return err
	}
	tunnel := link.Tunnel(a.getenv("SSH_CONNECTION"), a.getenv("USER"))
	if c.Bool("json") {
		return a.writeJSON(map[string]any{"url": link.URL, "until": link.End, "ssh": tunnel})
	}
	if link.Renewed && !c.Bool("rotate") {
		a.warn("run/token was missing or readable by others: there is a new one, and all browsers are signed out")
	}
	a.print("%s", link.URL)
	if _, person := view.Width(a.out); person {
		fmt.Fprintln(a.err, "netsky: it signs in one browser, once, within five minutes")
	}
	if tunnel != "" {
		fmt.Fprintf(a.err, "netsky: you are connected by ssh: run this on the machine with your browser, then open the link there\n%s\n", tunnel)
	}
	return nil
}

func (a dashboardVerbs) dashboardBrowsers(c *cli.Context, h home.Dir) error {
	var list []access.Browser
	err := daemon.Served(c.Context, func() (err error) { list, err = daemon.Browsers(c.Context, h); return err })
	if err != nil {
		return err
	}
	if c.Bool("json") {
		return a.writeJSON(map[string]any{"browsers": append([]access.Browser{}, list...)})
	}
	if len(list) == 0 {
		a.print("no browser is signed in")
	}
	for _, b := range list {
		how := ""
		if b.Plain {
			how = "  (without JavaScript)"
		}
		a.print("%s  seen %s ago, signed in %s ago  %s%s", b.ID, words.Ago(time.Since(b.Seen.Time())), words.Ago(time.Since(b.Since.Time())), b.Words(), how)
	}
	return nil
}

func (a dashboardVerbs) dashboardSignOut(c *cli.Context, h home.Dir, id string) error {
	all := id == "all" || id == "--all"
	if !all && id == "" {
		return usagef("dashboard --sign-out: needs an id from `netsky dashboard --browsers`, or all")
	}
	ask := id
	if all {
		ask = ""
	}
	n := 0
	err := daemon.Served(c.Context, func() (err error) { n, err = daemon.SignOut(c.Context, h, ask); return err })
	if err != nil {
		return err
	}
	if c.Bool("json") {
		return a.writeJSON(map[string]any{"signed_out": n})
	}
	switch {
	case all:
		a.print("signed out: %d", n)
	case n == 0:
		return fmt.Errorf("dashboard: %q: no browser with that id is signed in; `netsky dashboard --browsers` lists them", id)
	default:
		a.print("signed out: %s", id)
	}
	return nil
}

// dashboardTLS returns the dashboard's certificate, nil if none is configured.
func (a dashboardVerbs) dashboardTLS() (*tls.Config, error) {
	cfg, err := a.cfg()
	if err != nil || cfg.Dashboard.Cert == "" {
		return nil, err
	}
	cert, err := a.placed(cfg.Dashboard.Cert)
	if err != nil {
		return nil, err
	}
	key, err := a.placed(cfg.Dashboard.Key)
	if err != nil {
		return nil, err
	}
	return access.Certificate(cert, key)
}
