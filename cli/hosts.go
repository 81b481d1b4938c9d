package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v2"

	"netsky/agent"
	"netsky/attention"
	"netsky/internal/advice"
	"netsky/internal/words"
	"netsky/link/ssh"
	agentview "netsky/view"
)

func (a hostVerbs) hostsCommand() *cli.Command {
	return &cli.Command{
		Name: "hosts", Usage: "list your other machines, and bring netsky to one",
		Description: "Asks each machine that netsky.toml names under [host.NAME], by your own ssh: its netsky, the agents that are up there, and\n" +
			"what needs you. `netsky --on NAME VERB` runs any verb there; docs/hosts.md tells more.",
		Flags: []cli.Flag{&cli.BoolFlag{Name: "json", Usage: "print one JSON object"}},
		Args:  true,
		Action: func(c *cli.Context) error {
			if c.NArg() > 0 {
				return a.needsSub(c)
			}
			return a.list(c)
		},
		Subcommands: []*cli.Command{{
			Name: "install", Usage: "copy this netsky to a host, or update the one there", ArgsUsage: "HOST",
			Description: "Copies this program to ~/.local/bin/netsky there, if the machine is of the same kind, once you agree, and checks what has\n" +
				"arrived. A netsky that is there already updates itself with this one by `netsky self update`.",
			Flags:  []cli.Flag{&cli.BoolFlag{Name: "yes", Aliases: []string{"y"}, Usage: "do not ask"}},
			Action: a.install,
		}},
	}
}

// askTime is how long a host may take to answer in a list.
const askTime = 10 * time.Second

// A hostView is what `netsky hosts` shows of a host.
type hostView struct {
	Name    string `json:"name"`
	SSH     string `json:"ssh"`
	Error   string `json:"error,omitempty"`   // why nothing is known of it
	Version string `json:"version,omitempty"` // of its netsky
	Up      int    `json:"up"`                // agents
	Needs   int    `json:"needs"`             // what needs the owner there
	TookMS  int64  `json:"took_ms"`

	Link *attention.Host `json:"link,omitempty"` // what it has told this host, if it is of the same team
}

// how says in columns what is known of the host.
func (v hostView) how(now time.Time) string {
	switch {
	case v.Error == "" && v.SSH != "":
		return fmt.Sprintf("netsky %s\t%d up\t%d need you\t%d ms", v.Version, v.Up, v.Needs, v.TookMS)
	case v.Link == nil:
		return v.Error
	case v.SSH == "":
		return fmt.Sprintf("netsky %s\t%d up\t%d need you\t%s", v.Version, v.Up, v.Needs, v.Link.AsOf(now))
	}
	return v.Error + "; it has told: " + v.Link.Summary(now)
}

// linked adds what the hosts of the team have told this one.
func linked(list []hostView, team []attention.Host) []hostView {
	for i := range team {
		h := &team[i]
		at := slices.IndexFunc(list, func(v hostView) bool { return v.Name == h.Name })
		if at < 0 {
			at, list = len(list), append(list, hostView{Name: h.Name, Version: h.Version, Up: countUp(h.Agents), Needs: h.Needs})
		}
		list[at].Link = h
	}
	return list
}

func countUp(agents []agentview.Agent) (n int) {
	for _, a := range agents {
		if a.State != agent.Down && a.State != agent.Dead {
			n++
		}
	}
	return n
}

func (a hostVerbs) list(c *cli.Context) error {
	if err := a.may("on"); err != nil {
		return err
	}
	client, hosts, err := a.hosts()
	switch {
	case err != nil && len(hosts) == 0:
		return exitError{exitUsage, err}
	case err != nil: // the mistake is not about hosts
		a.warn("%v", err)
	}
	client.Unasked = true
	list := make([]hostView, len(hosts))
	var all sync.WaitGroup
	for i, h := range hosts {
		all.Go(func() { list[i] = look(c.Context, client, h) })
	}
	all.Wait()
	now := time.Now()
	if h, err := a.home(); err == nil {
		team, _ := attention.Hosts(h, now) // `netsky needs` says what can't be read
		list = linked(list, team)
	}
	switch {
	case c.Bool("json"):
		return a.writeJSON(map[string]any{"hosts": list})
	case len(list) == 0:
		a.print("no other machine is known; these lines in netsky.toml name one build1:\n\n  [host.build1]\n  ssh = \"me@build1.example.org\"\n\nthen `netsky hosts install build1` brings netsky there, `netsky --on build1 status` runs a verb")
		return nil
	}
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for _, v := range list {
		fmt.Fprintf(table, "%s\t%s\t%s\n", v.Name, cmp.Or(v.SSH, "by the link"), v.how(now))
	}
	table.Flush()
	a.print("%s", strings.TrimSuffix(text.String(), "\n"))
	return nil
}

// look asks a host how it is.
func look(ctx context.Context, c ssh.Client, h ssh.Host) (v hostView) {
	v = hostView{Name: h.Name, SSH: h.Dest}
	begin := time.Now()
	defer func() { v.TookMS = time.Since(begin).Milliseconds() }()
	said, err := c.Ask(ctx, h, askTime, nil, h.Script()+`"$netsky" version; "$netsky" status --json`)
	version, status, _ := strings.Cut(said, "\n")
	if f := strings.Fields(version); len(f) > 1 {
		v.Version = f[1]
	}
	var s struct {
		Agents []agentview.Agent
		Needs  []json.RawMessage
	}
	if bad := json.Unmarshal([]byte(status), &s); bad != nil {
		if err == nil {
			err = fmt.Errorf("its `netsky status --json` is none: %w", bad)
		}
		v.Error = words.FirstLine(err.Error())
		if errors.Is(err, ssh.ErrNoNetsky) {
			v.Error += ": " + advice.Of(reached(ctx, h, err))
		}
		return v
	}
	v.Up, v.Needs = countUp(s.Agents), len(s.Needs)
	return v
}
