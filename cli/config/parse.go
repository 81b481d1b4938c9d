package config

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"

	"netsky/agent"
	"netsky/cli/spell"
)

// Parse reads netsky.toml. Its error names the line: of a syntax error, an unknown
// key, or a value of the wrong type.
func Parse(data []byte) (Config, error) {
	c := Default()
	problems, err := inspect(data)
	if err != nil {
		return c, err
	}
	if len(problems) > 0 {
		return c, problems[0].err(data)
	}
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
			return c, fmt.Errorf("agents: %s stands there twice, as %q and as %q", id, min(name, other), max(name, other))
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

// Bearing is what of a broken netsky.toml bears on every verb: which tmux server
// is asked, and what a message may be. The rest has its defaults. The error says
// that these can't be known: the file is no TOML, or what is wrong may be theirs.
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
	wrong string // what is wrong with its value; "" if the key is unknown
}

func (p problem) err(data []byte) error {
	text := p.wrong
	if text == "" {
		text = fmt.Sprintf("unknown key %q%s", strings.Join(p.key, "."), meant(p.key))
	}
	return fmt.Errorf("line %d: %s", 1+bytes.Count(data[:p.at], []byte("\n")), text)
}

// bears reports whether the key is in a table that bears on every verb, or may be a
// slip for a key of theirs.
func (p problem) bears() bool {
	if knows([]string{"tmux", "bus"}, p.key[0]) {
		return true
	}
	return p.wrong == "" && spell.Nearest(p.key[len(p.key)-1], []string{"tmux", "bus", "socket", "max_bytes", "keep"}) != ""
}

// syntax is an error of the library's, with its line first.
func syntax(err error) error {
	var bad *toml.DecodeError
	if !errors.As(err, &bad) {
		return err
	}
	line, _ := bad.Position()
	return fmt.Errorf("line %d: %s", line, strings.TrimPrefix(bad.Error(), "toml: "))
}

// inspect reads the file once and lists what is wrong in it, in its order. The error
// is a syntax error.
func inspect(data []byte) (list []problem, err error) {
	var any map[string]any
	if err := toml.Unmarshal(data, &any); err != nil { // finds what the parser below lets pass
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

// key is the whole key of a table or a value that stands under a table. Its first
// unknown word is a problem.
func (i *inspector) key(table []string, e *unstable.Node, list *[]problem) []string {
	key := slices.Clone(table)
	for it := e.Key(); it.Next(); {
		key = append(key, string(it.Node().Data))
		at := int(it.Node().Raw.Offset)
		switch t := keyType(key); {
		case t == nil:
			*list = append(*list, problem{key: slices.Clone(key), at: at})
		case !isTable(t) && (e.Kind != unstable.KeyValue || !it.IsLast()):
			*list = append(*list, problem{key: slices.Clone(key), at: at, wrong: strings.Join(key, ".") + ": table, " + wants(t)})
		}
	}
	return key
}

// value checks one key with its value, and what is in an inline table.
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
	if wrong := mismatch(strings.Join(key, "."), t, v); wrong != "" {
		first := e.Key()
		first.Next()
		*list = append(*list, problem{key: key, at: int(first.Node().Raw.Offset), wrong: wrong})
	}
}

// mismatch says what is wrong with a value, in words of the file.
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
		return key + ": " + has + " does not belong there"
	}
	return key + ": " + has + ", " + wants(t)
}

// wants says what a key's value looks like.
func wants(t reflect.Type) string {
	switch {
	case t == reflect.TypeFor[Duration]():
		return `wants a time span, such as "90s" or "24h"`
	case t.Kind() == reflect.Slice:
		return `wants a list of texts, as ["a", "b"]`
	case t.Kind() == reflect.String:
		return "wants a text in quotes"
	case t.Kind() == reflect.Bool:
		return "wants true or false"
	}
	return "wants a whole number"
}
