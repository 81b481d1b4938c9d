package cli

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"netsky/agent"
	"netsky/daemon"
	"netsky/dashboard"
)

func (a *app) dashboardCommand() *cli.Command {
	return &cli.Command{
		Name:  "dashboard",
		Usage: "the link to the web page that shows it all",
		Description: "Prints a link that opens the dashboard in a browser on this machine, and starts the daemon, which serves it, if it\n" +
			"does not run. The link holds a secret: who has it can read everything, and write to agents in your name.",
		Flags:  []cli.Flag{&cli.BoolFlag{Name: "json", Usage: "print one JSON object"}},
		Action: a.dashboard,
	}
}

var (
	errNoDashboard = errors.New("dashboard: not served")
	errPort        = errors.New("dashboard: not served")
)

func (a *app) dashboard(c *cli.Context) error {
	if id, err := a.self(); err != nil || id != agent.Owner {
		return usagef("dashboard: only the owner gets the link, from a terminal of their own")
	}
	cfg, err := a.cfg()
	if err != nil {
		return err
	}
	if cfg.Dashboard.Listen == "" {
		return fmt.Errorf("%w: `listen` under [dashboard] in netsky.toml is empty", errNoDashboard)
	}
	encrypt, err := a.dashboardTLS()
	if err != nil {
		return err
	}
	if _, err := dashboard.CheckListen(cfg.Dashboard.Listen, encrypt != nil, cfg.Dashboard.Wide); err != nil {
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
	if err := h.SetDesired(agent.DaemonName, true, string(agent.Owner)); err != nil {
		return err
	}
	if _, _, err := daemon.Start(c.Context, h, []string{l.Binary, "daemon", "run"}, a.daemonEnv(h)); err != nil {
		return err
	}
	base, err := a.dashboardBase(c, h)
	if err != nil {
		return err
	}
	token, err := dashboard.Token(h)
	if err != nil {
		return err
	}
	link, tunnel := dashboard.LoginURL(base, token), a.tunnel(base)
	if c.Bool("json") {
		return a.writeJSON(map[string]any{"url": link, "ssh": tunnel})
	}
	a.print("%s", link)
	if tunnel != "" {
		fmt.Fprintf(a.err, "netsky: you are here by ssh: run this where your browser is, then open the link there\n%s\n", tunnel)
	}
	return nil
}

// dashboardTLS is what the dashboard is served with, nil without a certificate.
func (a *app) dashboardTLS() (*tls.Config, error) {
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
	return dashboard.Certificate(cert, key)
}

// dashboardBase is where the daemon serves it; one that has just started needs a
// moment to say so.
func (a *app) dashboardBase(c *cli.Context, h agent.Home) (string, error) {
	for end := time.Now().Add(5 * time.Second); ; {
		p, err := daemon.Ping(c.Context, h)
		switch {
		case err != nil:
			return "", err
		case p.Web.URL != "":
			return p.Web.URL, nil
		case p.Web.Taken:
			return "", fmt.Errorf("%w: %s", errPort, p.Web.Error)
		case time.Now().After(end) && p.Web.Error != "":
			return "", fmt.Errorf("%w: %s", errNoDashboard, p.Web.Error)
		case time.Now().After(end):
			return "", fmt.Errorf("%w by the daemon that runs; %s says why", errNoDashboard, h.Path(agent.LogDir, "netsky.jsonl"))
		}
		select {
		case <-c.Context.Done():
			return "", c.Context.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// tunnel is the command that brings the dashboard to the machine from which a
// person has come here by ssh, "" if they haven't or need none.
func (a *app) tunnel(base string) string {
	// SSH_CONNECTION is: client address, client port, our address, our port.
	f := strings.Fields(a.getenv("SSH_CONNECTION"))
	u, err := url.Parse(base)
	if len(f) != 4 || err != nil || !net.ParseIP(u.Hostname()).IsLoopback() {
		return ""
	}
	host := f[2]
	if user := a.getenv("USER"); user != "" {
		host = user + "@" + host
	}
	if f[3] != "22" {
		host = "-p " + f[3] + " " + host
	}
	return fmt.Sprintf("ssh -N -L %s:%s %s", u.Port(), u.Host, host)
}
