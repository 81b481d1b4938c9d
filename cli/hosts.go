package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v2"

	"netsky/agent"
	"netsky/internal/words"
	"netsky/link/ssh"
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
		how := fmt.Sprintf("netsky %s\t%d up\t%d need you\t%d ms", v.Version, v.Up, v.Needs, v.TookMS)
		if v.Error != "" {
			how = v.Error
		}
		fmt.Fprintf(table, "%s\t%s\t%s\n", v.Name, v.SSH, how)
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
		Agents []struct{ State agent.State }
		Needs  []json.RawMessage
	}
	if bad := json.Unmarshal([]byte(status), &s); bad != nil {
		if err == nil {
			err = fmt.Errorf("its `netsky status --json` is none: %w", bad)
		}
		v.Error = words.FirstLine(err.Error())
		return v
	}
	for _, one := range s.Agents {
		if one.State != agent.Down && one.State != agent.Dead {
			v.Up++
		}
	}
	v.Needs = len(s.Needs)
	return v
}
