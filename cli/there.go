package cli

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/urfave/cli/v2"

	"netsky/agent"
	"netsky/fleet"
	"netsky/link/team"
)

// An aimed command line may name agents on another host of the team.
type aimed struct{ *app }

// agentsAt returns the agents that a verb names, and the host on which they are, "" for this one.
func (a aimed) agentsAt(c *cli.Context) (host string, ids []agent.ID, err error) {
	host, ids, rest, err := a.splitAt(c.Args().Slice())
	switch {
	case err != nil:
		return "", nil, err
	case host != "" && len(rest) > 0:
		return "", nil, usagef("%s: names no agent of %s, as %s does; a verb is done on one host", rest[0], host, ids[0].At(host))
	case host == "":
		ids, err = agentArgs(c)
	}
	return host, ids, err
}

// splitAt returns the agents on another host that words name, that host, "" for none, and the other words.
func (a aimed) splitAt(words []string) (host string, ids []agent.ID, rest []string, err error) {
	for _, word := range words {
		id, perr := agent.ParseArgAddress(word)
		if perr != nil || id.Host() == "" || !id.IsAgent() {
			rest = append(rest, word)
			continue
		}
		if host != "" && id.Host() != host {
			return "", nil, nil, usagef("%s: is on another host than %s; a verb is done on one", word, ids[0].At(host))
		}
		host, ids = id.Host(), append(ids, id.Local())
	}
	if host == "" {
		return "", nil, rest, nil
	}
	h, err := a.home()
	if err != nil {
		return "", nil, nil, err
	}
	if self, err := team.LoadSelf(h); err == nil && self.Name == host {
		return "", nil, nil, usagef("%s@%s: is on this host: write %[1]s", ids[0], host)
	}
	return host, ids, rest, nil
}

// there has another host of the team do a deed. With --json its result is printed as that host says it, else
// words, which may be nil, print it.
func there[R any](a *app, c *cli.Context, host, deed string, request any, words func(R)) error {
	asJSON := c.Bool("json")
	f, err := a.fleetFor(ui{a, lines(func(text string) {
		if !asJSON {
			a.print("%s", text)
		}
	})})
	if err != nil {
		return err
	}
	var raw jsontext.Value
	var v R
	err = fleet.Host{Fleet: f, Name: host}.Do(c.Context, deed, request, &raw)
	if len(raw) > 0 && asJSON {
		_ = raw.Indent()
		a.print("%s", raw)
	} else if len(raw) > 0 && words != nil && json.Unmarshal(raw, &v) == nil {
		words(v)
	}
	if c.Context.Err() != nil {
		return exitError{128 + int(endedBy(c.Context)), err}
	}
	return err
}
