package claude

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// A member is one value of a JSON object, as it was written. Whatever a person
// has written that is none of our business passes through unread.
type object = map[string]json.RawMessage

// maxSettings is the largest file of a person's that is read, in bytes.
// ~/.claude.json grows with the projects that Claude Code has seen.
const maxSettings = 64 << 20

// readObject reads a file that holds one JSON object. What is wrong with it is
// told with its name and the place.
func readObject(file string) (object, error) {
	f, err := os.OpenFile(file, os.O_RDONLY|unix.O_NONBLOCK, 0) // which no FIFO holds up
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(err, fmt.Errorf("%s: not a regular file", file))
	}
	data, err := io.ReadAll(io.LimitReader(f, maxSettings+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxSettings {
		return nil, fmt.Errorf("%s: larger than %d bytes", file, maxSettings)
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

// A hookCommand is one command of a settings file's hooks.
type hookCommand struct {
	Type    string `json:"type"`
	Command string `json:"command"`
	Timeout int    `json:"timeout"` // in seconds
}

// A hookGroup is the commands of one event, for all tools.
type hookGroup struct {
	Hooks []hookCommand `json:"hooks"`
}

// An event is one at which Claude Code runs us, and since which release it knows
// the name: one that it doesn't know makes it ask what to do with the file.
type event struct {
	name    string
	since   Version
	timeout int
}

// A hook of ours takes milliseconds. If it hangs, it may hold up a turn for this
// long, in seconds; Claude Code itself would allow it a minute and more.
const hookTimeout = 10

// An owner may sleep over a question. The dialog in the pane is there as well,
// and either ends the other.
const permissionTimeout = 24 * 60 * 60

var events = []event{
	{"SessionStart", Version{}, hookTimeout},
	{"UserPromptSubmit", Version{}, hookTimeout},
	{"PreToolUse", Version{}, hookTimeout},
	{"PostToolUse", Version{}, hookTimeout},
	{"PostToolUseFailure", Version{2, 0, 56}, hookTimeout},
	{"PermissionRequest", Version{2, 0, 45}, permissionTimeout},
	{"Notification", Version{}, hookTimeout},
	{"Stop", Version{}, hookTimeout},
	{"StopFailure", Version{2, 1, 78}, hookTimeout},
	{"SessionEnd", Version{1, 0, 85}, hookTimeout},
}

// Permission rules that hold for every agent, whatever its role and mode. What
// the bus' server offers a role is its own business.
var (
	allowed = []string{"mcp__agent__*"}
	// Nobody looks at the pane: a question there would wait for ever. An agent
	// asks by a message.
	denied = []string{
		"AskUserQuestion",
		// They speak to other Claude Codes of this machine past the bus: no
		// record, no brake, and no way to tell who said what.
		"SendMessage", "ListAgents",
	}
	// To begin to plan and to be done with it are questions to a person. Who has
	// chosen the mode that only plans wants the second, and its permission can be
	// asked of the owner like any other.
	deniedUnlessPlan = []string{"EnterPlanMode", "ExitPlanMode"}
)

// settings are what an agent is started with: the person's, and ours over them.
// Hooks and rules are added to those that are there.
func (r *Runtime) settings(o Options, v Version) ([]byte, error) {
	all := object{}
	if o.Settings != "" {
		var err error
		if all, err = readObject(o.Settings); err != nil {
			return nil, settingsError(err)
		}
	}
	if err := hooksOn(o.Settings, all); err != nil {
		return nil, err
	}
	out, err := mergeSettings(all, r.Binary, o.Mode, v)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.Settings, err)
	}
	return out, nil
}

func settingsError(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("settings: %w", err)
	}
	return err
}

func mergeSettings(all object, binary, mode string, v Version) ([]byte, error) {
	hooks, err := member(all, "hooks")
	if err != nil {
		return nil, err
	}
	for _, e := range events {
		if v.Before(e.since) {
			continue
		}
		ours := hookGroup{[]hookCommand{{"command", shellWord(binary) + " hook " + e.name, e.timeout}}}
		if err := appendTo(hooks, "hooks.", e.name, ours); err != nil {
			return nil, err
		}
	}
	permissions, err := member(all, "permissions")
	if err != nil {
		return nil, err
	}
	if err := addRules(permissions, "allow", allowed); err != nil {
		return nil, err
	}
	if err := addRules(permissions, "deny", deniedIn(mode)); err != nil {
		return nil, err
	}
	set := map[string]any{
		"hooks": hooks, "permissions": permissions,
		// Else Claude Code holds what we send to it back and asks in the pane.
		"crossSessionInbound": "accept",
	}
	switch mode { // their owner's consent is on record: it chose the mode
	case modeBypass:
		set["skipDangerousModePermissionPrompt"] = true
	case modeAuto:
		set["skipAutoPermissionPrompt"] = true
	}
	for name, value := range set {
		if all[name], err = json.Marshal(value); err != nil {
			return nil, err
		}
	}
	out, err := json.MarshalIndent(all, "", "  ")
	return append(out, '\n'), err
}

func deniedIn(mode string) []string {
	if mode == modePlan {
		return denied
	}
	return append(slices.Clone(denied), deniedUnlessPlan...)
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

// appendTo puts a value behind those of a list within an object.
func appendTo(o object, where, name string, values ...any) error {
	var list []json.RawMessage
	if raw, ok := o[name]; ok {
		if err := json.Unmarshal(raw, &list); err != nil || list == nil {
			return fmt.Errorf("%s%s: not a list", where, name)
		}
	}
	for _, v := range values {
		raw, err := json.Marshal(v)
		if err != nil {
			return err
		}
		list = append(list, raw)
	}
	raw, err := json.Marshal(list)
	o[name] = raw
	return err
}

// addRules adds the rules that a list of permissions lacks.
func addRules(permissions object, name string, rules []string) error {
	var have []string
	if raw, ok := permissions[name]; ok {
		if err := json.Unmarshal(raw, &have); err != nil || have == nil {
			return fmt.Errorf("permissions.%s: not a list of rules", name)
		}
	}
	var add []any
	for _, r := range rules {
		if !slices.Contains(have, r) {
			add = append(add, r)
		}
	}
	return appendTo(permissions, "permissions.", name, add...)
}

// hooksOn refuses settings under which no hook runs: no message to the agent
// would ever be confirmed.
func hooksOn(file string, o object) error {
	var off bool
	if json.Unmarshal(o["disableAllHooks"], &off) == nil && off {
		return fmt.Errorf("%s: disableAllHooks: without hooks nobody learns that a message has come", file)
	}
	return nil
}

// shellWord quotes a word for the shell that runs hooks.
func shellWord(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
