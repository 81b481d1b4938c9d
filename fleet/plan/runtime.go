package plan

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"netsky/agent"
	"netsky/claude"
	"netsky/codex"
	"netsky/spawn"
	"netsky/spawn/command"
	"netsky/spawn/demo"
	"netsky/watch"
)

// The watchdog starts none of them on an account that serves nobody.
var _, _, _ watch.Accounted = (*claude.Runtime)(nil), (*codex.Runtime)(nil), demo.Runtime{}

// Runtimes returns all runtimes that can be started, by name.
func (p *Planner) Runtimes() map[string]spawn.Runtime {
	l := p.Launcher
	all := map[string]spawn.Runtime{
		"claude": &claude.Runtime{Home: l.Home, Binary: l.Binary, Options: p.claudeOptions},
		"codex":  &codex.Runtime{Home: l.Home, Binary: l.Binary},
		"demo":   demo.Runtime{Binary: l.Binary, Bus: l.Bus},
	}
	for name, r := range p.Config.Runtime {
		all[name] = command.New(name, r.Command)
	}
	return all
}

// claudeOptions returns the current configuration of an agent on Claude Code.
func (p *Planner) claudeOptions(id agent.ID) claude.Options {
	c := p.Config.Claude
	o := claude.Options{
		Mode: c.PermissionMode, Model: c.Model, Effort: c.Effort, Delivery: c.Delivery, MCP: c.MCP,
		IMessage: p.Config.IMessage.Enabled || p.Config.Telegram.Enabled,
	}
	if own := p.Config.Agent[id].Model; own != "" {
		o.Model = own
	}
	if c.Settings != "" {
		// A path that can't be made absolute is left as it is, and refused as such.
		o.Settings = c.Settings
		if path, err := p.placed(c.Settings); err == nil {
			o.Settings = path
		}
	}
	return o
}

// preferred lists the runtimes with a model: `auto` takes the first that is installed
// and logged in.
var preferred = []string{"claude", "codex"}

// A choice is the runtime of one agent, and why it is that one.
type choice struct {
	spawn.Runtime
	chosen bool  // no flag or key named it
	why    error // with demo chosen: why no model is available
}

// choose takes the runtime from the flag, else the agent's own table, else [agents], else
// the last start; else it takes the first preferred one that is available, else demo.
func (p *Planner) choose(ctx context.Context, all map[string]spawn.Runtime, flag string, id agent.ID, dir, before string) (choice, error) {
	for _, name := range []string{flag, p.Config.Agent[id].Runtime, p.Config.Agents.Runtime, before} {
		if name == "" || name == "auto" {
			continue
		}
		r, ok := all[name]
		if !ok {
			known := strings.Join(slices.Sorted(maps.Keys(all)), ", ")
			return choice{}, &UsageError{Err: fmt.Errorf("%s: no runtime %q; there are: %s", id, name, known)}
		}
		return choice{Runtime: r, chosen: name == before && flag == "" && p.Config.Agent[id].Runtime == ""}, nil
	}
	var why []string
	for _, name := range preferred {
		err := all[name].Check(ctx, agent.Launch{Agent: id, Dir: dir, Env: p.Launcher.Environ})
		if err == nil {
			return choice{Runtime: all[name], chosen: true}, nil
		}
		why = append(why, firstLine(err))
	}
	return choice{Runtime: all["demo"], chosen: true, why: errors.New(strings.Join(why, "; "))}, nil
}

func firstLine(err error) string {
	text, _, _ := strings.Cut(err.Error(), "\n")
	return text
}

// A UsageError is returned for flags or keys that can't be applied.
type UsageError struct{ Err error }

func (e *UsageError) Error() string { return e.Err.Error() }

func (e *UsageError) Unwrap() error { return e.Err }
