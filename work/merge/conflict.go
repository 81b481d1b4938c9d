package merge

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"netsky/agent"
	"netsky/work/git"
)

// A Conflict is between the work of two agents, or of one agent and the branch that it lands on.
type Conflict struct {
	Agents []agent.ID `json:"agents"` // in order; one or two
	Target string     `json:"target,omitempty"`
	Files  []string   `json:"files"` // at most 100
	More   int        `json:"more,omitempty"`
}

// With names what the agent's work is in conflict with.
func (c Conflict) With(id agent.ID) string {
	for _, a := range c.Agents {
		if a != id {
			return string(a)
		}
	}
	return c.Target
}

// maxFiles is how many files of a conflict are named.
const maxFiles = 100

func conflict(m Merge, target string, ids ...agent.ID) Conflict {
	c := Conflict{Agents: ids, Target: target, Files: []string{}}
	for _, name := range m.Files[:min(len(m.Files), maxFiles)] {
		c.Files = append(c.Files, strings.ToValidUTF8(name, "\ufffd"))
	}
	c.More = len(m.Files) - len(c.Files)
	return c
}

// between returns those of the files in which the work of two agents conflicts that both of them have
// changed: where one has only what the target has, the other's conflict is with the target.
func (r *repo) between(ctx context.Context, d git.Dir, known map[Pair]map[string]bool, a, b *Side, files []string) (both []string) {
	if a.Target == "" || a.Target != b.Target {
		return files
	}
	pair := func(s *Side) Pair { return Pair{s.Target, s.Commit} }
	with := func(s *Side, file string) bool { return slices.Contains(r.merges[pair(s)].Files, file) }
	brings := func(s *Side, file string) bool {
		p := pair(s)
		names, ok := r.brings[p]
		if !ok {
			if names, ok = known[p]; !ok {
				names = changes(ctx, d, p.Ours, r.merges[p].Tree)
			}
			r.brings[p] = names
		}
		return names == nil || names[file]
	}
	// In a file that one has renamed, the other has changed it by its former name.
	alone := func(s, other *Side, file string) bool {
		return with(s, file) && !brings(other, file) && !brings(other, r.former(ctx, d, pair(s), file))
	}
	for _, file := range files {
		if alone(a, b, file) || alone(b, a, file) {
			continue
		}
		both = append(both, file)
	}
	return both
}

// former returns the name by which a file that a side has renamed is known to the others, its own if it has not.
func (r *repo) former(ctx context.Context, d git.Dir, p Pair, file string) string {
	names, ok := r.renames[p]
	if !ok {
		names = make(map[string]string)
		if out, err := d.List(ctx, "diff-tree", "-r", "-z", "--find-renames", "--diff-filter=R", "--name-status", "--merge-base", p.Ours, p.Theirs); err == nil {
			for parts := strings.Split(out, "\x00"); len(parts) > 2; parts = parts[3:] {
				names[parts[2]] = parts[1]
			}
		}
		r.renames[p] = names
	}
	return cmp.Or(names[file], file)
}

// changes returns the files in which two trees differ, nil if that can't be told.
func changes(ctx context.Context, d git.Dir, from, to string) map[string]bool {
	out, err := d.List(ctx, "diff-tree", "-r", "-z", "--no-renames", "--name-only", from, to)
	if err != nil {
		return nil
	}
	names := make(map[string]bool)
	for name := range strings.SplitSeq(out, "\x00") {
		names[name] = true
	}
	return names
}
