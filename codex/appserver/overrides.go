package appserver

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Overrides returns a thread's configuration for a whole server, as "key=value" in
// TOML: a TUI that is first opens the thread without the thread's own configuration.
func Overrides(config map[string]any) (list []string) {
	for _, key := range slices.Sorted(maps.Keys(config)) {
		list = append(list, key+"="+tomlValue(config[key]))
	}
	return list
}

// tomlValue writes a JSON value in TOML. Codex's configuration has no null; nulls are
// left out.
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

// Trust returns configuration for a server whose threads may write in dir. Codex itself
// trusts such a repository and writes that into the person's config.toml; configured in
// advance, and only for this server, it writes nothing.
func Trust(dir, sandbox string) []string {
	if sandbox != "danger-full-access" && sandbox != "workspace-write" {
		return nil
	}
	root := dir
	for d := dir; ; {
		if _, err := os.Stat(filepath.Join(d, ".git")); err == nil {
			root = d
			break
		}
		up := filepath.Dir(d)
		if up == d {
			break
		}
		d = up
	}
	key, err := json.Marshal(root) // which TOML reads as the same string
	if err != nil {
		return nil
	}
	return []string{"projects={" + string(key) + `={trust_level="trusted"}}`}
}
