package config

import (
	"slices"

	"github.com/pelletier/go-toml/v2"

	"netsky/cli/spell"
	"netsky/home"
)

// A Harm is how much of netsky.toml a mistake makes unknown.
type Harm int

const (
	// Ignored are unknown keys that can't be about how an agent runs. The rest counts.
	Ignored Harm = iota + 1
	// Parts leaves [tmux], [bus], and the tables that the mistake can't concern.
	Parts
	// Whole leaves nothing.
	Whole
)

// Mistake returns what is wrong in the home's netsky.toml now, and what that prevents; ""
// if nothing is.
func Mistake(h home.Dir) (text, then string) {
	_, harm, err := Load(h)
	switch {
	case err == nil:
		return "", ""
	case harm == Ignored:
		return err.Error(), "the key is ignored, and `netsky up` and `netsky agent` start nothing"
	}
	return err.Error(), "nothing is started, and no agent that has died is started again"
}

// running are the tables that decide how an agent runs.
var running = []string{"agents", "claude", "codex", "runtime", "tmux", "bus"}

// idle reports whether the key is unknown, and can't be a misspelled or misplaced one about
// how an agent runs: another default would then give an agent other rights.
func (p problem) idle() bool {
	if p.wrong != "" || len(p.key) < 2 || !knows(keysOf(nil), p.key[0]) || knows(running, p.key[0]) || p.bears() {
		return false
	}
	return !slices.ContainsFunc(running, p.may)
}

// may reports whether the mistake may concern the table: it is in it, or the key may be one
// of its keys.
func (p problem) may(table string) bool {
	if knows([]string{table}, p.key[0]) {
		return true
	}
	if p.wrong != "" {
		return false
	}
	if !knows(keysOf(nil), p.key[0]) {
		return true // a table that is none may be any
	}
	names := append(keysOf([]string{table}), table)
	switch table {
	case "agents": // [agents.1]
		names = append(names, keysOf([]string{"agents", "1"})...)
	case "runtime", "host": // [runtime.x]
		names = append(names, keysOf([]string{table, "x"})...)
	}
	return slices.ContainsFunc(p.strange(), func(word string) bool { return spell.Nearest(word, names) != "" })
}

// strange returns the words of the key that are not a slip of a key of its own table.
func (p problem) strange() (words []string) {
	for i := 1; i < len(p.key); i++ {
		if own := keysOf(p.key[:i]); !knows(own, p.key[i]) && spell.Nearest(p.key[i], own) == "" {
			words = append(words, p.key[i])
		}
	}
	return words
}

// without takes back what the mistakes may concern: what spends, removes or serves by
// default is then off, as the owner may have written that.
func (c *Config) without(doubt func(table string) bool) {
	if doubt("watchdog") {
		c.Watchdog.Wakes = 0
	}
	if doubt("records") || doubt("bus") {
		c.Records.Keep.Duration = 0 // nothing is removed
	}
	if doubt("dashboard") {
		c.Dashboard = dashboardConfig{}
	}
	if doubt("work") {
		c.Work = Default().Work // no command of the owner's is run, and nobody else lands
	}
	if doubt("self") {
		c.Self = selfConfig{} // nothing is looked for
	}
	if doubt("link") {
		c.Link = linkConfig{} // nothing is done for other hosts
	}
	if doubt("host") {
		c.Host = nil // nothing is run on another machine than the one that is meant
	}
	if doubt("price") || doubt("budget") {
		c.Price, c.Budget, c.Unbudgeted = nil, budgetConfig{}, true // what was known before holds
	}
	if doubt("imessage") || doubt("telegram") || doubt("owner") {
		c.IMessage.Enabled, c.Telegram.Enabled = false, false
	}
}

func all(string) bool { return true }

// salvage returns what can be read of a broken file beside [tmux] and [bus].
func salvage(data []byte, c Config) Config {
	known := c
	problems, err := inspect(data)
	doubt := func(table string) bool {
		return err != nil || slices.ContainsFunc(problems, func(p problem) bool { return p.may(table) })
	}
	failed := false
	for table, part := range map[string]any{
		"watchdog":  &struct{ Watchdog *watchdogConfig }{&c.Watchdog},
		"escalate":  &struct{ Escalate *escalateConfig }{&c.Escalate},
		"records":   &struct{ Records *recordsConfig }{&c.Records},
		"dashboard": &struct{ Dashboard *dashboardConfig }{&c.Dashboard},
		"owner":     &struct{ Owner *ownerConfig }{&c.Owner},
		"imessage": &struct {
			IMessage *imessageConfig `toml:"imessage"`
		}{&c.IMessage},
		"telegram": &struct{ Telegram *telegramConfig }{&c.Telegram},
		"work":     &struct{ Work *workConfig }{&c.Work},
		"self":     &struct{ Self *selfConfig }{&c.Self},
		"link":     &struct{ Link *linkConfig }{&c.Link},
		"host":     &struct{ Host *map[string]hostConfig }{&c.Host},
		"price":    &struct{ Price *map[string]priceConfig }{&c.Price},
		"budget":   &struct{ Budget *budgetConfig }{&c.Budget},
		"runtime":  &struct{ Runtime *map[string]runtimeConfig }{&c.Runtime},
	} {
		if !doubt(table) && toml.Unmarshal(data, part) != nil {
			failed = true
		}
	}
	if failed || c.check() != nil {
		c, doubt = known, all
	}
	c.without(doubt)
	return c
}
