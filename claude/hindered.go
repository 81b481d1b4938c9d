package claude

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"netsky/agent"
	"netsky/internal/advice"
	"netsky/internal/execx"
)

// bare are the switches with which Claude Code runs neither hooks nor, some of them, MCP
// servers.
var bare = []string{"CLAUDE_CODE_SIMPLE", "CLAUDE_CODE_SAFE_MODE", "CLAUDE_CODE_RESTRICTED"}

const (
	deaf           = "without it the agent can't take messages"
	managedServers = "managed-mcp.json"
)

// hindered reports what keeps Claude Code from running netsky's hooks and MCP servers:
// a switch, the administrator's own set of servers, a server that was turned off, a list of
// those that are denied or allowed. Claude Code itself says nothing of it, and starts.
func (r *Runtime) hindered(l agent.Launch, o Options, all []source) error {
	if err := switchedOff(l.Env, all); err != nil {
		return err
	}
	if file := filepath.Join(r.managedDir(), managedServers); exists(file) {
		return advice.With(fmt.Errorf("%s: no other MCP servers than those of this file are allowed; netsky has to add its own, and %s", file, deaf),
			"ask your administrator to list allowed servers in managed-settings.json (allowedMcpServers) instead")
	}
	names := []string{serverAgent}
	if o.IMessage && !l.Agent.IsClone() {
		names = append(names, serverIMessage)
	}
	for _, name := range names {
		s := r.server(name, l)
		for _, err := range []error{turnedOff(l, name), deniedBy(l.Env, all, name, s.words()), notAllowed(l.Env, all, name, s.words())} {
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return !errors.Is(err, fs.ErrNotExist)
}

// words are the command of a server with its arguments.
func (s mcpServer) words() []string { return append([]string{s.Command}, s.Args...) }

func switchedOff(env []string, all []source) error {
	for _, name := range bare {
		if truthy(execx.Value(env, name)) {
			return advice.With(fmt.Errorf("the environment: %s: Claude Code would run no hooks, by which messages are delivered", name), "unset %s", name)
		}
		for _, s := range all {
			var set map[string]any
			json.Unmarshal(s.all["env"], &set) // wrong types are left to Claude Code
			// In a repository's settings it has no effect.
			if v, ok := set[name]; ok && truthy(fmt.Sprint(v)) && !s.repository {
				return advice.With(fmt.Errorf("%s: env.%s: Claude Code would run no hooks, by which messages are delivered", s.file, name), "remove it there")
			}
		}
	}
	return nil
}

// turnedOff reports that somebody has turned a server off in Claude Code's own list.
func turnedOff(l agent.Launch, name string) error {
	file, root := globalConfig(l.Env), projectRoot(l.Dir)
	global, err := readObject(file)
	if err != nil {
		return nil // it was read before, or there is none
	}
	projects, err := member(global, "projects")
	if err != nil {
		return nil // wrong types are left to Claude Code
	}
	var project struct {
		Off []string `json:"disabledMcpServers"`
	}
	if json.Unmarshal(projects[root], &project); !slices.Contains(project.Off, name) {
		return nil
	}
	return advice.With(fmt.Errorf("%s: projects.%s.disabledMcpServers: netsky's MCP server %q is turned off there; %s", file, root, name, deaf),
		"take %q out of that list, or run claude in %s and enable it under /mcp", name, root)
}

// A rule is an entry of a list of MCP servers.
type rule struct {
	Name    *string  `json:"serverName"`
	Command []string `json:"serverCommand"`
}

// entries returns a list of servers from the settings; set is false if there is none that Claude Code would heed.
func (s source) entries(key string) (list []rule, set bool) {
	var raw []json.RawMessage
	if json.Unmarshal(s.all[key], &raw) != nil || raw == nil {
		return nil, false
	}
	for _, one := range raw {
		var e rule
		if json.Unmarshal(one, &e) == nil { // an rule that is none counts as nothing
			list = append(list, e)
		}
	}
	return list, true
}

func (e rule) matches(env []string, name string, words []string) bool {
	if e.Command != nil {
		given := slices.Clone(e.Command)
		for i := range given {
			given[i] = expand(env, given[i])
		}
		return slices.Equal(given, words)
	}
	return e.Name != nil && *e.Name == name
}

var variable = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\$\{(\w+)(:-[^}]*)?\}`) })

// expand replaces ${NAME} and ${NAME:-default}, as Claude Code does in its lists of MCP servers.
func expand(env []string, text string) string {
	return variable().ReplaceAllStringFunc(text, func(m string) string {
		parts := variable().FindStringSubmatch(m)
		if v := execx.Value(env, parts[1]); v != "" || parts[2] == "" {
			return v
		}
		return parts[2][2:]
	})
}

func deniedBy(env []string, all []source, name string, words []string) error {
	for _, s := range all {
		list, _ := s.entries("deniedMcpServers")
		if slices.ContainsFunc(list, func(e rule) bool { return e.matches(env, name, words) }) {
			return advice.With(fmt.Errorf("%s: deniedMcpServers: denies netsky's MCP server %q; %s", s.file, name, deaf), "remove that entry")
		}
	}
	return nil
}

// notAllowed reports a list of allowed servers without the server. The lists of all files
// are one, unless the administrator allows only their own. One with commands admits a
// server that is a command by nothing else.
func notAllowed(env []string, all []source, name string, words []string) error {
	only := slices.ContainsFunc(all, func(s source) bool {
		var on bool
		json.Unmarshal(s.all["allowManagedMcpServersOnly"], &on)
		return on && s.managed
	})
	var list []rule
	var files []string
	for _, s := range all {
		if more, set := s.entries("allowedMcpServers"); set && (s.managed || !only) {
			list, files = append(list, more...), append(files, s.file)
		}
	}
	byCommand := slices.ContainsFunc(list, func(e rule) bool { return e.Command != nil })
	admits := func(e rule) bool { return (e.Command != nil || !byCommand) && e.matches(env, name, words) }
	if len(files) == 0 || slices.ContainsFunc(list, admits) {
		return nil
	}
	add, _ := json.Marshal(map[string][]string{"serverCommand": words}) // strings always encode
	if !byCommand {
		add, _ = json.Marshal(map[string]string{"serverName": name})
	}
	return advice.With(fmt.Errorf("%s: allowedMcpServers: netsky's MCP server %q is not among them; %s", strings.Join(files, ", "), name, deaf), "add %s to that list", add)
}
