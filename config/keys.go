package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"netsky/agent"
	"netsky/cli/spell"
)

// keyType returns the type of a key's value, nil if the key is unknown. Case is ignored.
func keyType(path []string) reflect.Type {
	t := reflect.TypeFor[Config]()
	for i, word := range path {
		switch {
		case t.Kind() == reflect.Map:
			t = t.Elem()
		case !isTable(t):
			return nil
		default:
			f, ok := fieldOf(t, word)
			_, notAgent := agent.ParseAgent(word)
			switch {
			case ok:
				t = f.Type
			case i == 1 && t == reflect.TypeFor[agentsConfig]() && notAgent == nil:
				t = reflect.TypeFor[agentConfig]()
			default:
				return nil
			}
		}
	}
	return t
}

// isTable reports whether a key of the type has keys below it.
func isTable(t reflect.Type) bool {
	return t.Kind() == reflect.Map || t.Kind() == reflect.Struct && t != reflect.TypeFor[Duration]()
}

func fieldOf(table reflect.Type, word string) (reflect.StructField, bool) {
	for f := range table.Fields() {
		if name := nameOf(f); name != "" && strings.EqualFold(name, word) {
			return f, true
		}
	}
	return reflect.StructField{}, false
}

// nameOf returns a field's name in the file, "" if it is not a key.
func nameOf(f reflect.StructField) string {
	switch name := f.Tag.Get("toml"); name {
	case "-":
		return ""
	case "":
		return strings.ToLower(f.Name)
	default:
		return name
	}
}

// keysOf returns the keys that a table may have; none if the user chooses their names.
func keysOf(path []string) (names []string) {
	t := keyType(path)
	if t == nil || t.Kind() != reflect.Struct || !isTable(t) {
		return nil
	}
	for f := range t.Fields() {
		if name := nameOf(f); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// meant returns a suggestion for an unknown key, to append to its error, or "".
func meant(key []string) string {
	last := len(key) - 1
	names := keysOf(key[:last])
	if best := spell.Nearest(key[last], names); best != "" {
		return fmt.Sprintf("; did you mean %q?", best)
	}
	for _, table := range keysOf(nil) {
		if slices.Contains(keysOf([]string{table}), key[last]) {
			return fmt.Sprintf("; %s belongs under [%s]", key[last], table)
		}
	}
	return ""
}

// knows reports whether the word is one of these keys.
func knows(names []string, word string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, word) })
}
