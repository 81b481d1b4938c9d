package claude

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"netsky/agent/home"
)

// An object is the values of a JSON object as they were written: what a person
// has written that is none of our business passes through unread.
type object = map[string]json.RawMessage

// maxSettings is the largest file of a person's that is read, in bytes.
// ~/.claude.json grows with the projects that Claude Code has seen.
const maxSettings = 64 << 20

// readObject reads a file that holds one JSON object. What is wrong with it is
// told with its name and the place.
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

// position is the place of the byte that a JSON error complains of.
func position(data []byte, offset int64) (line, column int) {
	before := data[:max(min(int(offset), len(data))-1, 0)]
	return bytes.Count(before, []byte("\n")) + 1, len(before) - bytes.LastIndexByte(before, '\n')
}

// member is an object within an object; an empty one if it is missing.
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

// refuse reports what in a settings file would make an agent another than the
// one that was asked for. Of several files the strictest counts, so ours cannot
// take it back, and would not.
func refuse(file string, all object, mode string) error {
	var permissions struct {
		Bypass string `json:"disableBypassPermissionsMode"`
		Auto   string `json:"disableAutoMode"`
	}
	var off, managed bool
	var auto string
	for name, to := range map[string]any{
		"disableAllHooks": &off, "allowManagedHooksOnly": &managed, "permissions": &permissions, "disableAutoMode": &auto,
	} {
		json.Unmarshal(all[name], to) // what is of another type is Claude Code's to complain of
	}
	const disable = "disable"
	switch {
	case off:
		return fmt.Errorf("%s: disableAllHooks: without hooks nobody learns that a message has come", file)
	case managed && file == managedSettings:
		return fmt.Errorf("%s: allowManagedHooksOnly: without hooks nobody learns that a message has come", file)
	case mode == modeBypass && permissions.Bypass == disable:
		// It would go on in the mode auto, and say so in a corner of the pane.
		return fmt.Errorf("%s: permissions.disableBypassPermissionsMode: the permission mode %s is not to be had", file, mode)
	case mode == modeAuto && (permissions.Auto == disable || auto == disable):
		return fmt.Errorf("%s: disableAutoMode: the permission mode %s is not to be had", file, mode)
	}
	return nil
}
