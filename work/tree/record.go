package tree

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"netsky/agent"
	"netsky/home"
	"netsky/store"
	"netsky/work/git"
)

// A Worktree is the one that an agent works in, as netsky made it. It is kept in
// state/worktrees/<agent>.json, which is written before git is asked to make it, and again when it
// is whole: Ready says so. Until then nobody has worked in it.
type Worktree struct {
	Agent agent.ID `json:"agent"`
	Repo  string   `json:"repo"` // the git directory that all worktrees of the repository share
	// Main is the worktree it was made from: where agent0 works. It decides what Base is.
	Main   string     `json:"main"`
	Dir    string     `json:"dir"`    // its root
	Branch string     `json:"branch"` // a full ref name
	Base   string     `json:"base"`   // what it lands on: a full ref name; "" if HEAD was detached
	From   string     `json:"from"`   // the commit that it began at
	Ready  bool       `json:"ready"`
	Setup  string     `json:"setup,omitempty"` // the digest of the setup command that has run in it
	Made   store.Time `json:"made"`
	Away   *Away      `json:"away,omitempty"` // of an agent on another host; nil: of one here
}

// Away is the work of an agent on another host of the team, as that was seen last. Its Worktree has no
// directory, and its branch, which work/away moves, is what was brought here.
type Away struct {
	Dir    string     `json:"dir"`             // there
	Branch string     `json:"branch"`          // there, a full ref name; "" if none is checked out
	Dirty  int        `json:"dirty"`           // files that are not committed there
	Aside  string     `json:"aside"`           // what is checked out there instead of the agent's branch
	Needs  []string   `json:"needs,omitempty"` // commits that its work builds on, and that are there
	Seen   store.Time `json:"seen"`
}

// BaseRef returns where an agent's host has what the agent's work begins at, or would land on, in the owner's
// repository on another host.
func BaseRef(id agent.ID) string { return "refs/netsky/base/" + string(id.Local()) }

// Short returns the branch's name without refs/heads/.
func (w Worktree) Short() string { return git.Branch(w.Branch) }

// Title names the work to people: its branch, or its agent if that is on another host.
func (w Worktree) Title() string {
	if w.Away != nil {
		return string(w.Agent)
	}
	return w.Short()
}

// Dirname is where the records of worktrees are, below the home.
const Dirname = "state/worktrees"

func file(id agent.ID) string { return Dirname + "/" + string(id) + ".json" }

// Load returns the agent's worktree. The error matches fs.ErrNotExist if it has none.
func Load(h home.Dir, id agent.ID) (Worktree, error) {
	w, err := home.Load[Worktree](h, file(id))
	if err == nil && w.Agent != id {
		err = fmt.Errorf("%s: is about %q", h.Path(file(id)), w.Agent)
	}
	return w, err
}

// Around returns the agent's worktree if the directory is in it.
func Around(h home.Dir, id agent.ID, dir string) (w Worktree, ok bool) {
	w, err := Load(h, id)
	return w, err == nil && dir != "" && Within(w.Dir, dir)
}

// Within reports whether a directory is the root or below it.
func Within(root, dir string) bool {
	rel, err := filepath.Rel(root, dir)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, "../")
}

// OwnersDir returns the owner's directory for one in the agent's worktree, else the directory itself.
func OwnersDir(h home.Dir, id agent.ID, dir string) string {
	w, ok := Around(h, id, dir)
	if !ok {
		return dir
	}
	sub, err := filepath.Rel(w.Dir, dir)
	if err != nil {
		return dir
	}
	return filepath.Join(w.Main, sub)
}

// List returns the worktrees of all agents, in the agents' order, those on other hosts last. A record that
// can't be read is left out and reported.
func List(h home.Dir) (list []Worktree, err error) {
	names, err := home.Records(h, Dirname)
	for _, name := range names {
		id, perr := agent.ParseAddress(name)
		if perr != nil || !id.IsClone() && id.Host() == "" {
			continue
		}
		w, lerr := Load(h, id)
		if lerr != nil {
			err = errors.Join(err, lerr)
			continue
		}
		list = append(list, w)
	}
	slices.SortFunc(list, func(a, b Worktree) int { return agent.Compare(a.Agent, b.Agent) })
	return list, err
}

// Forget removes the record of the agent's worktree, which is gone.
func Forget(h home.Dir, id agent.ID) error {
	return errors.Join(h.Remove(file(id)), h.Remove(home.StrayFile(id)))
}

// Save records the work of an agent on another host.
func (a Away) Save(h home.Dir, w Worktree) error {
	w.Ready, w.Away = true, &a
	return w.save(h)
}

// save records the worktree.
func (w Worktree) save(h home.Dir) error { return h.Save(file(w.Agent), w, true) }
