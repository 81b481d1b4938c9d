package cli

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"netsky/agent"
)

// tableKeys are the keys that a table of netsky.toml may have, by its path; nil
// if there is no such table, or if its keys are names of the user's.
func tableKeys(path ...string) []string {
	of := func(t reflect.Type) (names []string) {
		for _, f := range reflect.VisibleFields(t) {
			if name := f.Tag.Get("toml"); name != "" && name != "-" {
				names = append(names, name)
			}
		}
		return names
	}
	switch {
	case len(path) == 0:
		names := []string{}
		for _, f := range reflect.VisibleFields(reflect.TypeFor[config]()) {
			if f.Tag.Get("toml") != "-" {
				names = append(names, strings.ToLower(f.Name))
			}
		}
		return names
	case len(path) == 1:
		for _, f := range reflect.VisibleFields(reflect.TypeFor[config]()) {
			if strings.EqualFold(f.Name, path[0]) && f.Type.Kind() == reflect.Struct {
				return of(f.Type)
			}
		}
	case len(path) == 2 && strings.EqualFold(path[0], "agents"):
		if _, err := agent.ParseAgent(path[1]); err == nil {
			return of(reflect.TypeFor[agentConfig]())
		}
	case len(path) == 2 && strings.EqualFold(path[0], "runtime"):
		return of(reflect.TypeFor[runtimeConfig]())
	}
	return nil
}

// meant says which key an unknown one was probably meant to be, and is empty if
// nobody can tell.
func meant(key []string) string {
	for i, word := range key {
		names := tableKeys(key[:i]...)
		if knows(names, word) || len(key) > i+1 && tableKeys(key[:i+1]...) != nil {
			continue
		}
		if best := nearest(word, names); best != "" {
			return fmt.Sprintf("; did you mean %q?", best)
		}
		if i == len(key)-1 {
			for _, table := range tableKeys() {
				if slices.Contains(tableKeys(table), word) {
					return fmt.Sprintf("; %s belongs under [%s]", word, table)
				}
			}
		}
		break
	}
	return ""
}

// bearing is what of a broken netsky.toml bears on every verb: which tmux server
// is asked, and what a message may be. The rest has its defaults. The error says
// that these can't be known: the file is no TOML, or what is wrong may be theirs.
func bearing(data []byte) (config, error) {
	c := defaults()
	part := struct {
		Tmux *tmuxConfig
		Bus  *busConfig
	}{&c.Tmux, &c.Bus}
	if err := toml.Unmarshal(data, &part); err != nil {
		return c, place(err)
	}
	var all map[string]any
	if err := toml.Unmarshal(data, &all); err != nil {
		return c, place(err)
	}
	if key := mistaken(all, nil); key != nil {
		return c, fmt.Errorf("unknown key %q%s", strings.Join(key, "."), meant(key))
	}
	return c, c.checkBus()
}

// mistaken finds an unknown key that may be a slip for one that bears on every
// verb: one in its tables, or one that is nearly called as they are.
func mistaken(table map[string]any, path []string) []string {
	names := tableKeys(path...)
	for word, value := range table {
		key := append(slices.Clip(path), word)
		sub, isTable := value.(map[string]any)
		if !knows(names, word) && !(isTable && tableKeys(key...) != nil) {
			if len(path) > 0 && knows([]string{"tmux", "bus"}, path[0]) || nearest(word, []string{"tmux", "bus", "socket", "max_bytes", "keep"}) != "" {
				return key
			}
		}
		if isTable {
			if found := mistaken(sub, key); found != nil {
				return found
			}
		}
	}
	return nil
}

// knows reports whether the word is one of these keys, in whatever case, as the
// file is read.
func knows(names []string, word string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, word) })
}
