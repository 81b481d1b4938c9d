// Package plan decides how each agent is started: on which runtime, in which directory and
// with which prompt. A flag overrides netsky.toml, which overrides the agent's last start.
// It asks nobody and changes nothing.
package plan

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"unicode/utf8"

	"netsky/agent"
	"netsky/config"
	"netsky/home"
	"netsky/internal/advice"
	"netsky/prompts"
	"netsky/spawn"
)

// A Planner plans the starts of a home's agents.
type Planner struct {
	Launcher *spawn.Launcher
	Config   *config.Config
	UserHome string
	Here     string // where agents work by default; "" is the caller's directory
}

// A Wish is what the caller's flags request; "" requests nothing.
type Wish struct {
	Runtime string
	Dir     string
}

// Plans returns for each agent what it runs on and where. If demo was chosen because no
// model is available, why is the reason.
func (p *Planner) Plans(ctx context.Context, ids []agent.ID, w Wish) (list []spawn.Plan, why error, err error) {
	all := p.Runtimes()
	var lost []error
	for _, id := range ids {
		before, err := Before(p.Launcher.Home, id)
		own := p.Config.Agent[id]
		if err != nil && !(named(w.Runtime, own.Runtime, p.Config.Agents.Runtime) && named(w.Dir, own.Dir, p.Config.Agents.Dir)) {
			lost = append(lost, err)
			continue
		}
		in, err := p.input(id, w.Dir, before.Dir)
		if err != nil {
			return nil, nil, err
		}
		r, err := p.choose(ctx, all, w.Runtime, id, in.Dir, before.Runtime)
		if err != nil {
			return nil, nil, err
		}
		if r.chosen && r.Name() == "demo" {
			why = r.why
			if why == nil {
				why = ErrRanOnDemo
			}
		}
		in.Runtime = r.Name()
		list = append(list, spawn.Plan{Agent: id, Runtime: r.Runtime, Dir: in.Dir, Model: own.Model, Prompt: in})
	}
	if len(lost) > 0 {
		return nil, nil, errors.Join(lost...)
	}
	return list, why, nil
}

// input returns what an agent's prompt is made of, except its runtime.
func (p *Planner) input(id agent.ID, flag, before string) (prompts.Input, error) {
	dir, err := p.dir(id, flag, before)
	if err != nil {
		return prompts.Input{}, err
	}
	extra, err := p.addenda(id)
	in := p.Facts(agent.Launch{Agent: id, Dir: dir})
	in.Addenda = extra
	return in, err
}

// Facts returns what an agent's prompt says about its start, without the owner's addenda.
func (p *Planner) Facts(la agent.Launch) prompts.Input {
	name, err := os.Hostname()
	if err != nil {
		name = ""
	}
	in := prompts.Input{
		Agent: la.Agent, Dir: la.Dir, Owner: p.Config.Owner.Name, Machine: name, Home: p.Launcher.Home, Runtime: la.Runtime,
	}
	if w, ok := p.treeOf(la.Agent, la.Dir); ok {
		in.Tree = treeFacts(w)
	}
	return in
}

// Prompt returns the prompt of an agent where it was started last, but on this runtime.
func (p *Planner) Prompt(id agent.ID, runtime string) (prompts.Input, error) {
	before, err := Before(p.Launcher.Home, id)
	if err != nil && !named(p.Config.Agent[id].Dir, p.Config.Agents.Dir) {
		return prompts.Input{}, err
	}
	in, err := p.input(id, "", before.Dir)
	in.Runtime = runtime
	if w, ok := p.treeOf(id, before.Dir); ok {
		in.Dir = before.Dir
		inTree(&in, w)
	}
	return in, err
}

// errLaunch is returned when an agent's launch file does not name its runtime or its
// directory. Neither is guessed: the guess could be a runtime with more rights, or a
// directory that nobody chose.
var errLaunch = errors.New("can't be read, so its runtime and directory are unknown")

// Before returns the agent's last launch, the zero launch if it never was started.
func Before(h home.Dir, id agent.ID) (agent.Launch, error) {
	la, err := h.LoadLaunch(id)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return agent.Launch{}, nil
	case err == nil && (la.Agent != id || la.Runtime == "" || la.Dir == ""):
		err = errors.New("it is incomplete")
	}
	if err != nil {
		return agent.Launch{}, advice.With(fmt.Errorf("%s: its launch file %w (%w)", id, errLaunch, err),
			"`netsky agent N --fresh --type RUNTIME --dir DIR` sets both and starts it with a new conversation")
	}
	return la, nil
}

// named reports whether one of the words names something.
func named(words ...string) bool {
	for _, w := range words {
		if w != "" && w != "auto" {
			return true
		}
	}
	return false
}

// ErrRanOnDemo is the reason why agents run on demo again.
var ErrRanOnDemo = errors.New("as before; --type claude or --type codex changes that")

// maxAddendum bounds a file of the owner's that goes into a prompt, in bytes.
const maxAddendum = 1 << 20

// addenda returns the files that are appended to an agent's prompt.
func (p *Planner) addenda(id agent.ID) ([]prompts.Layer, error) {
	files := p.Config.Agents.Addendum
	if own := p.Config.Agent[id].Addendum; own != nil {
		files = own
	}
	var list []prompts.Layer
	for _, f := range files {
		path, err := p.placed(f)
		if err != nil {
			return nil, err
		}
		text, err := home.ReadOwn(path, maxAddendum)
		if err == nil && !utf8.Valid(text) {
			err = fmt.Errorf("%s: not valid UTF-8", path)
		}
		if err != nil {
			return nil, fmt.Errorf("addendum: %w", err)
		}
		list = append(list, prompts.Layer{Name: f, Text: string(text)})
	}
	return list, nil
}

func (p *Planner) placed(path string) (string, error) {
	return config.Path(p.Launcher.Home, p.UserHome, path)
}
