package cli

import (
	"context"
	"errors"
	"maps"
	"os"
	"slices"
	"strings"

	"netsky/agent"
	"netsky/codex"
	"netsky/spawn"
	"netsky/spawn/claude"
)

// demoRuntime runs spawn/demo, a program without a model, as an agent. It is
// this binary, so nothing can be missing.
type demoRuntime struct{ binary string }

func (demoRuntime) Name() string { return "demo" }

func (demoRuntime) Check(context.Context, agent.Launch) error { return nil }

func (d demoRuntime) Prepare(_ context.Context, l *agent.Launch) error {
	l.Argv = []string{d.binary, "demo", "serve", string(l.Agent)}
	return nil
}

// runtimes are all that this netsky can start, by name.
func (a *app) runtimes(l *spawn.Launcher) map[string]spawn.Runtime {
	all := map[string]spawn.Runtime{
		"claude": &claude.Runtime{Home: l.Home, Binary: l.Binary, Options: a.claudeOptions},
		"codex":  &codex.Runtime{Home: l.Home, Binary: l.Binary},
		"demo":   demoRuntime{l.Binary},
	}
	maps.Copy(all, ownRuntimes(a.config))
	return all
}

// claudeOptions are what is configured for an agent on Claude Code by the time
// they are asked for.
func (a *app) claudeOptions(id agent.ID) claude.Options {
	c := a.config.Claude
	o := claude.Options{
		Mode: c.PermissionMode, Model: c.Model, Effort: c.Effort, Delivery: c.Delivery, MCP: c.MCP,
	} // no iMessage server: there is none to start yet
	if own := a.config.Agent[id].Model; own != "" {
		o.Model = own
	}
	if c.Settings != "" {
		// A path that can't be made absolute is left as it is, and refused as such.
		o.Settings = c.Settings
		if path, err := a.placed(c.Settings); err == nil {
			o.Settings = path
		}
	}
	return o
}

// preferred are the runtimes with a model, in the order in which `auto` takes
// the first that is installed and logged in.
var preferred = []string{"claude", "codex"}

// A choice is the runtime of one agent, and why it is that one.
type choice struct {
	spawn.Runtime
	chosen bool  // nobody named it
	why    error // with demo chosen: what stands in the way of a model
}

// chooseRuntime obeys the flag, then the agent's own table, then [agents], then
// what the agent ran on before; else it takes what is preferred, and demo if
// none of that can be had.
func (a *app) chooseRuntime(ctx context.Context, all map[string]spawn.Runtime, flag string, c config, id agent.ID, before string) (choice, error) {
	for _, name := range []string{flag, c.Agent[id].Runtime, c.Agents.Runtime, before} {
		if name == "" || name == "auto" {
			continue
		}
		r, ok := all[name]
		if !ok {
			known := strings.Join(slices.Sorted(maps.Keys(all)), ", ")
			return choice{}, usagef("%s: runtime %q: this netsky can start %s", id, name, known)
		}
		return choice{Runtime: r, chosen: name == before && flag == "" && c.Agent[id].Runtime == ""}, nil
	}
	dir, err := os.Getwd()
	if err != nil {
		dir = "/"
	}
	var why []string
	for _, name := range preferred {
		err := all[name].Check(ctx, agent.Launch{Agent: id, Dir: dir, Env: a.environ})
		if err == nil {
			return choice{Runtime: all[name], chosen: true}, nil
		}
		why = append(why, firstLine(err.Error()))
	}
	return choice{Runtime: all["demo"], chosen: true, why: errors.New(strings.Join(why, "; "))}, nil
}
