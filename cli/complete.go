package cli

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"netsky/agent"
	"netsky/agent/home"
	"netsky/bus"
)

// completeWord is the first argument of a shell that asks what could stand in
// place of the last word. completionFlag is how the scripts of earlier versions
// asked: it stood last, behind the words before and, if that began with a dash,
// the one to complete.
const (
	completeWord   = "__complete"
	completionFlag = "--generate-bash-completion"
)

// completing answers such a question, and reports whether it was one. To ask runs
// no verb and changes nothing.
func (a *app) completing(args []string) bool {
	var words []string
	current, meanings := "", true
	switch {
	case len(args) > 1 && args[1] == completeWord:
		if words = args[2:]; len(words) > 0 {
			words, current = words[:len(words)-1], words[len(words)-1]
		}
	case len(args) > 1 && args[len(args)-1] == completionFlag:
		words, meanings = args[1:len(args)-1], false
		if n := len(words); n > 0 && strings.HasPrefix(words[n-1], "-") {
			words, current = words[:n-1], words[n-1]
		}
	default:
		return false
	}
	found := make(chan []candidate, 1)
	go func() { found <- a.candidates(words, current) }()
	select {
	case list := <-found:
		for _, c := range list {
			line := c.word
			if meanings {
				line += "\t" + c.meaning
			}
			a.print("%s", line)
		}
	case <-time.After(time.Second): // a shell that waits is worse than one that knows nothing
	}
	return true
}

// A candidate is a word that could come next.
type candidate struct{ word, meaning string }

func (a *app) candidates(words []string, current string) (list []candidate) {
	// bash takes --type=demo for three words.
	words = slices.DeleteFunc(slices.Clone(words), func(w string) bool { return w == "=" })
	option := ""
	if current == "=" {
		current = ""
	} else if name, value, ok := strings.Cut(current, "="); ok && optionLike(name) {
		option, current = name+"=", value
		words = append(words, name)
	}
	table := a.cli()
	l := parseLine(table, words)
	switch {
	case l.open != "":
		list = a.valuesOf(l.verbs, strings.TrimLeft(l.open, "-"))
	case option != "", l.literal:
	case strings.HasPrefix(current, "-"):
		list = optionsOf(table, l)
	default:
		list = a.wordsOf(table, l)
	}
	list = slices.DeleteFunc(list, func(c candidate) bool {
		return !strings.HasPrefix(c.word, current) || strings.ContainsAny(c.word, " \t\n'\"\\$`;&|<>()*?[]{}~#!")
	})
	for i, c := range list {
		list[i] = candidate{option + c.word, brief(strings.ReplaceAll(c.meaning, "\t", " "), 60)}
	}
	return list
}

// optionsOf are the options that the verb has and the line has not.
func optionsOf(table *cli.App, l commandLine) (list []candidate) {
	flags := slices.Clone(table.Flags)
	if l.command != nil {
		flags = slices.Clone(l.command.Flags)
	}
	for _, f := range append(flags, cli.HelpFlag) {
		v, ok := f.(cli.DocGenerationFlag)
		if seen, visible := f.(cli.VisibleFlag); !ok || visible && !seen.IsVisible() || slices.ContainsFunc(l.options, func(o string) bool { return optionIn([]cli.Flag{f}, o) }) {
			continue
		}
		for _, name := range f.Names() {
			if len(name) > 1 || len(f.Names()) == 1 {
				list = append(list, candidate{dashes(name), strings.ReplaceAll(v.GetUsage(), "`", "")})
			}
		}
	}
	return list
}

// wordsOf are the verbs or arguments that could come next.
func (a *app) wordsOf(table *cli.App, l commandLine) (list []candidate) {
	commands := table.Commands
	if l.command != nil {
		commands = l.command.Subcommands
	}
	verb, n := strings.Join(l.verbs, " "), len(l.words)
	if verb == "help" {
		for _, word := range l.words {
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
	agents := func(more ...agent.ID) []candidate { return a.agentCandidates(more...) }
	switch verb {
	case "up":
		if _, ok := numberOf(l.words); !ok {
			return agents(agent.Root, agent.Infinity)
		}
	case "down", "forget":
		return agents()
	case "agent":
		if n == 0 {
			return agents(agent.Root, agent.Infinity)
		}
	case "attach", "peek", "ask", "interrupt", "prompt", "codex":
		if n == 0 {
			return agents()
		}
	case "show":
		if n == 0 {
			return append(agents(), a.idCandidates()...)
		}
	case "reply":
		if n == 0 {
			return a.idCandidates()
		}
	case "approve":
		if n == 0 {
			return a.codeCandidates()
		}
	case "channel send", "channel drain", "channel ls", "channel poison ls":
		if n == 0 {
			return agents(agent.Owner)
		}
	case "channel poison show", "channel poison retry", "channel poison drop":
		switch n {
		case 0:
			return agents(agent.Owner)
		case 1:
			return a.poisonCandidates(l.words[0])
		}
	case "completion":
		if n == 0 {
			return plain("bash", "zsh", "fish")
		}
	}
	return list
}

func numberOf(words []string) (string, bool) {
	i := slices.IndexFunc(words, func(w string) bool { return w != "" && strings.Trim(w, "0123456789") == "" })
	if i < 0 {
		return "", false
	}
	return words[i], true
}

// valuesOf are the values that an option could have.
func (a *app) valuesOf(verbs []string, option string) []candidate {
	switch option {
	case "type":
		list := plain("claude", "codex", "demo")
		if cfg, err := a.cfg(); err == nil {
			list = append(list, plain(slices.Sorted(maps.Keys(cfg.Runtime))...)...)
		}
		return list
	case "kind":
		return plain("brief", "reply", "error", "handoff")
	case "wait":
		if slices.Contains(verbs, "send") {
			return plain("delivered", "answered")
		}
	case "in-reply-to":
		return a.idCandidates()
	case "actor":
		return a.agentCandidates(agent.Owner)
	}
	return nil
}

func plain(words ...string) (list []candidate) {
	for _, w := range words {
		list = append(list, candidate{word: w})
	}
	return list
}

func verbCandidates(commands []*cli.Command) (list []candidate) {
	for _, c := range commands {
		if !c.Hidden {
			list = append(list, candidate{c.Name, c.Usage})
		}
	}
	return list
}

// looking is the bus for looking only: it needs no configuration.
func (a *app) looking() (home.Dir, *bus.Bus, error) {
	h, err := a.home()
	if err != nil {
		return h, nil, err
	}
	return h, bus.New(h, bus.Options{MaxBytes: 1 << 20}), nil
}

// agentCandidates are the agents that have a mailbox, and more.
func (a *app) agentCandidates(more ...agent.ID) (list []candidate) {
	h, b, err := a.looking()
	if err != nil {
		return nil
	}
	ids, _ := b.Mailboxes() // none are none
	ids = slices.DeleteFunc(ids, func(id agent.ID) bool { return !id.IsAgent() })
	for _, id := range more {
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, agent.Compare)
	for _, id := range ids {
		la, _ := h.LoadLaunch(id) // none is fine: it was never up
		list = append(list, candidate{string(id), cmp.Or(la.Runtime, agent.RoleWord(id.Role()))})
	}
	return list
}

// recent is how many messages are offered.
const recent = 20

// idCandidates are the owner's newest messages, the newest first.
func (a *app) idCandidates() (list []candidate) {
	_, b, err := a.looking()
	if err != nil {
		return nil
	}
	var all []bus.Entry
	for _, p := range bus.Arrived() {
		some, _ := b.List(agent.Owner, p, recent) // none are none
		all = append(all, some...)
	}
	slices.SortStableFunc(all, func(x, y bus.Entry) int { return y.Time.Compare(x.Time) })
	seen := make(map[string]bool)
	for _, e := range all {
		if e.Err == nil && !e.Envelope.Kind.Control() && !seen[e.Envelope.ID] && len(list) < recent {
			seen[e.Envelope.ID] = true
			list = append(list, candidate{e.Envelope.ID, fmt.Sprintf("%s: %s", e.Envelope.From, firstLine(e.Envelope.Text))})
		}
	}
	return list
}

// codeCandidates are what can be approved.
func (a *app) codeCandidates() (list []candidate) {
	h, _, err := a.looking()
	if err != nil {
		return nil
	}
	asked, _ := h.Approvals() // none are none
	for _, p := range asked {
		list = append(list, candidate{p.Code, fmt.Sprintf("%s: %s: %s", p.Agent, p.Tool, firstLine(p.Text))})
	}
	for _, c := range a.agentCandidates() { // those that waited at a dialog when last heard of
		id := agent.ID(c.word)
		r, err := h.LoadReport(id)
		if err == nil && r.State == agent.Waiting && !slices.ContainsFunc(asked, func(p agent.Approval) bool { return p.Agent == id }) {
			list = append(list, candidate{c.word, r.Detail})
		}
	}
	return list
}

func (a *app) poisonCandidates(word string) (list []candidate) {
	_, b, err := a.looking()
	id, perr := agent.ParseArg(word)
	if err != nil || perr != nil {
		return nil
	}
	some, _ := b.List(id, bus.Poison, recent) // none are none
	for _, e := range slices.Backward(some) {
		list = append(list, candidate{e.Name, firstLine(e.Why)})
	}
	return list
}
