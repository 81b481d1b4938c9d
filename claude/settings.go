package claude

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"netsky/internal/execx"
)

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

// An event is one at which Claude Code runs netsky, and the release that introduced it: an
// unknown one makes Claude Code ask what to do with the file.
type event struct {
	name    string
	since   Version
	timeout int
}

// A netsky hook takes milliseconds. If it hangs, it may hold up a turn for this long, in
// seconds; Claude Code itself would allow a minute and more.
const hookTimeout = 10

// An owner may sleep over a question. The dialog in the pane is there as well, and either
// ends the other.
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

// Permission rules for every agent, whatever its role and mode. Which tools the bus'
// server offers a role is decided there. The mode plan asks before any change in spite of
// the first: there the PermissionRequest hook has to say yes.
var (
	allowed = []string{"mcp__" + serverAgent + "__*", "mcp__" + serverIMessage + "__*"}
	// Nobody watches the pane: a question there would wait forever; an agent sends one.
	denied = []string{
		"AskUserQuestion",
		// They reach other Claude Codes without the bus: no record, no brake, no sender.
		"SendMessage", "ListAgents",
		// They begin turns nobody asked for, off the record; netsky cron and loop are on it.
		"CronCreate", "CronDelete", "CronList", "ScheduleWakeup", "RemoteTrigger",
	}
	// Entering and leaving plan mode are questions to a person. An owner who has chosen
	// that mode wants the second, and its permission can be asked for like any other.
	deniedUnlessPlan = []string{"EnterPlanMode", "ExitPlanMode"}
)

// settings returns what an agent is started with: the person's settings with netsky's
// merged over them. Hooks and rules are added to the existing ones.
func (r *Runtime) settings(o Options, v Version) ([]byte, error) {
	all := object{}
	if o.Settings != "" {
		var err error
		if all, err = readObject(o.Settings); err != nil {
			return nil, settingsError(err)
		}
	}
	if err := (source{file: o.Settings, all: all}).refuse(o.Mode); err != nil {
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
		ours := hookGroup{[]hookCommand{{"command", execx.Quote(binary) + " hook " + e.name, e.timeout}}}
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
		// Otherwise Claude Code holds back what netsky sends and asks in the pane.
		"crossSessionInbound": "accept",
		// Else it continues by itself after a usage limit, with what netsky offers again then.
		"autoContinueAtUsageLimit": false,
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

// appendTo appends to a list within an object.
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
