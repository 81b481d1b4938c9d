package claude_test

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"netsky/claude"
	"netsky/internal/testworld"
)

// hooks are the commands of an event, in their order.
func hooks(settings map[string]any, event string) (list []string) {
	all, _ := settings["hooks"].(map[string]any)
	groups, _ := all[event].([]any)
	for _, g := range groups {
		in, _ := g.(map[string]any)["hooks"].([]any)
		for _, h := range in {
			command, _ := h.(map[string]any)["command"].(string)
			list = append(list, command)
		}
	}
	return list
}

func rules(settings map[string]any, name string) (list []string) {
	all, _ := settings["permissions"].(map[string]any)
	have, _ := all[name].([]any)
	for _, r := range have {
		list = append(list, r.(string))
	}
	return list
}

// TestSettingsHooks has the events that a release knows, and no others: of one
// that it doesn't know Claude Code asks in the pane.
func TestSettingsHooks(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]string{
		"2.1.329": "Notification PermissionRequest PostToolUse PostToolUseFailure PreToolUse SessionEnd SessionStart Stop StopFailure UserPromptSubmit",
		"2.1.77":  "Notification PermissionRequest PostToolUse PostToolUseFailure PreToolUse SessionEnd SessionStart Stop UserPromptSubmit",
		"2.0.44":  "Notification PostToolUse PreToolUse SessionEnd SessionStart Stop UserPromptSubmit",
		"1.0.62":  "Notification PostToolUse PreToolUse SessionStart Stop UserPromptSubmit",
	} {
		g := mustRig(t)
		g.mustFake(version, loggedIn)
		g.mustPrepare("agent3")
		s := g.read("agent3", "settings.json")
		var names []string
		for name, groups := range s["hooks"].(map[string]any) {
			names = append(names, name)
			if got, want := hooks(s, name), []string{"'/opt/net sky/netsky' hook " + name}; !slices.Equal(got, want) {
				t.Errorf("%s: %s runs %q, want %q", version, name, got, want)
			}
			hook := groups.([]any)[0].(map[string]any)["hooks"].([]any)[0].(map[string]any)
			if timeout, _ := hook["timeout"].(json.Number).Int64(); name == "PermissionRequest" && timeout != 86400 || name != "PermissionRequest" && timeout > 30 {
				t.Errorf("%s: %s may take %v s", version, name, timeout)
			}
		}
		slices.Sort(names)
		testworld.Equal(t, strings.Join(names, " "), want, "%s: hooks", version)
	}
}

func TestSettingsModes(t *testing.T) {
	t.Parallel()
	for mode, want := range map[string]struct {
		bypass, auto any
		deny         string
	}{
		"manual":            {nil, nil, "AskUserQuestion SendMessage ListAgents CronCreate CronDelete CronList ScheduleWakeup RemoteTrigger EnterPlanMode ExitPlanMode"},
		"bypassPermissions": {true, nil, "AskUserQuestion SendMessage ListAgents CronCreate CronDelete CronList ScheduleWakeup RemoteTrigger EnterPlanMode ExitPlanMode"},
		"auto":              {nil, true, "AskUserQuestion SendMessage ListAgents CronCreate CronDelete CronList ScheduleWakeup RemoteTrigger EnterPlanMode ExitPlanMode"},
		"plan":              {nil, nil, "AskUserQuestion SendMessage ListAgents CronCreate CronDelete CronList ScheduleWakeup RemoteTrigger"},
	} {
		g := mustRig(t)
		g.mustFake("2.1.329", loggedIn)
		g.options.Mode = mode
		g.mustPrepare("agent3")
		s := g.read("agent3", "settings.json")
		if s["skipDangerousModePermissionPrompt"] != want.bypass || s["skipAutoPermissionPrompt"] != want.auto || s["crossSessionInbound"] != "accept" || s["autoContinueAtUsageLimit"] != false {
			t.Errorf("%s: settings %v", mode, s)
		}
		testworld.Equal(t, strings.Join(rules(s, "deny"), " "), want.deny, "%s: denied", mode)
		testworld.EqualList(t, rules(s, "allow"), []string{"mcp__agent__*", "mcp__imessage__*"}, "%s: allowed", mode)
	}
}

// TestSettingsMerged keeps all that a person has written.
func TestSettingsMerged(t *testing.T) {
	t.Parallel()
	g := mustRig(t)
	g.mustFake("2.1.329", loggedIn)
	g.options = claude.Options{Mode: "manual", Settings: filepath.Join(g.work, "mine.json")}
	const mine = `{
		"model": "sonnet", "cleanupPeriodDays": 12345678901234567890, "crossSessionInbound": "refuse", "autoContinueAtUsageLimit": true,
		"permissions": {"allow": ["Bash(ls)", "mcp__agent__*"], "deny": ["WebFetch", "AskUserQuestion"], "ask": ["Edit"], "additionalDirectories": ["/x"]},
		"hooks": {
			"Stop": [{"hooks": [{"type": "command", "command": "mine stop"}]}],
			"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "a"}, {"type": "command", "command": "b"}]}, {"hooks": []}],
			"PreCompact": [{"hooks": [{"type": "command", "command": "mine compact"}]}]
		}
	}`
	g.mustWrite(g.options.Settings, mine)
	g.mustPrepare("agent3")
	s := g.read("agent3", "settings.json")
	for event, want := range map[string][]string{
		"Stop":       {"mine stop", "'/opt/net sky/netsky' hook Stop"},
		"PreToolUse": {"a", "b", "'/opt/net sky/netsky' hook PreToolUse"},
		"PreCompact": {"mine compact"},
	} {
		testworld.EqualList(t, hooks(s, event), want, "%s runs", event)
	}
	groups := s["hooks"].(map[string]any)["PreToolUse"].([]any)
	if groups[0].(map[string]any)["matcher"] != "Bash" || groups[2].(map[string]any)["matcher"] != nil {
		t.Errorf("PreToolUse = %v", groups)
	}
	for name, want := range map[string]string{
		"allow": "Bash(ls) mcp__agent__* mcp__imessage__*", "ask": "Edit",
		"deny": "WebFetch AskUserQuestion SendMessage ListAgents CronCreate CronDelete CronList ScheduleWakeup RemoteTrigger EnterPlanMode ExitPlanMode",
	} {
		testworld.Equal(t, strings.Join(rules(s, name), " "), want, "%s", name)
	}
	if s["model"] != "sonnet" || s["crossSessionInbound"] != "accept" || s["autoContinueAtUsageLimit"] != false || len(s["permissions"].(map[string]any)) != 4 {
		t.Errorf("settings = %v", s)
	}
	data, err := g.home.ReadFile("channels/agent/agent3/settings.json", 1<<20)
	if err != nil || !strings.Contains(string(data), "12345678901234567890") {
		t.Errorf("a number was rewritten (%v): %s", err, data)
	}
}

// FuzzSettings merges whatever may stand in a person's file: no hook and no rule
// of theirs is lost, nor any of ours, or the file is refused.
func FuzzSettings(f *testing.F) {
	for _, s := range []string{
		`{}`, ``, `null`, `[]`, `{"hooks": null}`, `{"hooks": {"Stop": null}}`, `{"hooks": {"Stop": [{"hooks": [{"command": "x"}]}]}}`,
		`{"hooks": {"Stop": [1, null, "x"], "": {}}}`, `{"permissions": {"allow": ["x"], "deny": [1]}}`, `{"permissions": []}`,
		`{"HOOKS": 1, "hooks": {"stop": []}}`, `{"hooks": 1, "hooks": {}}`, "{\"a\": \"\xff\"}", `{"hooks": {"Stop": [{"hooks": [{"command": "<&>\u2028"}]}]}}`,
	} {
		f.Add([]byte(s))
	}
	shared := mustRig(f)
	shared.mustFake("2.1.329", loggedIn)
	shared.options = claude.Options{Mode: "manual", Settings: filepath.Join(shared.work, "mine.json")}
	f.Fuzz(func(t *testing.T, data []byte) {
		g := *shared
		g.TB = t
		g.mustWrite(g.options.Settings, string(data))
		l := g.launch("agent3")
		if err := g.runtime.Prepare(t.Context(), &l); err != nil {
			testworld.Contains(t, err.Error(), g.options.Settings, "Prepare = %v, which does not name the file", err)
			return
		}
		var theirs map[string]any
		if len(bytes.TrimSpace(bytes.TrimPrefix(data, []byte("\ufeff")))) > 0 {
			theirs = mustObject(t, bytes.TrimPrefix(data, []byte("\ufeff")))
		}
		both := g.read("agent3", "settings.json")
		mustHold(t, theirs, both)
		for _, event := range []string{"SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "PermissionRequest", "Stop", "StopFailure"} {
			groups, _ := both["hooks"].(map[string]any)[event].([]any)
			last, _ := json.Marshal(groups[len(groups)-1])
			testworld.Contains(t, string(last), "hook "+event, "%s ends with %s", event, last)
		}
		if allow := rules(both, "allow"); !slices.Contains(allow, "mcp__agent__*") {
			t.Errorf("allowed %q", allow)
		}
	})
}

// mustHold fails unless all of a person's settings stand in the merged ones.
func mustHold(t *testing.T, theirs, both map[string]any) {
	t.Helper()
	for name, want := range theirs {
		got := both[name]
		switch name {
		case "crossSessionInbound":
			continue
		case "hooks", "permissions":
			for inner, list := range want.(map[string]any) {
				have, isList := list.([]any)
				after, _ := got.(map[string]any)[inner].([]any)
				switch {
				case !isList && !reflect.DeepEqual(got.(map[string]any)[inner], list):
					t.Errorf("%s.%s = %v, want %v", name, inner, got.(map[string]any)[inner], list)
				case isList && (len(after) < len(have) || !reflect.DeepEqual(after[:len(have)], append([]any{}, have...))):
					t.Errorf("%s.%s = %v, want %v in front", name, inner, after, have)
				}
			}
		default:
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%s = %v, want %v", name, got, want)
			}
		}
	}
}
