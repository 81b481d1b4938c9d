package cli

import (
	"bufio"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"netsky/agent"
	"netsky/cli/view"
	"netsky/config"
	"netsky/home"
	"netsky/spawn"
)

// A consent is an answer to write to netsky.toml.
type consent struct {
	w config.Warrant
	m config.Mode
}

// consents makes sure that the owner has said what the planned agents may do: in
// netsky.toml, now on the terminal, or by --yes. An agent can't. The answers given
// now hold for this process; recordConsents saves them.
func (a *app) consents(h home.Dir, plans []spawn.Plan, self agent.ID, yes bool) (list []consent, err error) {
	cfg, err := a.cfg()
	if err != nil {
		return nil, err
	}
	in := bufio.NewReader(a.in)
	for _, w := range config.Warrants() {
		needed := slices.ContainsFunc(plans, func(p spawn.Plan) bool { return p.Runtime.Name() == w.Runtime })
		if !needed || w.Given(cfg) {
			continue
		}
		if self.IsAgent() {
			return nil, usagef("no permission mode is set for %s agents, and only the owner can set one: with their next `netsky up`, or as `%s` under [%s] in %s",
				w.Name, strings.Join(w.Keys, "` and `"), w.Runtime, h.Path(home.ConfigFile))
		}
		m, err := a.consent(h, w, in, yes)
		if err != nil {
			return nil, err
		}
		w.Give(&a.config, m)
		list = append(list, consent{w, m})
	}
	return list, nil
}

func (a *app) consent(h home.Dir, w config.Warrant, in *bufio.Reader, yes bool) (config.Mode, error) {
	if yes {
		return w.Modes[0], nil
	}
	_, tty := view.Width(a.in)
	if _, out := view.Width(a.err); tty && out {
		return a.askMode(w, in)
	}
	return config.Mode{}, usagef("no permission mode is set for %s agents: set `%s` under [%s] in %s, or use --yes for full access",
		w.Name, strings.Join(w.Keys, "` and `"), w.Runtime, h.Path(home.ConfigFile))
}

func (a *app) askMode(w config.Warrant, in *bufio.Reader) (config.Mode, error) {
	fmt.Fprintf(a.err, "What may %s agents do on this machine without asking you?\n", w.Name)
	for i, m := range w.Modes {
		fmt.Fprintf(a.err, "  %d  %s\n", i+1, m.Words)
		if m.More != "" {
			fmt.Fprintf(a.err, "     (%s)\n", strings.ReplaceAll(m.More, "\n", "\n      "))
		}
	}
	fmt.Fprintf(a.err, "1, 2 or 3 (anything else starts nothing): ")
	line, err := in.ReadString('\n')
	if err != nil {
		return config.Mode{}, usagef("no permission mode was chosen; nothing was started")
	}
	if n, err := strconv.Atoi(strings.TrimSpace(line)); err == nil && n >= 1 && n <= len(w.Modes) {
		return w.Modes[n-1], nil
	}
	return config.Mode{}, usagef("no permission mode was chosen; nothing was started")
}

// recordConsents saves the answers to netsky.toml.
func (a *app) recordConsents(h home.Dir, list []consent) error {
	for _, c := range list {
		if err := c.w.Write(h, c.m); err != nil {
			return err
		}
		a.warn("%s agents may: %s (written to %s)", c.w.Name, c.m.Words, tilde(a, h.Path(home.ConfigFile)))
	}
	return nil
}
