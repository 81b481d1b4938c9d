package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"unicode/utf8"

	"netsky/agent"
	"netsky/agent/home"
	"netsky/prompts"
	"netsky/spawn"
)

// plans says of each agent what it runs on and where. Where demo was taken for
// want of a model, why says what stands in the way of one.
func (a *app) plans(ctx context.Context, l *spawn.Launcher, ids []agent.ID, runtime, dir string) (list []spawn.Plan, why error, err error) {
	cfg, err := a.cfg()
	if err != nil {
		return nil, nil, err
	}
	all := a.runtimes(l)
	var lost []error
	for _, id := range ids {
		before, err := launchBefore(l.Home, id)
		if err != nil && !(named(runtime, cfg.Agent[id].Runtime, cfg.Agents.Runtime) && named(dir, cfg.Agent[id].Dir, cfg.Agents.Dir)) {
			lost = append(lost, err)
			continue
		}
		r, err := a.chooseRuntime(ctx, all, runtime, cfg, id, before.Runtime)
		if err != nil {
			return nil, nil, err
		}
		d, err := a.agentDir(l, cfg, id, dir, before.Dir)
		if err != nil {
			return nil, nil, err
		}
		extra, err := a.addenda(cfg, id)
		if err != nil {
			return nil, nil, err
		}
		if r.chosen && r.Name() == "demo" {
			why = r.why
			if why == nil {
				why = errRanOnDemo
			}
		}
		list = append(list, spawn.Plan{
			Agent: id, Runtime: r.Runtime, Dir: d, Model: cfg.Agent[id].Model,
			Prompt: prompts.Input{Owner: cfg.Owner.Name, Machine: machine(), Home: l.Home, Runtime: r.Name(), Addenda: extra},
		})
	}
	if len(lost) > 0 {
		return nil, nil, errors.Join(lost...)
	}
	return list, why, nil
}

// errLaunch is matched when an agent's launch is on file and does not tell what
// the agent ran on or where. What is not known is not guessed: the guess could be
// a runtime that may do more, in a directory that nobody chose.
var errLaunch = errors.New("can't be read, so it is not known what it ran on, and where")

// launchBefore is how the agent was started last; the zero launch if it never was.
func launchBefore(h home.Dir, id agent.ID) (agent.Launch, error) {
	la, err := h.LoadLaunch(id)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return agent.Launch{}, nil
	case err == nil && (la.Agent != id || la.Runtime == "" || la.Dir == ""):
		err = errors.New("it is not complete")
	}
	if err != nil {
		return agent.Launch{}, fmt.Errorf("%s: its launch file %w (%w)", id, errLaunch, err)
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

var errRanOnDemo = errors.New("they ran on demo before; --type claude or --type codex changes that")

// machine is the machine's name, "" where it has none.
func machine() string {
	name, err := os.Hostname()
	if err != nil {
		return ""
	}
	return name
}

// maxAddendum bounds a file of the owner's that goes into a prompt, in bytes.
const maxAddendum = 1 << 20

// addenda reads the files that are appended to an agent's prompt.
func (a *app) addenda(c config, id agent.ID) ([]prompts.Layer, error) {
	files := c.Agents.Addendum
	if own := c.Agent[id].Addendum; own != nil {
		files = own
	}
	var list []prompts.Layer
	for _, f := range files {
		path, err := a.placed(f)
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
