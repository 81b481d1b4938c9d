// This file answers a shell's requests for completions. It runs no verb and
// changes nothing.

package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"netsky/agent"
	"netsky/bus"
	"netsky/cli/spell"
	"netsky/home"
	"netsky/internal/words"
	"netsky/phone/access"
	"netsky/store"
	"netsky/work/task"
)

// word is the first argument of a request to complete the last word. earlier is how the
// scripts of earlier versions asked: as the last argument, after the words before and, if
// it began with a dash, the one to complete.
const (
	word    = "__complete"
	earlier = "--generate-bash-completion"
)

// A Completer finds completions.
type Completer struct {
	Table    *cli.App
	Home     func() (home.Dir, error)
	Runtimes func() []string // the values of --type
	Hosts    func() []string
}

// Asked parses a command line that requests completions; ok is false for any other.
func Asked(args []string) (q Question, ok bool) {
	q.meanings = true
	switch {
	case len(args) > 1 && args[1] == word:
		if q.words, q.before = joinAt(args[2:]); len(q.words) > 0 {
			q.words, q.current = q.words[:len(q.words)-1], q.words[len(q.words)-1]
		}
	case len(args) > 1 && args[len(args)-1] == earlier:
		q.words, q.meanings = args[1:len(args)-1], false
		if n := len(q.words); n > 0 && strings.HasPrefix(q.words[n-1], "-") {
			q.words, q.current = q.words[:n-1], q.words[n-1]
		}
	default:
		return q, false
	}
	return q, true
}

// A Question is a request for completions.
type Question struct {
	words    []string
	current  string
	before   string // of the current word, which the shell keeps
	meanings bool   // the shell also shows descriptions
}

// Lines returns the answer, empty if it would take too long.
func (c Completer) Lines(q Question) (lines []string) {
	found := make(chan []candidate, 1)
	go func() { found <- c.candidates(q.words, q.current) }()
	select {
	case list := <-found:
		for _, one := range list {
			text := strings.TrimPrefix(one.word, q.before)
			if q.meanings {
				text += "\t" + one.meaning
			}
			lines = append(lines, text)
		}
	case <-time.After(time.Second): // no completions are better than a shell that hangs
	}
	return lines
}

// A candidate is a possible completion, with a description.
type candidate struct{ word, meaning string }

func (c Completer) candidates(line []string, current string) (list []candidate) {
	// bash splits --type=demo into three words.
	line = slices.DeleteFunc(slices.Clone(line), func(w string) bool { return w == "=" })
	option := ""
	if current == "=" {
		current = ""
	} else if name, value, ok := strings.Cut(current, "="); ok && spell.OptionLike(name) {
		option, current = name+"=", value
		line = append(line, name)
	}
	table := c.Table
	l := spell.Parse(table, line)
	switch {
	case l.Open != "":
		list = c.valuesOf(l.Verbs, strings.TrimLeft(l.Open, "-"))
	case option != "", l.Literal:
	case strings.HasPrefix(current, "-"):
		list = optionsOf(table, l)
	default:
		list = c.wordsOf(table, l)
	}
	list = slices.DeleteFunc(list, func(c candidate) bool {
		return !strings.HasPrefix(c.word, current) || strings.ContainsAny(c.word, " \t\n'\"\\$`;&|<>()*?[]{}~#!")
	})
	for i, one := range list {
		list[i] = candidate{option + one.word, words.Brief(strings.ReplaceAll(one.meaning, "\t", " "), 60)}
	}
	return list
}

// optionsOf returns the verb's options that are not on the line yet.
func optionsOf(table *cli.App, l spell.Line) (list []candidate) {
	flags := slices.Clone(table.Flags)
	if l.Command != nil {
		flags = slices.Clone(l.Command.Flags)
	}
	for _, f := range append(flags, cli.HelpFlag) {
		v, ok := f.(cli.DocGenerationFlag)
		if seen, visible := f.(cli.VisibleFlag); !ok || visible && !seen.IsVisible() || slices.ContainsFunc(l.Options, func(o string) bool { return spell.OptionIn([]cli.Flag{f}, o) }) {
			continue
		}
		for _, name := range f.Names() {
			if len(name) > 1 || len(f.Names()) == 1 {
				list = append(list, candidate{spell.Dashes(name), strings.ReplaceAll(v.GetUsage(), "`", "")})
			}
		}
	}
	return list
}

// wordsOf returns the verbs or arguments that could come next.
func (c Completer) wordsOf(table *cli.App, l spell.Line) (list []candidate) {
	commands := table.Commands
	if l.Command != nil {
		commands = l.Command.Subcommands
	}
	verb, n := strings.Join(l.Verbs, " "), len(l.Words)
	if verb == "help" {
		for _, word := range l.Words {
			i := slices.IndexFunc(commands, func(c *cli.Command) bool { return c.HasName(word) })
			if commands = table.Commands; i >= 0 {
				commands = commands[i].Subcommands
			}
		}
		if n == 0 {
			commands = table.Commands
		}
		return verbCandidates(commands)
	}
	if n == 0 {
		list = verbCandidates(commands)
	}
	agents, everywhere := c.agentCandidates, c.everywhere
	switch verb {
	case "up":
		if _, ok := spell.NumberIn(l.Words); !ok {
			return everywhere(agent.Root, agent.Infinity)
		}
	case "down", "restart", "work retire":
		return everywhere()
	case "forget":
		return agents()
	case "agent":
		if n == 0 {
			return everywhere(agent.Root, agent.Infinity)
		}
	case "cron add":
		if n == 1 {
			return agents()
		}
	case "attach", "peek", "ask", "interrupt":
		if n == 0 {
			return everywhere()
		}
	case "diff", "check", "land", "land ls", "prompt", "codex", "loop":
		if n == 0 {
			return agents()
		}
	case "work":
		if n == 0 {
			return append(list, agents()...)
		}
	case "task cancel":
		return c.taskCandidates(false)
	case "task show", "task start", "task edit", "task done", "task block":
		if n == 0 {
			return c.taskCandidates(verb == "task show")
		}
	case "note add", "note ls":
		if n == 0 {
			return append(c.taskCandidates(false), agents()...)
		}
	case "show":
		if n == 0 {
			return append(everywhere(), c.idCandidates()...)
		}
	case "reply":
		if n == 0 {
			return append(c.idCandidates(), everywhere()...)
		}
	case "approve":
		return c.codeCandidates()
	case "send", "channel send":
		if n == 0 {
			return everywhere(agent.Owner)
		}
	case "channel drain", "channel ls", "channel poison ls":
		if n == 0 {
			return agents(agent.Owner)
		}
	case "channel poison show", "channel poison retry", "channel poison drop":
		switch n {
		case 0:
			return agents(agent.Owner)
		case 1:
			return c.poisonCandidates(l.Words[0])
		}
	case "imessage access allow", "imessage access deny", "phone access allow", "phone access deny":
		if n == 0 {
			return c.handleCandidates(l.Command.Name == "allow")
		}
	case "link approve", "link reject", "link remove":
		if n == 0 {
			return c.linkCandidates(l.Command.Name == "remove")
		}
	case "hosts install":
		if n == 0 {
			return plain(c.Hosts()...)
		}
	case "completion":
		if n == 0 {
			return plain("bash", "zsh", "fish")
		}
	}
	return list
}

// valuesOf returns the values that an option could have.
func (c Completer) valuesOf(verbs []string, option string) []candidate {
	switch option {
	case "role":
		return roles()
	case "on":
		return plain(c.Hosts()...)
	case "type":
		return plain(c.Runtimes()...)
	case "kind":
		return plain("brief", "reply", "error", "handoff")
	case "wait":
		if slices.Contains(verbs, "send") {
			return plain("delivered", "answered")
		}
	case "in-reply-to":
		return c.idCandidates()
	case "by":
		return plain("agent", "task", "model", "day")
	case "needs":
		return c.taskCandidates(false)
	case "state":
		return plain(store.TaskInProgress, task.Waiting, store.TaskOpen, store.TaskBlocked, task.Claimed, task.Proved, task.Landed, task.Done, store.TaskCancelled)
	case "agent":
		return c.agentCandidates()
	case "actor":
		return c.everywhere(agent.Owner)
	}
	return nil
}

func verbCandidates(commands []*cli.Command) (list []candidate) {
	for _, c := range commands {
		if !c.Hidden {
			list = append(list, candidate{c.Name, c.Usage})
		}
	}
	return list
}

// looking returns the bus for reading only, which needs no configuration.
func (c Completer) looking() (home.Dir, *bus.Bus, error) {
	h, err := c.Home()
	if err != nil {
		return h, nil, err
	}
	return h, bus.New(h, bus.Options{MaxBytes: 1 << 20}), nil
}

// agentCandidates returns the agents that have a mailbox, and more.
func (c Completer) agentCandidates(more ...agent.ID) (list []candidate) {
	h, b, err := c.looking()
	if err != nil {
		return nil
	}
	ids, _ := b.Mailboxes() // without mailboxes: no candidates
	ids = slices.DeleteFunc(ids, func(id agent.ID) bool { return !id.IsAgent() })
	for _, id := range more {
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, agent.Compare)
	for _, id := range ids {
		la, _ := h.LoadLaunch(id) // without a launch it was never up
		list = append(list, candidate{string(id), cmp.Or(la.Runtime, agent.RoleWord(id.Role()))})
	}
	return list
}

// recent is how many messages are offered.
const recent = 20

// idCandidates returns the owner's newest messages, newest first.
func (c Completer) idCandidates() (list []candidate) {
	_, b, err := c.looking()
	if err != nil {
		return nil
	}
	var all []bus.Entry
	for _, p := range bus.Arrived() {
		some, _ := b.List(agent.Owner, p, recent) // without mailboxes: no candidates
		all = append(all, some...)
	}
	slices.SortStableFunc(all, func(x, y bus.Entry) int { return y.Time.Compare(x.Time) })
	seen := make(map[string]bool)
	for _, e := range all {
		if e.Err == nil && !e.Envelope.Kind.Control() && !seen[e.Envelope.ID] && len(list) < recent {
			seen[e.Envelope.ID] = true
			list = append(list, candidate{e.Envelope.ID, fmt.Sprintf("%s: %s", e.Envelope.From, words.FirstLine(e.Envelope.Text))})
		}
	}
	return list
}

// taskCandidates returns the newest tasks, all or those that have not been accepted.
func (c Completer) taskCandidates(all bool) (list []candidate) {
	h, err := c.Home()
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	db, err := store.OpenRead(ctx, h)
	if err != nil {
		return nil
	}
	defer db.Close()
	tasks, _ := db.Tasks(ctx, store.TaskFilter{Page: store.Page{Limit: 10 * recent}}) // without records: no candidates
	for _, k := range tasks.Items {
		if word := k.Word(); (all || word != store.TaskDone && word != store.TaskCancelled) && len(list) < recent {
			list = append(list, candidate{k.ID, strings.ReplaceAll(word, "_", " ") + ": " + k.Title})
		}
	}
	return list
}

// handleCandidates returns the handles that are denied, or those that are allowed. Those of
// the configuration are not read.
func (c Completer) handleCandidates(denied bool) (list []candidate) {
	h, err := c.Home()
	if err != nil {
		return nil
	}
	l, _ := access.Load(h, nil) // one that can't be read: no candidates
	for _, e := range l.Entries() {
		if e.Denied == denied {
			list = append(list, candidate{word: e.Handle})
		}
	}
	return list
}

func (c Completer) poisonCandidates(word string) (list []candidate) {
	_, b, err := c.looking()
	id, perr := agent.ParseArg(word)
	if err != nil || perr != nil {
		return nil
	}
	some, _ := b.List(id, bus.Poison, recent) // without mailboxes: no candidates
	for _, e := range slices.Backward(some) {
		list = append(list, candidate{e.Name, words.FirstLine(e.Why)})
	}
	return list
}
