package config

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"

	"netsky/agent"
	"netsky/cli/spell"
)

// Parse reads netsky.toml. The error names the line of a syntax error, an unknown key or
// a value of the wrong type.
func Parse(data []byte) (Config, error) {
	c, _, err := parse(data)
	return c, err
}

func parse(data []byte) (c Config, harm Harm, err error) {
	problems, err := inspect(data)
	if err == nil {
		worse := slices.IndexFunc(problems, func(p problem) bool { return !p.idle() })
		if worse >= 0 {
			err = problems[worse].err(data)
		} else {
			c, err = decode(data)
		}
	}
	if err != nil {
		var unknown error
		if c, unknown = Bearing(data); unknown != nil {
			c = Default()
			c.without(all)
			return c, Whole, err
		}
		return salvage(data, c), Parts, err
	}
	if len(problems) > 0 {
		c.without(func(table string) bool {
			return slices.ContainsFunc(problems, func(p problem) bool { return p.may(table) })
		})
		return c, Ignored, problems[0].err(data)
	}
	return c, 0, nil
}

// decode reads a file whose keys and values are of the right types, but for unknown keys.
func decode(data []byte) (Config, error) {
	c := Default()
	if err := toml.Unmarshal(data, &c); err != nil {
		return c, syntax(err)
	}
	var tables struct{ Agents map[string]any }
	if err := toml.Unmarshal(data, &tables); err != nil {
		return c, syntax(err)
	}
	c.Agent = make(map[agent.ID]agentConfig)
	names := make(map[agent.ID]string)
	for name, table := range tables.Agents {
		id, err := agent.ParseAgent(name)
		if err != nil {
			continue // a key of [agents] itself
		}
		if other, twice := names[id]; twice {
			return c, fmt.Errorf("agents: %s is configured twice, as %q and as %q", id, min(name, other), max(name, other))
		}
		names[id] = name
		text, err := toml.Marshal(table)
		if err != nil {
			return c, err
		}
		var own agentConfig
		if err := toml.Unmarshal(text, &own); err != nil {
			return c, syntax(err)
		}
		c.Agent[id] = own
	}
	return c, c.check()
}

// Bearing returns the part of a broken netsky.toml that affects every verb: [tmux] and
// [bus]. The rest has its defaults. It fails if that part can't be known, because the
// file is not TOML or the mistake may concern one of these tables.
func Bearing(data []byte) (Config, error) {
	c := Default()
	problems, err := inspect(data)
	if err != nil {
		return c, err
	}
	for _, p := range problems {
		if p.bears() {
			return c, p.err(data)
		}
	}
	part := struct {
		Tmux *tmuxConfig
		Bus  *busConfig
	}{&c.Tmux, &c.Bus}
	if err := toml.Unmarshal(data, &part); err != nil {
		return c, syntax(err)
	}
	return c, c.checkBus()
}

// A problem is one key of the file that is wrong.
type problem struct {
	key   []string
	at    int    // where the key is, in bytes
	wrong string // about its value; "" if the key is unknown
}

func (p problem) err(data []byte) error {
	text := p.wrong
	if text == "" {
		text = fmt.Sprintf("unknown key %q%s", strings.Join(p.key, "."), meant(p.key))
	}
	return fmt.Errorf("line %d: %s", 1+bytes.Count(data[:p.at], []byte("\n")), text)
}

// bears reports whether the key is in a table that affects every verb, or may be a
// misspelled key of one.
func (p problem) bears() bool {
	if knows([]string{"tmux", "bus"}, p.key[0]) {
		return true
	}
	if p.wrong != "" || len(p.key) > 1 && !slices.Contains(p.strange(), p.key[len(p.key)-1]) {
		return false
	}
	return spell.Nearest(p.key[len(p.key)-1], []string{"tmux", "bus", "socket", "max_bytes", "keep"}) != ""
}

// syntax returns an error of the library with the line first.
func syntax(err error) error {
	var bad *toml.DecodeError
	if !errors.As(err, &bad) {
		return err
	}
	line, _ := bad.Position()
	return fmt.Errorf("line %d: %s", line, strings.TrimPrefix(bad.Error(), "toml: "))
}

// inspect returns what is wrong in the file, in its order. The error is a syntax error.
func inspect(data []byte) (list []problem, err error) {
	var any map[string]any
	if err := toml.Unmarshal(data, &any); err != nil { // finds what the parser below accepts
		return nil, syntax(err)
	}
	i := inspector{data: data}
	i.Reset(data)
	var table []string
	for i.NextExpression() {
		switch e := i.Expression(); e.Kind {
		case unstable.Table, unstable.ArrayTable:
			table = i.key(nil, e, &list)
		case unstable.KeyValue:
			i.value(table, e, &list)
		}
	}
	return list, i.Error()
}

type inspector struct {
	unstable.Parser
	data []byte
}

// key returns the full key of a table or of a value in a table. Its first unknown word
// is a problem.
func (i *inspector) key(table []string, e *unstable.Node, list *[]problem) []string {
	key := slices.Clone(table)
	for it := e.Key(); it.Next(); {
		key = append(key, string(it.Node().Data))
		at := int(it.Node().Raw.Offset)
		switch t := keyType(key); {
		case t == nil:
			*list = append(*list, problem{key: slices.Clone(key), at: at})
		case !isTable(t) && (e.Kind != unstable.KeyValue || !it.IsLast()):
			*list = append(*list, problem{key: slices.Clone(key), at: at, wrong: strings.Join(key, ".") + ": is a table, " + wants(t)})
		}
	}
	return key
}

// value checks a key and its value, also those in an inline table.
func (i *inspector) value(table []string, e *unstable.Node, list *[]problem) {
	before := len(*list)
	key := i.key(table, e, list)
	v, t := e.Value(), keyType(key)
	if v.Kind == unstable.InlineTable && (t == nil || isTable(t)) {
		for it := v.Children(); it.Next(); {
			i.value(key, it.Node(), list)
		}
		return
	}
	if t == nil || len(*list) > before {
		return
	}
	wrong := mismatch(strings.Join(key, "."), t, v)
	if wrong == "" && knows([]string{"price", "budget"}, key[0]) {
		wrong = noAmount(strings.Join(key, "."), v)
	}
	if wrong != "" {
		first := e.Key()
		first.Next()
		*list = append(*list, problem{key: key, at: int(first.Node().Raw.Offset), wrong: wrong})
	}
}

// noAmount returns what is wrong with a number of tokens or an amount of money, or "".
func noAmount(key string, v *unstable.Node) string {
	f, err := strconv.ParseFloat(strings.ReplaceAll(string(v.Data), "_", ""), 64)
	switch tokens := strings.HasSuffix(key, "_tokens"); {
	case err != nil || tokens && f >= 0 || amounts(f):
		return "" // what else may be wrong is found by check
	case tokens:
		return fmt.Sprintf("%s: %s: must be 0 or above; 0 is no limit", key, v.Data)
	}
	return fmt.Sprintf("%s: %s: must be 0 or above, and below 1,000,000,000", key, v.Data)
}

// mismatch returns what is wrong with a value, or "".
func mismatch(key string, t reflect.Type, v *unstable.Node) string {
	ok := false
	switch {
	case t == reflect.TypeFor[Duration]():
		switch v.Kind {
		case unstable.String, unstable.Integer, unstable.Float:
			if err := new(Duration).UnmarshalText(v.Data); err != nil {
				return err.Error()
			}
			ok = v.Kind == unstable.String
		}
	case t.Kind() == reflect.String:
		ok = v.Kind == unstable.String
	case t.Kind() == reflect.Bool:
		ok = v.Kind == unstable.Bool
	case t.Kind() == reflect.Int, t.Kind() == reflect.Int64:
		ok = v.Kind == unstable.Integer
	case t.Kind() == reflect.Float64:
		ok = v.Kind == unstable.Float || v.Kind == unstable.Integer
	case t.Kind() == reflect.Slice:
		ok = v.Kind == unstable.Array
		for it := v.Children(); ok && it.Next(); {
			ok = it.Node().Kind == unstable.String
		}
	}
	if ok {
		return ""
	}
	has := strings.ToLower(v.Kind.String())
	if isTable(t) {
		return key + ": must be a table, not " + has
	}
	return key + ": is " + article(has) + ", " + wants(t)
}

func article(word string) string {
	if strings.ContainsRune("aeiou", rune(word[0])) {
		return "an " + word
	}
	return "a " + word
}

// wants returns what a key's value must be.
func wants(t reflect.Type) string {
	switch {
	case t == reflect.TypeFor[Duration]():
		return `must be a duration, such as "90s" or "24h"`
	case t.Kind() == reflect.Slice:
		return `must be a list of strings, such as ["a", "b"]`
	case t.Kind() == reflect.String:
		return "must be a string in quotes"
	case t.Kind() == reflect.Bool:
		return "must be true or false"
	case t.Kind() == reflect.Float64:
		return "must be a number"
	}
	return "must be a whole number"
}
