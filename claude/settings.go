package claude

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"netsky/agent"
	"netsky/home"
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

// Names of netsky's own MCP servers, as models see them.
const (
	serverAgent    = "agent"
	serverIMessage = "imessage"
)

// A mcpServer is one entry of mcp-config.json.
type mcpServer struct {
	Type    string            `json:"type"`
	Command string            `json:"command"`
	Args    []string          `json:"args"`
	Env     map[string]string `json:"env"`
}

// mcpConfig returns the agent's mcp-config.json: the bus for every agent, the phone
// for agent0 and agentinfinity if enabled, and the person's servers that are let through. No
// others are started: they would share the agent's rights, and a project's servers wait
// for a yes in the pane.
func (r *Runtime) mcpConfig(l agent.Launch, o Options) ([]byte, error) {
	servers := make(map[string]any)
	if len(o.MCP) > 0 {
		theirs, err := knownServers(l)
		if err != nil {
			return nil, err
		}
		for _, name := range o.MCP {
			if servers[name], err = letThrough(theirs, name, l); err != nil {
				return nil, err
			}
		}
	}
	servers[serverAgent] = r.server(serverAgent, l)
	if o.IMessage && !l.Agent.IsClone() {
		servers[serverIMessage] = r.server(serverIMessage, l)
	}
	out, err := json.MarshalIndent(map[string]any{"mcpServers": servers}, "", "  ")
	return append(out, '\n'), err
}

func letThrough(theirs object, name string, l agent.Launch) (json.RawMessage, error) {
	if name == serverAgent || name == serverIMessage {
		return nil, fmt.Errorf("mcp server %q: the name is reserved for netsky's own", name)
	}
	entry, ok := theirs[name]
	if !ok {
		return nil, fmt.Errorf("mcp server %q: not in %s, nor in %s", name, globalConfig(l.Env), filepath.Join(l.Dir, projectServers))
	}
	return entry, nil
}

// server returns an MCP server of netsky's own. Claude Code passes its environment on, unless told
// to scrub it: what ours need is set explicitly.
func (r *Runtime) server(name string, l agent.Launch) mcpServer {
	return mcpServer{
		Type: "stdio", Command: r.Binary, Args: []string{"io", "serve", "-s", name},
		Env: map[string]string{
			"AGENT_N": l.Agent.N(), "NETSKY_HOME": r.Home.Root(), "NETSKY_START": l.Start, "NETSKY_PROMPT_FILE": l.PromptFile,
		},
	}
}

// LeftOut names the person's MCP servers that an agent does not get, sorted. Check reports
// what can't be read.
func (r *Runtime) LeftOut(l agent.Launch) []string {
	known, err := knownServers(l)
	if err != nil {
		return nil
	}
	for _, name := range r.options(l.Agent).MCP {
		delete(known, name)
	}
	return slices.Sorted(maps.Keys(known))
}

const projectServers = ".mcp.json"

// knownServers returns all servers that Claude Code would know in the directory, by name.
// Of several the person's own takes precedence: for this directory, then for all; a
// repository's come last, since letting a name through does not mean that a repository may
// redefine it.
func knownServers(l agent.Launch) (object, error) {
	known := object{}
	for _, dir := range upwards(l.Dir) {
		list, err := fileServers(filepath.Join(dir, projectServers))
		if err != nil {
			return nil, err
		}
		for name, entry := range list {
			if _, nearer := known[name]; !nearer {
				known[name] = entry
			}
		}
	}
	global, err := readObject(globalConfig(l.Env))
	if errors.Is(err, fs.ErrNotExist) {
		return known, nil
	}
	if err != nil {
		return nil, err
	}
	scopes, err := personServers(global, l.Dir)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", globalConfig(l.Env), err)
	}
	for _, s := range scopes {
		maps.Copy(known, s)
	}
	return known, nil
}

// fileServers returns the MCP servers that a repository's file names, none without the file.
func fileServers(file string) (object, error) {
	all, err := readObject(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	list, err := member(all, "mcpServers")
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return list, nil
}

// personServers returns the MCP servers of ~/.claude.json: for all projects, then for this one.
func personServers(global object, dir string) (scopes []object, err error) {
	everywhere, err := member(global, "mcpServers")
	if err != nil {
		return nil, err
	}
	scopes = append(scopes, everywhere)
	projects, err := member(global, "projects")
	if err != nil {
		return nil, err
	}
	project, err := member(projects, projectRoot(dir))
	if err != nil {
		return nil, fmt.Errorf("projects: %w", err)
	}
	here, err := member(project, "mcpServers")
	if err != nil {
		return nil, fmt.Errorf("projects: %s: %w", projectRoot(dir), err)
	}
	return append(scopes, here), nil
}

// projectRoot returns the directory under whose name Claude Code keeps what it knows of a
// project: the repository's, for a worktree the one it belongs to, else the directory
// itself.
func projectRoot(dir string) string {
	above := upwards(dir)
	for _, d := range above {
		git := filepath.Join(d, ".git")
		if info, err := os.Stat(git); err != nil {
			continue
		} else if info.IsDir() {
			return d
		}
		link, err := home.ReadOwn(git, 4096)
		if err != nil {
			return d
		}
		words := strings.TrimSpace(strings.TrimPrefix(string(link), "gitdir:"))
		if repository, _, ok := strings.Cut(words, "/.git/worktrees/"); ok && filepath.IsAbs(repository) {
			return repository
		}
		return d
	}
	return above[0]
}

// upwards returns a directory and those above it, by their real names, as Claude Code
// records them.
func upwards(dir string) (list []string) {
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	for {
		list = append(list, dir)
		up := filepath.Dir(dir)
		if up == dir {
			return list
		}
		dir = up
	}
}
