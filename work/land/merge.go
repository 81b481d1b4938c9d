package land

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"

	"netsky/agent"
	"netsky/internal/advice"
	"netsky/work/git"
	"netsky/work/tree"
)

// A Merge is what a merge of an agent's branch into its target would be now.
type Merge struct {
	Target string `json:"target"` // a full ref name
	Branch string `json:"branch"` // a full ref name
	Onto   string `json:"onto"`   // the target's commit
	Head   string `json:"head"`   // the branch's
	Base   string `json:"base"`   // the merge base of the two
	Tree   string `json:"tree"`   // of both merged; "" with conflicts
	Ahead  int    `json:"ahead"`  // commits that the target has not
	Behind int    `json:"behind"`
	Landed bool   `json:"landed"` // the target has it all: the merged tree is its own; or Upstream has
	// Upstream is the branch of another machine that the target follows, if that has it all and the target has not.
	Upstream  string     `json:"upstream,omitempty"`
	Conflicts []Conflict `json:"conflicts,omitempty"`
}

// A Conflict is one file that the two branches changed in ways that git can't merge.
type Conflict struct {
	File  string `json:"file"`
	Said  string `json:"said"`            // by git
	Hunks []Hunk `json:"hunks,omitempty"` // none if it is not about lines
}

// A Hunk is a range of lines of the file as it is on the agent's branch. Lines is 0 if the branch
// has removed them.
type Hunk struct {
	Line  int `json:"line"`
	Lines int `json:"lines"`
}

func (h Hunk) String() string {
	if h.Lines <= 1 {
		return fmt.Sprintf("line %d", h.Line)
	}
	return fmt.Sprintf("lines %d-%d", h.Line, h.Line+h.Lines-1)
}

func (k Conflict) String() string {
	var parts []string
	for _, h := range k.Hunks[:min(maxHunks, len(k.Hunks))] {
		parts = append(parts, h.String())
	}
	if more := len(k.Hunks) - len(parts); more > 0 {
		parts = append(parts, fmt.Sprintf("%d more", more))
	}
	return git.Shown(k.File) + ": " + cmp.Or(strings.Join(parts, ", "), k.Said, "conflict")
}

const (
	maxHunks     = 20      // of a file that are listed
	maxConflicts = 200     // files whose hunks are looked for
	maxConflict  = 1 << 20 // bytes of a file
)

// A ConflictError says that a branch can't be merged as it is.
type ConflictError struct {
	Who string
	Own bool // Who is the one that reads this
	Merge
}

// Advice is what to do next.
func (e *ConflictError) Advice() string {
	if e.Own {
		return "merge " + git.Branch(e.Target) + " into your branch and resolve the conflicts, then try again"
	}
	return "`" + Resolve(e.Who, git.Branch(e.Target)) + "`"
}

// Resolve returns the command that has an agent resolve what its branch and the target conflict in.
func Resolve(who, target string) string {
	if id := agent.ID(who); id.Host() != "" {
		target = tree.BaseRef(id)
	}
	return order(who, "merge "+target+" into your branch and resolve the conflicts", target)
}

// Return returns the command that has an agent go back to its own branch with what it has elsewhere.
func Return(who, branch string) string {
	return order(who, "bring your work to the branch "+branch+" and check that out", branch)
}

// order returns the command that sends an agent a text in which that name is.
func order(who, text, name string) string {
	if advice.Word(name) != name {
		return "netsky ask " + who + " " + advice.Word(text)
	}
	return fmt.Sprintf("netsky ask %s \"%s\"", who, text)
}

func (e *ConflictError) Error() string {
	var b strings.Builder
	branch := git.Branch(e.Branch)
	if agent.ID(e.Who).Host() != "" { // which knows it by another name
		branch = "its branch"
	}
	fmt.Fprintf(&b, "%s: %s and %s conflict in %s", e.Who, branch, git.Branch(e.Target), files(len(e.Conflicts)))
	for i, k := range e.Conflicts {
		if i == maxHunks {
			fmt.Fprintf(&b, "\n%d more", len(e.Conflicts)-i)
			break
		}
		b.WriteString("\n" + k.String())
	}
	return b.String()
}

// Is has it match ErrNotYet.
func (e *ConflictError) Is(target error) bool { return target == ErrNotYet }

func files(n int) string {
	if n == 1 {
		return "1 file"
	}
	return fmt.Sprintf("%d files", n)
}

// Target returns the full name of the ref that the worktree's branch lands on: onto, if given.
func Target(w tree.Worktree, onto string) (string, error) {
	ref := cmp.Or(onto, w.Base)
	switch {
	case ref == "":
		return "", advice.With(fmt.Errorf("%s: no branch was checked out where its worktree was made from, so it has none to land on", w.Agent), "name one: --onto BRANCH")
	case !strings.HasPrefix(ref, "refs/"):
		ref = "refs/heads/" + ref
	}
	name, ok := strings.CutPrefix(ref, "refs/heads/")
	if !ok || name == "" || strings.ContainsAny(name, " ~^:?*[\\") || strings.Contains(name, "..") || strings.Contains(name, "@{") {
		return "", fmt.Errorf("%s: %q is not a branch", w.Agent, ref)
	}
	if ref == w.Branch {
		return "", onItself(w)
	}
	return ref, nil
}

func onItself(w tree.Worktree) error {
	return fmt.Errorf("%s: %s can't land on itself", w.Agent, w.Short())
}

// Merged computes the merge of the worktree's branch into a ref. It changes no ref and no file;
// the objects it writes into the repository are git's to remove.
func Merged(ctx context.Context, r git.Repo, w tree.Worktree, target string) (m Merge, err error) {
	d := r.Look()
	// A name may stand for another branch, which is the one that moves.
	if to, err := d.First(ctx, "symbolic-ref", "--quiet", target); err == nil {
		target = to
	}
	m = Merge{Target: target, Branch: w.Branch}
	if target == w.Branch {
		return m, onItself(w)
	}
	for _, side := range []struct {
		ref string
		to  *string
	}{{target, &m.Onto}, {w.Branch, &m.Head}} {
		if *side.to, err = r.Commit(ctx, side.ref); err == nil && *side.to == "" {
			err = fmt.Errorf("%s: there is no branch %s in %s", w.Agent, git.Branch(side.ref), r.Top)
		}
		if err != nil {
			return m, err
		}
	}
	if m.Base, err = d.First(ctx, "merge-base", m.Onto, m.Head); err != nil {
		return m, noBase(ctx, r, w, target, err)
	}
	counts, err := d.First(ctx, "rev-list", "--left-right", "--count", m.Onto+"..."+m.Head)
	if err != nil {
		return m, err
	}
	if _, err := fmt.Sscan(counts, &m.Behind, &m.Ahead); err != nil {
		return m, fmt.Errorf("git rev-list: %q", counts)
	}
	own, err := d.First(ctx, "rev-parse", m.Onto+"^{tree}")
	if err != nil || m.Ahead == 0 {
		m.Tree, m.Landed = own, true
		return m, err
	}
	by, done, err := tree.Attributed(ctx, d, m.Onto)
	if err == nil {
		err = m.compute(ctx, by)
		done()
	}
	if err != nil {
		return m, fmt.Errorf("%s: git merge-tree: %w", w.Agent, err)
	}
	if m.Landed = m.Tree == own; !m.Landed {
		m.Upstream, err = upstream(ctx, d, target, m.Head)
		m.Landed = m.Upstream != ""
	}
	return m, err
}

// upstream returns the branch that the target follows, if that has all of a commit already, as one commit
// perhaps.
func upstream(ctx context.Context, d git.Dir, target, commit string) (string, error) {
	out, err := d.First(ctx, "for-each-ref", "--format=%(upstream) %(upstream:short)", target)
	ref, name, _ := strings.Cut(out, " ")
	if err != nil || ref == "" {
		return "", err
	}
	tree, err := d.First(ctx, "rev-parse", "--quiet", "--verify", ref+"^{tree}")
	if ge := new(git.Error); errors.As(err, &ge) { // it was never fetched
		return "", nil
	}
	if err != nil {
		return "", err
	}
	merged, err := d.First(ctx, "merge-tree", "--write-tree", ref, commit)
	if ge := new(git.Error); errors.As(err, &ge) { // a conflict, or nothing in common
		return "", nil
	}
	if merged != tree {
		name = ""
	}
	return name, err
}

// noBase explains why two commits have no merge base.
func noBase(ctx context.Context, r git.Repo, w tree.Worktree, target string, err error) error {
	if ge := new(git.Error); !errors.As(err, &ge) || ge.Status != 1 {
		return err
	}
	err = fmt.Errorf("%s: %s and %s have no commit in common", w.Agent, w.Short(), git.Branch(target))
	if shallow, _ := r.Look().First(ctx, "rev-parse", "--is-shallow-repository"); shallow == "true" {
		err = advice.With(err, "the repository is a shallow clone, which lacks older commits: `git fetch --unshallow` gets them")
	}
	return err
}

// compute merges the two commits.
func (m *Merge) compute(ctx context.Context, d git.Dir) error {
	out, words := &git.Head{Limit: maxMerge}, &tail{}
	err := d.Stream(ctx, nil, out, words, "merge-tree", "--write-tree", "-z", "--name-only", "--messages", m.Onto, m.Head)
	ee := new(exec.ExitError)
	switch {
	case err == nil:
		m.Tree, _, _ = strings.Cut(out.String(), "\x00")
		return nil
	case !errors.As(err, &ee):
		return err
	case ee.ExitCode() != 1 || out.Len() == 0:
		return errors.New(cmp.Or(words.String(), err.Error()))
	case out.Len() >= maxMerge:
		return errors.New("its list of conflicts is too long")
	}
	tree, rest, _ := strings.Cut(out.String(), "\x00")
	m.Conflicts = parseConflicts(rest)
	for i := range m.Conflicts {
		k := &m.Conflicts[i]
		k.Said = strings.NewReplacer(m.Onto, git.Branch(m.Target), m.Head, git.Branch(m.Branch)).Replace(k.Said)
		if i >= maxConflicts || !strings.HasPrefix(k.Said, "CONFLICT (content)") && !strings.HasPrefix(k.Said, "CONFLICT (add/add)") {
			continue
		}
		text, err := d.Run(ctx, maxConflict, "cat-file", "blob", tree+":"+k.File)
		if err == nil && len(text) < maxConflict {
			k.Hunks = hunks(text, m.Onto, m.Head)
		}
	}
	return nil
}

const maxMerge = 16 << 20 // bytes of git's answer

// parseConflicts reads what git merge-tree -z --name-only prints after the tree: the files, an empty
// name, and messages, each with the number of its paths, the paths, a type and the text.
func parseConflicts(rest string) (list []Conflict) {
	parts := strings.Split(rest, "\x00")
	at := make(map[string]int)
	i := 0
	for ; i < len(parts) && parts[i] != ""; i++ {
		at[parts[i]] = len(list)
		list = append(list, Conflict{File: parts[i]})
	}
	for i++; i < len(parts); {
		n, err := strconv.Atoi(parts[i])
		if err != nil || n < 0 || n > len(parts)-i-3 {
			return list
		}
		paths, text := parts[i+1:i+1+n], strings.TrimSpace(parts[i+n+2])
		i += n + 3
		if !strings.HasPrefix(text, "CONFLICT") {
			continue
		}
		for _, path := range paths {
			if j, ok := at[path]; ok && list[j].Said == "" {
				list[j].Said = text
			}
		}
	}
	return list
}

// hunks returns where a merged file has conflicts, by the line numbers of the agent's side.
func hunks(text, ours, theirs string) (list []Hunk) {
	line, start, in := 1, 0, ""
	for l := range strings.Lines(text) {
		l = strings.TrimRight(l, "\r\n")
		switch {
		case in == "" && strings.HasPrefix(l, "<<<<<<<") && strings.HasSuffix(l, " "+ours), in == "" && strings.HasPrefix(l, "<<<<<<<") && strings.Contains(l, " "+ours+":"):
			in = "ours"
		case in == "ours" && strings.HasPrefix(l, "=======") && strings.Trim(l, "=") == "":
			in, start = "theirs", line
		case in == "theirs" && strings.HasPrefix(l, ">>>>>>>") && strings.Contains(l, " "+theirs):
			list = append(list, Hunk{Line: start, Lines: line - start})
			in = ""
		case in != "ours":
			line++
		}
	}
	return list
}
