// This file is what Claude Code runs at each event of an agent's: it records the
// event, reports to the receiver which messages the model has, and puts the model's
// requests for permission before the owner. Whatever goes wrong, the agent continues:
// the hook blocks only a prompt that repeats messages already delivered.

package claude

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os/signal"
	"strings"
	"syscall"

	"netsky/agent"
	"netsky/attention/approve"
	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/home"
	"netsky/work/tree"
)

// maxHook limits a hook's input, in bytes: a prompt of any length, or what a tool
// returned.
const maxHook = 64 << 20

// ErrAgain blocks a prompt; Claude Code shows the text in its pane.
var ErrAgain = errors.New("every message in this prompt was delivered before; it is not given to the model again")

// HookRun is what a hook of one agent needs.
type HookRun struct {
	Home      home.Dir
	Bus       *bus.Bus
	Agent     agent.ID
	Start     string    // the start id
	ConfigDir string    // Claude Code's
	Out       io.Writer // read by Claude Code
	Warn      func(error)
	// Own returns what needs no question, nil for nothing.
	Own func() *approve.Own
}

// Run handles one event and its input. [ErrAgain] means to block the prompt; no other
// error blocks anything.
func (k HookRun) Run(ctx context.Context, event string, in io.Reader) error {
	data, err := io.ReadAll(io.LimitReader(in, maxHook))
	if err != nil {
		return err
	}
	h, err := ParseHook(event, data)
	if err != nil {
		return err
	}
	switch h.Event {
	case "UserPromptSubmit":
		return k.prompted(h)
	case "PermissionRequest":
		return k.permission(ctx, h)
	case "SessionStart":
		if err := k.sessionStarted(h); err != nil {
			k.Warn(err) // its line is still worth recording
		}
	case "PostToolUse":
		if h.Tool == inboxTool {
			if err := k.handedOver(data); err != nil {
				k.Warn(err)
			}
		}
		k.strays(h)
	}
	k.confirm(ctx, h)
	return k.note(h.Line())
}

// strays notes what the agent does outside of its worktree.
func (k HookRun) strays(h Hook) {
	err := tree.NoteDir(k.Home, k.Agent, h.Dir)
	if name := h.Edited(); name != "" {
		err = errors.Join(err, tree.NoteStray(k.Home, k.Agent, name))
	}
	if err != nil {
		k.Warn(err)
	}
}

// confirm records how questions ended that Claude Code had not confirmed when they were
// answered, and that nobody has looked for since.
func (k HookRun) confirm(ctx context.Context, h Hook) {
	if h.Event == "PostToolUse" || h.Event == "Stop" || h.Event == "StopFailure" {
		approve.Desk{Home: k.Home, Bus: k.Bus, Warn: k.Warn}.Confirm(ctx, k.Agent, k.Start)
	}
}

// What Claude Code's names for netsky's tools begin with, and its name for the one that
// returns mail.
const (
	agentTools = "mcp__agent__"
	phoneTools = "mcp__imessage__"
	inboxTool  = agentTools + "inbox"
)

// note records the event's line, if it has one.
func (k HookRun) note(e agent.Event) error {
	if e.Event == "" {
		return nil
	}
	e.Start = k.Start
	return home.Events(k.Home).Append(k.Agent, e)
}

// prompted handles a text that is about to be given to the model.
func (k HookRun) prompted(h Hook) error {
	ids, _ := envelope.RenderedIDs(h.Prompt)
	if len(ids) > 0 {
		if again, err := k.Bus.SeenText(k.Agent, h.Prompt); err == nil && again {
			// Reported again, for a receiver that has missed it.
			if err := k.Bus.Witness(k.Agent, ids...); err != nil {
				return err
			}
			return ErrAgain
		}
		if err := k.Bus.Witness(k.Agent, ids...); err != nil {
			return err
		}
	}
	e := h.Line()
	e.IDs = ids
	if err := k.note(e); err != nil {
		return err
	}
	s, err := LoadState(k.Home, k.Agent)
	if err != nil || s.Used && s.Session == h.Session {
		return err
	}
	return k.saveSession(s, h, true)
}

// handedOver records that the model has the mail that the inbox tool returned.
func (k HookRun) handedOver(data []byte) error {
	var in struct {
		Output any `json:"tool_response"`
	}
	if err := json.Unmarshal(data, &in); err != nil {
		return err
	}
	var ids []string
	each(in.Output, func(text string) {
		found, _ := envelope.RenderedIDs(text)
		ids = append(ids, found...)
	})
	if len(ids) == 0 {
		return nil
	}
	return k.Bus.Witness(k.Agent, ids...)
}

// each calls fn with the texts in a JSON value.
func each(v any, fn func(string)) {
	switch v := v.(type) {
	case string:
		fn(v)
	case []any:
		for _, e := range v {
			each(e, fn)
		}
	case map[string]any:
		for _, e := range v {
			each(e, fn)
		}
	}
}

// sessionStarted records which conversation the agent has: a person may start another
// in the pane.
func (k HookRun) sessionStarted(h Hook) error {
	s, err := LoadState(k.Home, k.Agent)
	if err != nil {
		return err
	}
	return k.saveSession(s, h, s.Used && s.Session == h.Session)
}

func (k HookRun) saveSession(s State, h Hook, used bool) error {
	if start := k.Start; s.Start != "" && s.Start != start {
		return nil // of an earlier start, which has nothing to report any more
	}
	now := s
	now.Session, now.Transcript, now.Used = h.Session, h.Transcript, used
	if now == s {
		return nil
	}
	return SaveState(k.Home, k.Agent, now)
}

// permission puts a request of the model's before the owner and gives Claude Code the
// answer, unless it is answered in the pane first. The dialog stays there all the
// while.
func (k HookRun) permission(ctx context.Context, h Hook) error {
	q, ok := h.Permission()
	if !ok {
		return nil
	}
	if strings.HasPrefix(q.Tool, agentTools) || strings.HasPrefix(q.Tool, phoneTools) {
		// The settings allow them, but plan mode ignores that. Each tool refuses what
		// the agent must not do.
		_, err := k.Out.Write(Decision(true, ""))
		return err
	}
	// Claude Code ends the hook and the dialog when somebody presses Escape there.
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGHUP)
	defer stop()
	desk := approve.Desk{Home: k.Home, Bus: k.Bus, Warn: k.Warn}
	q.Agent, q.Start, q.Message = k.Agent, k.Start, home.Events(k.Home).InTurn(k.Agent, k.Start)
	if own := k.Own(); own != nil && h.Mode == ModeEdits && own.Allows(ctx, q) {
		desk.Granted(ctx, q)
		_, err := k.Out.Write(Decision(true, ""))
		return err
	}
	q, err := desk.Ask(ctx, q)
	if err != nil {
		return err
	}
	defer home.Approvals(k.Home).Settle(q.Code) // unless it has been: settle says how
	e := h.Line()
	e.ID = q.Code
	if err := k.note(e); err != nil {
		k.Warn(err)
	}
	keeper, err := k.Home.LoadKeeper(k.Agent)
	if err != nil {
		return err
	}
	w := PermissionWait{
		Home: k.Home, Agent: k.Agent, Start: k.Start, ConfigDir: k.ConfigDir, PID: keeper.PID,
		Session: h.Session, Call: h.Call, Subagent: h.Subagent != "",
	}
	var answer agent.Answer
	end, call := w.Wait(ctx, func() (allow, ok bool) {
		answer, ok, err = home.Approvals(k.Home).Answered(q.Code)
		return answer.Allow, ok && err == nil
	})
	word := decisionWords[end]
	err = k.permitted(q.Code, end, word)
	// Claude Code has its answer, but may have taken another one from its pane meanwhile.
	o := agent.Outcome{How: word}
	if end == Allowed || end == Denied {
		o.Answer, o.Proof = answer, w.Taken(h.File(), call, end == Allowed)
	}
	desk.Settle(ctx, q, o)
	return err
}

// words say how a request ended.
var decisionWords = map[Outcome]string{
	Allowed: approve.Verdict(true), Denied: approve.Verdict(false),
	AtPane: approve.InPane, AllowedAtPane: approve.AllowedInPane, Unanswered: approve.Elsewhere,
}

// permitted reports to Claude Code and the agent's events how a request ended.
func (k HookRun) permitted(code string, end Outcome, word string) error {
	switch end {
	case Unanswered:
		return nil // told to end: the request is still in the pane
	case Allowed, Denied:
		if _, err := k.Out.Write(Decision(end == Allowed, "the owner said no")); err != nil {
			return err
		}
	}
	return k.note(agent.Event{Event: agent.EventPermitted, ID: code, Text: word})
}
