package codex

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// overrides is a thread's configuration for a whole server, as "key=value" in
// TOML: a TUI that comes first opens the thread without what we would say.
func overrides(config map[string]any) (list []string) {
	for _, key := range slices.Sorted(maps.Keys(config)) {
		list = append(list, key+"="+tomlValue(config[key]))
	}
	return list
}

// tomlValue writes a value of JSON's kinds in TOML. Codex's configuration knows
// no null; one is left out.
func tomlValue(v any) string {
	switch v := v.(type) {
	case map[string]any:
		var fields []string
		for _, k := range slices.Sorted(maps.Keys(v)) {
			if v[k] != nil {
				fields = append(fields, tomlValue(k)+"="+tomlValue(v[k]))
			}
		}
		return "{" + strings.Join(fields, ",") + "}"
	case map[string]string:
		deep := make(map[string]any, len(v))
		for k, s := range v {
			deep[k] = s
		}
		return tomlValue(deep)
	case []any:
		fields := make([]string, len(v))
		for i := range v {
			fields[i] = tomlValue(v[i])
		}
		return "[" + strings.Join(fields, ",") + "]"
	case []string:
		fields := make([]string, len(v))
		for i := range v {
			fields[i] = tomlValue(v[i])
		}
		return "[" + strings.Join(fields, ",") + "]"
	case string:
		var b strings.Builder
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		e.Encode(v) // a string can be encoded; TOML reads it as JSON does
		return strings.ReplaceAll(strings.TrimRight(b.String(), "\n"), "\x7f", `\u007f`)
	}
	return fmt.Sprint(v) // a number or a boolean
}
