// Package prompts renders an agent's texts: its system prompt, made of layers that are
// only ever appended to each other, and the few lines in front of the first message of
// a new conversation.
//
// It promises that no agent starts with a placeholder left in its text. A layer may use
// the placeholders
//
//	{{ n }}            the agent's number: "0", "3", "infinity"
//	{{ agent_name }}   agent0, agent3, agentinfinity
//	{{ cwd }}          the directory it starts in
//	{{ owner }}        the person's name, or "the owner"
//	{{ machine }}      the machine's name, or "this one"
//	{{ runtime }}      claude, codex, demo, …
//	{{ home }}         netsky's home directory
//	{{ workspace }}    where the agent puts its git worktrees
//	{{ prompt_file }}  where the rendered prompt is
//	{{ worktree }}     the root of the agent's git worktree
//	{{ branch }}       the branch it works on
//	{{ base }}         the branch that this was made from
//	{{ main }}         the owner's worktree of the repository
//	{{ "{{" }}         two opening braces, literally
//
// with any number of blanks inside the braces. Every other "{{" is an error that names
// the layer and the line, in the built-in texts and in a user's addendum. A
// placeholder's value is data: it is not examined again, so a directory may be called
// "{{ n }}".
//
// The package reads only the files compiled into it, and keeps no state.
package prompts

import (
	_ "embed"
	"fmt"
	"strings"

	"netsky/agent"
	"netsky/home"
)

// Separator is between two layers.
const Separator = "\n\n---\n\n"

var (
	//go:embed base.md
	base string
	//go:embed agent0.md
	agent0 string
	//go:embed clone.md
	clone string
	//go:embed shared.md
	shared string
	//go:embed worktree.md
	worktree string
	//go:embed agentinfinity.md
	agentinfinity string
	//go:embed tools.md
	tools string
	//go:embed claude.md
	claude string
	//go:embed startup.md
	startup string
	//go:embed startup-agentinfinity.md
	startupAgentinfinity string
)

// An Input is what a prompt is rendered from.
type Input struct {
	Agent   agent.ID
	Home    home.Dir
	Dir     string // where the agent starts; absolute
	Owner   string // the person's name; may be ""
	Machine string // the machine's name; may be ""
	Runtime string // the runtime's name; may be ""
	Addenda []Layer
	Tree    Worktree // the zero Worktree: it shares the directory with others
}

// A Worktree is the git worktree that the agent has for itself.
type Worktree struct {
	Root, Main   string // directories: the worktree's, the owner's
	Branch, Base string // by their short names; Base may be ""
}

// A Layer is one part of a prompt. Name is shown to people: a file's name.
type Layer struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// Layers renders the agent's prompt in its parts: the base, the runtime's part, the
// role's part, and the addenda in their order. Blank lines around a part are dropped,
// and so is an empty addendum. An error that matches ErrPlaceholder or ErrText is about
// the text of a layer.
func Layers(in Input) ([]Layer, error) {
	values, err := in.values()
	if err != nil {
		return nil, err
	}
	layers := append([]Layer{{"base.md", base}}, in.runtime()...)
	layers = append(append(layers, in.stanza()...), in.Addenda...)
	rendered := layers[:0]
	for _, l := range layers {
		if l.Text, err = substitute(l, values); err != nil {
			return nil, err
		}
		if l.Text != "" {
			rendered = append(rendered, l)
		}
	}
	return rendered, nil
}

// Render returns the agent's whole prompt: its layers with Separator between them.
func Render(in Input) (string, error) {
	layers, err := Layers(in)
	if err != nil {
		return "", err
	}
	texts := make([]string, len(layers))
	for i, l := range layers {
		texts[i] = l.Text
	}
	return strings.Join(texts, Separator) + "\n", nil
}

// Startup returns the text in front of the first message of a new conversation. Addenda
// are not part of it.
func Startup(in Input) (string, error) {
	values, err := in.values()
	if err != nil {
		return "", err
	}
	l := Layer{"startup.md", startup}
	if in.Agent == agent.Infinity {
		l = Layer{"startup-agentinfinity.md", startupAgentinfinity}
	}
	text, err := substitute(l, values)
	if err != nil {
		return "", err
	}
	return text + "\n", nil
}

// runtime returns the layers for what only some runtimes have.
func (in Input) runtime() []Layer {
	switch in.Runtime {
	case "claude":
		return []Layer{{"claude.md", claude}, {"tools.md", tools}}
	case "codex":
		return []Layer{{"tools.md", tools}}
	}
	return nil
}

// stanza returns the layers for the agent's role.
func (in Input) stanza() []Layer {
	switch {
	case in.Agent == agent.Root:
		return []Layer{{"agent0.md", agent0}}
	case in.Agent == agent.Infinity:
		return []Layer{{"agentinfinity.md", agentinfinity}}
	case in.Tree.Root != "":
		return []Layer{{"clone.md", clone}, {"worktree.md", worktree}}
	}
	return []Layer{{"clone.md", clone}, {"shared.md", shared}}
}

// values returns the placeholders' values.
func (in Input) values() (map[string]string, error) {
	switch {
	case !in.Agent.IsAgent():
		return nil, fmt.Errorf("%q: %w", string(in.Agent), agent.ErrName)
	case in.Home.Root() == "":
		return nil, fmt.Errorf("%s: no home directory to name in its prompt", in.Agent)
	case in.Dir == "":
		return nil, fmt.Errorf("%s: no working directory to name in its prompt", in.Agent)
	}
	return map[string]string{
		"n":           in.Agent.N(),
		"agent_name":  string(in.Agent),
		"cwd":         plain(in.Dir),
		"owner":       plain(or(in.Owner, "the owner")),
		"machine":     plain(or(in.Machine, "this one")),
		"runtime":     plain(or(in.Runtime, "an agent")),
		"home":        plain(in.Home.Root()),
		"workspace":   plain(in.Home.Path(home.Workspace(in.Agent))),
		"prompt_file": plain(in.Home.Path(home.PromptFile(in.Agent))),
		"worktree":    plain(or(in.Tree.Root, in.Home.Path(home.Workspace(in.Agent)))),
		"branch":      plain(or(in.Tree.Branch, "netsky/"+string(in.Agent))),
		"base":        plain(or(in.Tree.Base, "the commit that was checked out")),
		"main":        plain(or(in.Tree.Main, in.Dir)),
	}, nil
}

func or(value, instead string) string {
	if value = strings.TrimSpace(value); value == "" {
		return instead
	}
	return value
}
