package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"netsky/agent"
	"netsky/bus/envelope"
	"netsky/cli/view"
	"netsky/config"
	"netsky/fleet"
	"netsky/home"
	"netsky/internal/words"
	"netsky/store"
	"netsky/work"
	"netsky/work/git"
	"netsky/work/land"
	"netsky/work/record"
	"netsky/work/retire"
	"netsky/work/tree"
)

// workVerbs shows, checks and lands what agents have changed.
type workVerbs struct{ *app }

func (a workVerbs) workCommand() *cli.Command {
	return &cli.Command{
		Name: "work", Usage: "print how the work of each agent is, and the next step", ArgsUsage: "[AGENT]",
		Description: "One line for each agent that works in a git worktree of its own: the files that are not committed (dirty), the commits\n" +
			"that have not landed (ahead), whether what landing it would make was checked, and with whose work it conflicts. All of it\n" +
			"is read from git each time.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "json", Usage: "print one JSON object"},
			&cli.BoolFlag{Name: "watch", Aliases: []string{"w"}, Usage: "print it again every second, until Ctrl-C"},
		},
		Subcommands: []*cli.Command{
			{
				Name: "gone", Usage: "list what was retired, and the command that brings each back",
				Description: "Lists the commits that agents' branches ended at, in the repositories that netsky knows and in the one here. Git\n" +
					"keeps them under " + retire.Refs + ".",
				Flags:  []cli.Flag{&cli.BoolFlag{Name: "json", Usage: "print one JSON object"}},
				Action: a.workGone,
			},
			{
				Name: "retire", Usage: "remove the worktree and branch of an agent whose work has landed", ArgsUsage: "AGENT…",
				Description: "Removes nothing that is not committed, has not landed, or is ignored by git and no copy of a file in your directory; no\n" +
					"option makes it. Git keeps the branch's last commit; `netsky work gone` lists it. The agent must be down.",
				Action: a.workRetire,
			},
		},
		Action: a.work,
	}
}

func (a workVerbs) work(c *cli.Context) error {
	switch verb := c.Args().First(); {
	case c.NArg() > 1 && slices.Contains([]string{"diff", "check", "land", "undo"}, verb):
		return usagef("work: no verb %q: `netsky %s` is a verb of its own", verb, strings.Join(c.Args().Slice(), " "))
	case c.NArg() > 1:
		return usagef("work: takes one agent at most")
	}
	var only agent.ID
	if arg := c.Args().First(); arg != "" {
		var err error
		if only, err = agent.ParseAgentAddress(arg); err != nil {
			return err
		}
	}
	h, err := a.home()
	if err != nil {
		return err
	}
	if trees, err := tree.List(h); err == nil && len(trees) > 0 {
		if err := git.Version(c.Context); err != nil {
			return err
		}
	}
	cfg, err := a.cfg()
	if err != nil {
		return err
	}
	if l, cut := land.CutOff(h); cut {
		a.warn("the landing %s of %s on %s was cut off, and files there may be half changed; the daemon settles that within seconds, without one the next `netsky land` does",
			l.ID, l.Agent, git.Branch(l.Target))
	}
	if err := a.freshen(c.Context, only); err != nil {
		return err
	}
	r, end := a.stateReader(c.Context, h, cfg)
	defer end()
	if c.Bool("watch") {
		return viewVerbs(a).watch(c, func(width, height int) ([]string, error) {
			list, err := a.states(c.Context, r, only)
			lines := workLines(list, width)
			return lines[:min(len(lines), max(height, 1))], err
		})
	}
	list, err := a.states(c.Context, r, only)
	if list == nil {
		return err
	}
	if c.Bool("json") {
		return errors.Join(a.writeJSON(map[string]any{"work": list}), err)
	}
	width := 0
	if w, ok := view.Width(a.out); ok {
		width = w
	}
	lines := workLines(list, width)
	if only != "" {
		lines = oneWork(list[0])
	}
	for _, line := range lines {
		a.print("%s", line)
	}
	return err
}

// freshTime is how long a list waits for what is new on other hosts.
const freshTime = 10 * time.Second

// freshen has what agents on other hosts have committed brought here: that of one of them, or of all.
func (a workVerbs) freshen(ctx context.Context, only agent.ID) error {
	w, err := a.workOf(nil)
	switch {
	case err != nil || w.May("task start") != nil: // others see what is here
		return err
	case only == "":
		w.Freshen(ctx, freshTime)
	case only.Host() != "":
		w.Freshen(ctx, freshTime, only)
	}
	return nil
}

// stateReader returns what reads how the agents' work is. The caller must call end.
func (a workVerbs) stateReader(ctx context.Context, h home.Dir, cfg config.Config) (r *work.Reader, end func()) {
	o, closed := work.Options{Command: fleet.CheckOf(cfg), Up: a.isUp}, func() error { return nil }
	db, err := store.OpenRead(ctx, h)
	switch {
	case err == nil:
		o.Records, closed = &record.Records{DB: db}, db.Close
	case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, store.ErrOlder):
		a.warn("what was checked is not known: %v", err)
	}
	r = work.New(h, o)
	return r, func() {
		if err := errors.Join(r.Close(), closed()); err != nil {
			a.warn("%v", err)
		}
	}
}

// isUp reports whether an agent runs, as far as can be told.
func (a workVerbs) isUp(ctx context.Context, id agent.ID) bool {
	up, err := a.running(ctx, id)
	return up && err == nil
}

// running reports whether an agent runs.
func (a workVerbs) running(ctx context.Context, id agent.ID) (bool, error) {
	l, err := a.launcher()
	if err != nil {
		return false, err
	}
	list, err := l.Inspect(ctx)
	st := list.Find(id)
	return st.State != "" && st.Alive(), err
}

// oneWork is all that is known of one agent's work, a fact a line.
func oneWork(st work.State) []string {
	lines := []string{fmt.Sprintf("%s  %s", st.Agent, st.State)}
	for _, fact := range st.Facts() {
		if fact != st.State {
			lines = append(lines, "  "+fact)
		}
	}
	base := ""
	if st.Base != "" {
		base = ", lands on " + st.Base
	}
	dir := "  in " + st.Dir
	if host := st.Agent.Host(); host != "" {
		dir += " on " + host
	}
	lines = append(lines, "  branch "+st.Branch+base, dir)
	if st.Next != "" {
		lines = append(lines, "  next: "+st.Next)
	}
	for i := range lines {
		lines[i] = envelope.Plain(lines[i])
	}
	return lines
}

// states returns the states of all agents, or of one.
func (a workVerbs) states(ctx context.Context, r *work.Reader, only agent.ID) ([]work.State, error) {
	list, err := r.States(ctx)
	if only == "" {
		return list, err
	}
	for _, st := range list {
		if st.Agent == only {
			return []work.State{st}, err
		}
	}
	h, herr := a.home()
	return nil, errors.Join(err, herr, land.NoWorktree(h, only))
}

// workLines are one line for each agent: who, how its work is, and the next step. They have at most
// width columns, if that is not 0; a next step that has no room there has a line of its own.
func workLines(list []work.State, width int) (lines []string) {
	if len(list) == 0 {
		return []string{"no agent works in a worktree of its own"}
	}
	names, facts, most := 0, make([]string, len(list)), 0
	for _, st := range list {
		names = max(names, len(st.Agent))
	}
	fits := func(i int) bool {
		return width == 0 || names+2+len([]rune(facts[i]))+2+len([]rune(list[i].Next)) <= width
	}
	for i, st := range list {
		if facts[i] = envelope.Plain(strings.Join(st.Facts(), ", ")); fits(i) {
			most = max(most, len([]rune(facts[i])))
		}
	}
	for i, st := range list {
		column := most
		if width > 0 {
			column = min(column, max(0, width-names-4-len([]rune(st.Next))))
		}
		line := fmt.Sprintf("%-*s  %-*s", names, st.Agent, column, facts[i])
		if fits(i) {
			lines = append(lines, strings.TrimRight(line+"  "+st.Next, " "))
			continue
		}
		lines = append(lines, view.Cut(strings.TrimRight(line, " "), width))
		if st.Next != "" {
			lines = append(lines, view.Cut(fmt.Sprintf("%*s  %s", names, "", st.Next), width))
		}
	}
	return lines
}

func (a workVerbs) workGone(c *cli.Context) error {
	h, err := a.home()
	if err != nil {
		return err
	}
	repos, err := a.repos(c.Context, h)
	if err != nil {
		a.warn("%v", err)
	}
	list, err := retire.Gone(c.Context, repos)
	if c.Bool("json") {
		return errors.Join(a.writeJSON(map[string]any{"gone": list}), err)
	}
	for _, r := range list {
		when := "-"
		if r.Time > 0 {
			when = r.Time.Time().Local().Format(time.DateOnly)
		}
		a.print("%s  %s  %s", strings.TrimPrefix(r.Ref, retire.Refs), when, words.Brief(r.Subject, 60))
		a.print("  %s", r.Command)
	}
	if len(list) == 0 && err == nil {
		a.print("nothing was retired")
	}
	return err
}

// repos returns the repositories that netsky knows, and the one here, by their git directories. The
// error is about some of them.
func (a workVerbs) repos(ctx context.Context, h home.Dir) (list []string, err error) {
	trees, err := tree.List(h)
	for _, w := range trees {
		list = append(list, w.Repo)
	}
	if db, derr := store.OpenRead(ctx, h); derr == nil {
		defer db.Close()
		rows, rerr := record.Records{DB: db}.Worktrees(ctx)
		err = errors.Join(err, rerr)
		for _, w := range rows {
			if exists(w.Repo) {
				list = append(list, w.Repo)
			}
		}
	}
	if dir, derr := os.Getwd(); derr == nil {
		if r, oerr := git.Open(ctx, dir, ""); oerr == nil {
			list = append(list, r.Common)
		}
	}
	return list, err
}

func (a workVerbs) workRetire(c *cli.Context) error {
	ids, err := agentArgsBy(c, agent.ParseAgentAddress)
	if err != nil {
		return err
	}
	w, err := a.workOf(nil)
	if err != nil {
		return err
	}
	done, err := w.Retire(c.Context, fleet.RetireRequest{Agents: ids})
	for _, r := range done {
		kept := ""
		if r.Ref != "" {
			kept = "; " + r.Ref + " keeps its last commit"
		}
		if r.Dir == "" { // on another host
			a.print("%s: its work here is ended%s", r.Agent, kept)
			continue
		}
		a.print("%s: removed %s and the branch %s%s", r.Agent, tilde(a.app, r.Dir), r.Branch, kept)
	}
	return err
}

// workOf returns the deeds of the agents' work on behalf of whoever runs the verb.
func (a workVerbs) workOf(r report) (fleet.Work, error) {
	f, err := a.fleetFor(ui{a.app, r})
	return fleet.Work{Fleet: f}, err
}

// A progress prints what commands of the owner's print, if somebody may be looking, and what lands.
type progress struct {
	a      *app
	landed func(land.Outcome)
}

func (p progress) Step(s fleet.Step) {
	if _, ok := view.Width(p.a.err); ok && s.Output != "" {
		fmt.Fprintln(p.a.err, envelope.Plain(s.Output))
	}
	if s.Landed != nil {
		p.landed(*s.Landed)
	}
}

func (progress) Above(do func()) { do() }
