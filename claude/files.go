package claude

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"netsky/home"
)

// An object holds the values of a JSON object as written: whatever netsky does not need
// passes through unread.
type object = map[string]json.RawMessage

// maxSettings limits the size of a person's files, in bytes. ~/.claude.json grows with the
// projects that Claude Code has seen.
const maxSettings = 64 << 20

// readObject reads a file that holds one JSON object. Errors name the file and the
// position.
func readObject(file string) (object, error) {
	data, err := home.ReadOwn(file, maxSettings)
	if err != nil {
		return nil, err
	}
	return parseObject(file, data)
}

func parseObject(file string, data []byte) (object, error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if len(bytes.TrimSpace(data)) == 0 {
		return object{}, nil
	}
	var o object
	err := json.Unmarshal(data, &o)
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &syntax):
		line, column := position(data, syntax.Offset)
		return nil, fmt.Errorf("%s:%d:%d: %w", file, line, column, err)
	case err != nil || o == nil:
		return nil, fmt.Errorf("%s:1:1: not a JSON object", file)
	}
	return o, nil
}

// position returns the line and column of the byte that a JSON error refers to.
func position(data []byte, offset int64) (line, column int) {
	before := data[:max(min(int(offset), len(data))-1, 0)]
	return bytes.Count(before, []byte("\n")) + 1, len(before) - bytes.LastIndexByte(before, '\n')
}

// member returns an object within an object; an empty one if it is missing.
func member(o object, name string) (object, error) {
	in := object{}
	raw, ok := o[name]
	if !ok {
		return in, nil
	}
	if err := json.Unmarshal(raw, &in); err != nil || in == nil {
		return nil, fmt.Errorf("%s: not an object", name)
	}
	return in, nil
}

// refuse reports settings that would override what was requested for the agent. Of several
// files the strictest counts, so netsky's own cannot undo that, and would not.
func (s source) refuse(mode string) error {
	file := s.file
	var permissions struct {
		Bypass string `json:"disableBypassPermissionsMode"`
		Auto   string `json:"disableAutoMode"`
	}
	var off, managed bool
	var auto string
	var plugins any
	for name, to := range map[string]any{
		"disableAllHooks": &off, "allowManagedHooksOnly": &managed, "permissions": &permissions, "disableAutoMode": &auto,
		"strictPluginOnlyCustomization": &plugins,
	} {
		json.Unmarshal(s.all[name], to) // wrong types are left to Claude Code
	}
	const disable = "disable"
	switch {
	case off:
		return fmt.Errorf("%s: disableAllHooks: netsky cannot deliver messages without hooks", file)
	case managed && s.managed:
		return fmt.Errorf("%s: allowManagedHooksOnly: netsky cannot deliver messages without hooks", file)
	case s.managed && locks(plugins, "hooks"):
		return fmt.Errorf("%s: strictPluginOnlyCustomization: netsky cannot deliver messages without hooks", file)
	case mode == modeBypass && permissions.Bypass == disable:
		// It would continue in the mode auto, and only mention it in a corner of the pane.
		return fmt.Errorf("%s: permissions.disableBypassPermissionsMode: permission mode %s is disabled by this file", file, mode)
	case mode == modeAuto && (permissions.Auto == disable || auto == disable):
		return fmt.Errorf("%s: disableAutoMode: permission mode %s is disabled by this file", file, mode)
	}
	return nil
}

// locks reports whether a value of strictPluginOnlyCustomization, true or a list, is about
// a surface.
func locks(value any, surface string) bool {
	list, _ := value.([]any)
	return value == true || slices.Contains(list, any(surface))
}
