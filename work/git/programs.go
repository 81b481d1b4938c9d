package git

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Scopes of a repository's configuration, as git names them.
const (
	Local = "local"    // the repository's own, which all of its worktrees share
	Own   = "worktree" // one worktree's, in config.worktree
)

// programs are the keys by which a configuration has git start a program, or reach one, and what git is
// given instead where an agent can write them. A star stands for anything.
var programs = []struct{ key, instead string }{
	{"filter.*.clean", ""}, {"filter.*.smudge", ""}, {"filter.*.process", ""}, {"filter.*.required", "false"},
	{"diff.*.textconv", "cat"}, {"diff.*.command", "true"}, {"diff.external", "true"},
	{"merge.*.driver", "false"}, // a conflict
	{"core.fsmonitor", "false"}, {"core.hookspath", NoHooks}, {"hook.*.command", "true"}, {"hook.*.enabled", "false"},
	{"core.pager", "cat"}, {"pager.*", "false"}, {"core.editor", "true"}, {"sequence.editor", "true"},
	{"core.askpass", ""}, {"credential.helper", ""}, {"credential.*.helper", ""}, {"core.sshcommand", "ssh"},
	{"remote.*.uploadpack", "git-upload-pack"}, {"remote.*.receivepack", "git-receive-pack"}, {"remote.*.vcs", "none"},
	{"remote.*.promisor", "false"}, {"protocol.allow", "never"}, {"protocol.*.allow", "never"}, {"core.alternaterefscommand", "true"},
	{"gpg.program", "false"}, {"gpg.*.program", "false"}, {"gpg.ssh.defaultkeycommand", "false"},
	{"trailer.*.command", "true"}, {"trailer.*.cmd", "true"}, {"submodule.*.update", "none"},
	{"gc.recentobjectshook", "true"}, {"uploadpack.packobjectshook", ""},
	{"lfs.extension.*.clean", "false"}, {"lfs.extension.*.smudge", "false"}, {"lfs.customtransfer.*.path", "false"},
	{"lfs.standalonetransferagent", ""}, {"lfs.*.standalonetransferagent", ""},
}

// always holds for every git where an agent can write: of what has several values, none can be taken away.
var always = []string{"-c", "gc.auto=0", "-c", "maintenance.auto=false", "-c", "protocol.ext.allow=never"}

// unreached keeps git from other repositories, and so from the programs by which it reaches them.
var unreached = []string{"GIT_ALLOW_PROTOCOL=none", "GIT_NO_LAZY_FETCH=1"}

// instead returns what a key is given where an agent can write it.
func instead(key string) (value string, starts bool) {
	for _, p := range programs {
		before, after, star := strings.Cut(p.key, "*")
		if key == p.key || star && len(key) > len(before)+len(after) && strings.HasPrefix(key, before) && strings.HasSuffix(key, after) {
			return p.instead, true
		}
	}
	return "", false
}

// harmless returns the variables by which a git there starts no program that the configuration of the
// doubted scopes names. What somebody writes between this look and that git's own is not covered.
func (d Dir) harmless(ctx context.Context) (env []string, err error) {
	all := d
	all.Doubted = nil
	list, err := all.List(ctx, "config", "--list", "--show-scope", "--name-only", "--includes", "-z")
	if err != nil {
		return nil, fmt.Errorf("git config: %w", err)
	}
	env = []string{"GIT_PROXY_COMMAND="}
	switch {
	case d.Reaches: // by git's own programs
		env = append(env, "GIT_ALLOW_PROTOCOL=file:git:http:https:ssh")
	case slices.Contains(d.Doubted, Local):
		env = append(env, unreached...)
	}
	n, known := 0, make(map[string]bool)
	parts := strings.Split(list, "\x00")
	for i := 0; i+1 < len(parts); i += 2 {
		value, starts := instead(parts[i+1])
		if !starts || known[parts[i+1]] || !slices.Contains(d.Doubted, parts[i]) {
			continue
		}
		known[parts[i+1]] = true
		env = append(env, fmt.Sprintf("GIT_CONFIG_KEY_%d=%s", n, parts[i+1]), fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", n, value))
		n++
	}
	return append(env, "GIT_CONFIG_COUNT="+strconv.Itoa(n)), nil
}
