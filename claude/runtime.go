package claude

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"netsky/agent"
	"netsky/home"
	"netsky/internal/execx"
)

// Options configure an agent's Claude Code.
type Options struct {
	Mode     string   // the permission mode; "" is manual, which asks
	Model    string   // "" is Claude Code's own choice
	Effort   string   // likewise
	Delivery string   // "channel" opts in to channel notifications
	MCP      []string // the person's MCP servers to let through, by name
	Settings string   // a settings file to merge under ours, absolute
	IMessage bool     // give agent0 and agentinfinity the tools for the owner's phone
}

// The permission modes that netsky interprets.
const (
	modeManual  = "manual"
	modeBypass  = "bypassPermissions"
	ModeEdits   = "acceptEdits"
	modeAuto    = "auto"
	modePlan    = "plan"
	modeDontAsk = "dontAsk"
)

var (
	modes   = []string{ModeEdits, modeAuto, modeBypass, modeManual, modeDontAsk, modePlan}
	efforts = []string{"low", "medium", "high", "xhigh", "max"}
)

// The releases that introduced features, according to their own errors on unknown options.
var (
	firstDriven     = Version{1, 0, 62}  // --settings (1.0.61), and the hook SessionStart
	firstPromptFile = Version{2, 0, 33}  // --append-system-prompt-file
	firstDontAsk    = Version{2, 0, 44}  // the mode dontAsk
	firstEffort     = Version{2, 1, 38}  // --effort
	firstAuth       = Version{2, 1, 40}  // auth status
	firstAuto       = Version{2, 1, 71}  // the mode auto
	firstName       = Version{2, 1, 76}  // --name
	firstChannel    = Version{2, 1, 80}  // --dangerously-load-development-channels
	firstManual     = Version{2, 1, 200} // the mode "default" is called manual
	firstSnapshot   = Version{2, 1, 257} // --system-prompt-snapshot
)

// A Runtime starts Claude Code agents for one up, during which what it finds out about the
// program and the login stays valid. It is safe for concurrent use; its fields are set
// before its first use.
type Runtime struct {
	Home    home.Dir
	Binary  string                 // this netsky, absolute
	Options func(agent.ID) Options // called from several goroutines; nil is all defaults
	Managed string                 // the directory of the machine's administrator's files; "" is Claude Code's own

	versions execx.Answers[Version]
	logins   execx.Answers[struct{}]
}

// Name is "claude".
func (r *Runtime) Name() string { return "claude" }

func (r *Runtime) options(id agent.ID) (o Options) {
	if r.Options != nil {
		o = r.Options(id)
	}
	if o.Mode == "" || o.Mode == "default" { // as it was once called
		o.Mode = modeManual
	}
	return o
}

func (o Options) validate() error {
	switch {
	case !slices.Contains(modes, o.Mode):
		return fmt.Errorf("permission mode %q: not one of %s", o.Mode, strings.Join(modes, ", "))
	case o.Effort != "" && !slices.Contains(efforts, o.Effort):
		return fmt.Errorf("effort %q: not one of %s", o.Effort, strings.Join(efforts, ", "))
	case strings.HasPrefix(o.Model, "-"):
		return fmt.Errorf("model %q: not a model's name", o.Model)
	case o.Settings != "" && !filepath.IsAbs(o.Settings):
		return fmt.Errorf("settings %q: not an absolute path", o.Settings)
	}
	return nil
}

// known reports options that a release does not support.
func (o Options) known(v Version) error {
	for _, ask := range []struct {
		what  string
		asked bool
		since Version
	}{
		{"effort " + o.Effort, o.Effort != "", firstEffort},
		{"permission mode auto", o.Mode == modeAuto, firstAuto},
		{"permission mode dontAsk", o.Mode == modeDontAsk, firstDontAsk},
		{"delivery by channel", o.Delivery == deliveryChannel, firstChannel},
	} {
		if ask.asked && v.Before(ask.since) {
			return fmt.Errorf("%s: not supported by Claude Code %v; it needs %v", ask.what, v, ask.since)
		}
	}
	return nil
}

const deliveryChannel = "channel"

// Prepare writes the agent's mcp-config.json and settings.json, chooses and records its
// conversation, and completes the launch: Argv, Env and Resume. The command line has no
// prompt: the agent's messages arrive once its tools are there. Nothing is set in Env, not
// even to disable Claude Code's updates: that is its user's choice, and a running one
// keeps its program.
func (r *Runtime) Prepare(ctx context.Context, l *agent.Launch) error {
	o := r.options(l.Agent)
	if o.Model == "" {
		o.Model = l.Model
	}
	if err := o.validate(); err != nil {
		return err
	}
	file, err := Find(execx.Value(l.Env, "PATH"))
	if err != nil {
		return err
	}
	v, err := r.version(ctx, file, l.Env)
	if err != nil {
		return err
	}
	prompt, err := r.promptWords(l.Agent, l.PromptFile, v)
	if err != nil {
		return err
	}
	if err := r.writeFiles(*l, o, v); err != nil {
		return err
	}
	state, resume, err := next(r.Home, l)
	if err != nil {
		return err
	}
	if err := SaveState(r.Home, l.Agent, state); err != nil {
		return err
	}
	l.Env, l.Untested = execx.Clean(l.Env), v.Untested("Claude Code", Tested)
	l.Resume = ""
	conversation := []string{"--session-id", state.Session}
	if resume {
		l.Resume = state.Session
		conversation[0] = "--resume"
	}
	l.Argv = slices.Concat([]string{file}, r.fileWords(l.Agent), prompt, conversation, o.words(l.Agent, v))
	return nil
}

func settingsFile(id agent.ID) string  { return home.Mailbox(id) + "/settings.json" }
func mcpConfigFile(id agent.ID) string { return home.Mailbox(id) + "/mcp-config.json" }

func (r *Runtime) writeFiles(l agent.Launch, o Options, v Version) error {
	settings, err := r.settings(o, v)
	if err != nil {
		return err
	}
	servers, err := r.mcpConfig(l, o)
	if err != nil {
		return err
	}
	if err := r.Home.WriteFile(settingsFile(l.Agent), settings, false); err != nil {
		return err
	}
	return r.Home.WriteFile(mcpConfigFile(l.Agent), servers, false)
}

// fileWords names the agent's files. --mcp-config takes all words up to the next option,
// so one follows.
func (r *Runtime) fileWords(id agent.ID) []string {
	return []string{
		"--mcp-config", r.Home.Path(mcpConfigFile(id)), "--strict-mcp-config",
		"--settings", r.Home.Path(settingsFile(id)),
	}
}

// maxWord is the longest argument that Linux accepts, in bytes.
const maxWord = 128<<10 - 1

// promptWords passes the system prompt: its file, or the text itself to a release that
// does not accept a file. A resumed conversation gets the current prompt, not the one it
// began with.
func (r *Runtime) promptWords(id agent.ID, file string, v Version) ([]string, error) {
	if v.Before(firstPromptFile) {
		text, err := r.Home.ReadFile(home.PromptFile(id), 1<<20)
		if err != nil {
			return nil, err
		}
		if len(text) > maxWord {
			return nil, fmt.Errorf("prompt of %s: %d bytes; Claude Code %v takes it as an argument, of at most %d", id, len(text), v, maxWord)
		}
		return []string{"--append-system-prompt", string(text)}, nil
	}
	words := []string{"--append-system-prompt-file", file}
	if !v.Before(firstSnapshot) {
		words = append(words, "--system-prompt-snapshot", "off")
	}
	return words, nil
}

// words returns the options as arguments. The mode is always among them: without it Claude
// Code uses one that a person may have set for themselves.
func (o Options) words(id agent.ID, v Version) []string {
	mode := o.Mode
	if mode == modeManual && v.Before(firstManual) {
		mode = "default"
	}
	words := []string{"--permission-mode", mode}
	if o.Model != "" {
		words = append(words, "--model", o.Model)
	}
	if o.Effort != "" {
		words = append(words, "--effort", o.Effort)
	}
	if !v.Before(firstName) {
		words = append(words, "--name", string(id))
	}
	if o.Delivery == deliveryChannel {
		words = append(words, "--dangerously-load-development-channels", "server:"+serverAgent)
	}
	return words
}

// Account names the login that a start would use now.
func (r *Runtime) Account(l agent.Launch) (name string, changed time.Time) {
	return loginOf(execx.Clean(l.Env), l.Dir, r.options(l.Agent).Settings).Account()
}

// Idle reports whether the launch's Claude Code, process pid, runs no turn, asks nothing
// and has nothing running in the background; why says what it does instead, or why that is
// unknown. It relies on Claude Code's own registry.
func (r *Runtime) Idle(_ context.Context, l agent.Launch, pid int) (idle bool, why string) {
	s, err := FindSession(configDir(l.Env), pid)
	switch {
	case err != nil:
		return false, err.Error()
	case s.Status == statusIdle || s.Status == "": // "" until its first key
		return true, ""
	case s.WaitingFor != "":
		return false, s.Status + ": " + s.WaitingFor
	}
	return false, s.Status
}

// Message returns the id of the first message in the turn that the start works on, ""
// if that is unknown: a person may have typed at its pane.
func (r *Runtime) Message(id agent.ID, start string) string {
	return home.Events(r.Home).InTurn(id, start)
}
