package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/urfave/cli/v2"

	"netsky/agent"
	"netsky/cli/view"
	"netsky/fleet"
	"netsky/internal/words"
	"netsky/work/git"
	"netsky/work/land"
	"netsky/work/record"
)

func (a workVerbs) landCommand() *cli.Command {
	return &cli.Command{
		Name: "land", Usage: "put an agent's checked work on your branch", ArgsUsage: "AGENT", Args: true,
		Description: "The branch moves to the agent's work, as `netsky check` has seen it pass; where it is checked out, the files follow.\n" +
			"Without commits of its own it is fast-forwarded; otherwise a merge commit is made, or what --squash and --rebase say.\n" +
			"The hooks of the repository run. Nothing is moved if the check has not passed on the present state of both branches, if\n" +
			"they conflict (the agent is told), or if files where the branch is checked out have changes that are not committed.\n" +
			"`netsky undo` takes it back.\n\n" +
			"--all lands all work whose check has passed: first what shares no file with the rest, then the rest, oldest first.\n" +
			"What another landing has overtaken is checked again.\n\n" +
			"--pr needs a remote to push to, and gh (GitHub) or glab (GitLab) with a login. Without one of them the branch is pushed,\n" +
			"and what to run is printed.\n\n" +
			"Exit status: 0 landed, or nothing to land; 2 you may not; 3 nothing was moved, or with --all not everything, or the branch\n" +
			"was pushed and nobody asked to merge it; 1 anything else.\n\n" +
			"Only you can land work, and agent0 if `land = \"agent0\"` under [work] in netsky.toml says so.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "all", Usage: "land the work of all agents whose check has passed"},
			&cli.BoolFlag{Name: "merge", Usage: "make a merge commit even if the branch could be fast-forwarded"},
			&cli.BoolFlag{Name: "squash", Usage: "make one commit of the agent's work"},
			&cli.BoolFlag{Name: "rebase", Usage: "make the agent's commits again on top of the branch"},
			&cli.BoolFlag{Name: "pr", Usage: "push the agent's branch and ask for it to be merged, with gh or glab, instead of moving yours"},
			&cli.StringFlag{Name: "onto", Usage: "land on `BRANCH`", DefaultText: "the one that was checked out when the worktree was made"},
			&cli.StringFlag{Name: "message", Aliases: []string{"m"}, Usage: "use `TEXT` as the message of the commit or the request", DefaultText: "from the agent's commits"},
			&cli.BoolFlag{Name: "unchecked", Usage: "land without a check that has passed, and record that"},
			&cli.BoolFlag{Name: "yes", Usage: "with --all: agree to the text of the check command"},
			&cli.BoolFlag{Name: "json", Usage: "print one JSON object"},
		},
		Subcommands: []*cli.Command{{
			Name: "ls", Usage: "list what has landed, the newest first", ArgsUsage: "[AGENT]", Action: a.landLs,
			Flags: []cli.Flag{
				&cli.IntFlag{Name: "n", Aliases: []string{"limit"}, Value: 40, Usage: "list the last `N`, at most 1000"},
				&cli.BoolFlag{Name: "json", Usage: "print one JSON object"},
			},
		}},
		Action: a.land,
	}
}

func (a workVerbs) land(c *cli.Context) (err error) {
	r := fleet.LandRequest{Yes: c.Bool("yes"), LandOptions: land.LandOptions{
		Onto: c.String("onto"), Unchecked: c.Bool("unchecked"), PR: c.Bool("pr"), Message: c.String("message"),
	}}
	for _, how := range []string{land.Merging, land.Squash, land.Rebase} {
		if c.Bool(how) {
			r.How = how
		}
	}
	if c.Bool("all") {
		if c.NArg() > 0 {
			return usagef("land: --all lands the work of every agent, so it takes no name")
		}
		return a.landAll(c, r)
	}
	if r.Agent, err = oneAgentBy(c, "the agent whose work to land, or --all", agent.ParseAgentAddress); err != nil {
		return err
	}
	w, err := a.workOf(nil)
	if err != nil {
		return err
	}
	l, err := w.Land(c.Context, r)
	if errors.Is(err, land.ErrNothing) {
		a.tellLoose(r.Agent, l.Loose, "landed")
		a.complain(err)
		return nil
	}
	if err != nil && l.State != record.Pushed {
		return err
	}
	if perr := a.printLanding(l, c.Bool("json")); perr != nil {
		return perr
	}
	return err
}

func (a workVerbs) printLanding(l land.Landing, asJSON bool) error {
	a.tellLoose(l.Agent, l.Loose, "landed")
	for _, n := range l.Notes {
		a.warn("%s", n)
	}
	if asJSON {
		return a.writeJSON(l)
	}
	a.print("%s", landingLine(l.Landing))
	return nil
}

// landingLine says what a landing did.
func landingLine(l record.Landing) string {
	line := fmt.Sprintf("%s: %s", l.Agent, land.Says(l))
	if l.State == record.Pushed {
		return strings.TrimRight(line+"  "+l.URL, " ")
	}
	return line + fmt.Sprintf("; `netsky undo %s` takes it back", l.ID)
}

func (a workVerbs) landAll(c *cli.Context, r fleet.LandRequest) error {
	landed, failed := []land.Landing{}, 0
	w, err := a.workOf(progress{a.app, func(one land.Outcome) {
		if one.Err != nil {
			failed++
			a.complain(one.Err)
		}
		if one.Err == nil || one.Landing.State == record.Pushed {
			landed = append(landed, one.Landing)
			if !c.Bool("json") {
				_ = a.printLanding(one.Landing, false)
			}
		}
	}})
	if err != nil {
		return err
	}
	if _, err := w.LandAll(c.Context, r); err != nil {
		return err
	}
	if c.Bool("json") {
		if err := a.writeJSON(map[string]any{"landings": landed, "refused": failed}); err != nil {
			return err
		}
	}
	switch {
	case failed > 0:
		return exitError{exitPartly, errTold}
	case len(landed) == 0:
		a.warn("nothing to land")
	}
	return nil
}

func (a workVerbs) landLs(c *cli.Context) error {
	f := record.Filter{Limit: c.Int("n")}
	if f.Limit < 1 || f.Limit > 1000 {
		return usagef("land ls: -n %d: must be 1 to 1000", f.Limit)
	}
	if c.NArg() > 0 {
		id, err := oneAgentBy(c, "an agent", agent.ParseAgentAddress)
		if err != nil {
			return err
		}
		f.Agent = id
	}
	h, err := a.home()
	if err != nil {
		return err
	}
	list := []record.Landing{}
	db, err := a.records(c.Context, h)
	if err == nil {
		defer db.Close()
		list, err = record.Records{DB: db}.Landings(c.Context, f)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if c.Bool("json") {
		return a.writeJSON(map[string]any{"landings": list})
	}
	width := 0
	if w, ok := view.Width(a.out); ok {
		width = w
	}
	for _, line := range landingLines(list, subjects(c.Context, list), width) {
		a.print("%s", line)
	}
	if len(list) == 0 {
		a.warn("nothing has landed")
	}
	return nil
}

// landingLines are a table of landings. Its lines have at most width columns, if that is not 0.
func landingLines(list []record.Landing, subjects map[string]string, width int) (lines []string) {
	if len(list) == 0 {
		return nil
	}
	rows := [][]string{{"ID", "TIME", "AGENT", "STATE", "CHECK", "ONTO", "HOW", "COMMIT", "SUBJECT"}}
	for _, l := range list {
		proof, commit := "unchecked", cmp.Or(l.After, "-")
		if l.Evidence != "" {
			proof = "checked"
		}
		subject := cmp.Or(l.URL, subjects[commit])
		rows = append(rows, []string{
			l.ID, l.Started.Time().Local().Format("Jan 02 15:04"), string(l.Agent), l.State, proof, git.Branch(l.Target), l.How,
			commit[:min(7, len(commit))], words.Brief(subject, 72),
		})
	}
	last := len(rows[0]) - 1
	most := make([]int, last)
	for _, row := range rows {
		for i := range most {
			most[i] = max(most[i], len([]rune(row[i])))
		}
	}
	const little = 12 // columns that are no room for a subject
	room := width == 0
	if used := 2 * last; !room {
		for _, n := range most {
			used += n
		}
		room = width-used >= little
	}
	for _, row := range rows {
		var b strings.Builder
		for i, n := range most {
			fmt.Fprintf(&b, "%-*s  ", n, row[i])
		}
		if room {
			b.WriteString(row[last])
		}
		lines = append(lines, view.Cut(strings.TrimRight(b.String(), " "), width))
	}
	return lines
}

// subjects returns the first lines of the messages of what landed, as far as git still has them.
func subjects(ctx context.Context, list []record.Landing) map[string]string {
	commits, found := make(map[string][]string), make(map[string]string)
	for _, l := range list {
		if l.After != "" {
			commits[l.Repo] = append(commits[l.Repo], l.After)
		}
	}
	for repo, of := range commits {
		// A repository that is gone has no subjects.
		out, _ := git.Dir{Path: repo}.List(ctx, append([]string{"log", "--no-walk=unsorted", "--no-show-signature", "--ignore-missing", "--format=%H%x00%s"}, of...)...)
		for line := range strings.Lines(out) {
			if commit, subject, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "\x00"); ok {
				found[commit] = subject
			}
		}
	}
	return found
}

func (a workVerbs) undoCommand() *cli.Command {
	return &cli.Command{
		Name: "undo", Usage: "take back what landed", ArgsUsage: "LANDING",
		Description: "The branch moves back to where it was before, with its files; if there are commits on top, a commit reverses it\n" +
			"instead. What had landed is kept. Nothing is moved if files where the branch is checked out have changes that are not\n" +
			"committed, or if what came later conflicts. `netsky land ls` lists the landings; the first four or more\n" +
			"characters of an id are enough.",
		Flags:  []cli.Flag{&cli.BoolFlag{Name: "json", Usage: "print one JSON object"}},
		Action: a.undo,
	}
}

func (a workVerbs) undo(c *cli.Context) error {
	if c.NArg() > 1 {
		return usagef("undo: takes one landing, not %d", c.NArg())
	}
	id, err := one(c, "a landing; `netsky land ls` lists them")
	if err != nil {
		return err
	}
	w, err := a.workOf(nil)
	if err != nil {
		return err
	}
	u, err := w.Undo(c.Context, fleet.UndoRequest{Landing: id})
	if err != nil {
		return err
	}
	for _, n := range u.Notes {
		a.warn("%s", n)
	}
	if c.Bool("json") {
		return a.writeJSON(u)
	}
	target := git.Branch(u.Target)
	if u.Reverted {
		a.print("%s: undone: %s has a commit on top that reverses it, %.7s; %s", u.ID, target, u.Undo, u.Again)
	} else {
		a.print("%s: undone: %s is back at %.7s; what landed is kept at %.7s", u.ID, target, u.Undo, u.After)
	}
	return nil
}
