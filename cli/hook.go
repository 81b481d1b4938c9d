package cli

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os/signal"
	"strings"
	"syscall"

	"github.com/urfave/cli/v2"

	"netsky/agent"
	"netsky/agent/home"
	"netsky/bus/envelope"
	"netsky/spawn/claude"
)

// maxHook bounds what a hook is told, in bytes: a prompt of any length, and what
// a tool gave.
const maxHook = 64 << 20

// hookCommand is what Claude Code runs at each event of an agent's. Whatever goes
// wrong in it, the agent goes on: it blocks nothing but a prompt that brings
// again what has been delivered.
func (a *app) hookCommand() *cli.Command {
	return &cli.Command{
		Name: "hook", Usage: "be told by Claude Code what an agent does", ArgsUsage: "EVENT", Hidden: true,
		Description: "For Claude Code, which runs it at each event of an agent's with JSON on stdin. The event is written to\n" +
			"state/events/ in netsky's home, from where `netsky status` and the receiver read it.",
		Action: func(c *cli.Context) error {
			err := a.hook(c.Context, c.Args().First())
			if errors.Is(err, errAgain) {
				return exitError{exitUsage, err} // 2 is Claude Code's word for "block this"
			}
			if err != nil {
				a.warn("hook: %v", err)
			}
			return nil
		},
	}
}

// errAgain blocks a prompt; Claude Code shows the words in its pane.
var errAgain = errors.New("every message in this was delivered before; not given to the model again")

func (a *app) hook(ctx context.Context, event string) error {
	self, err := a.self()
	if err != nil || !self.IsAgent() {
		return err
	}
	data, err := io.ReadAll(io.LimitReader(a.in, maxHook))
	if err != nil {
		return err
	}
	h, err := claude.ParseHook(event, data)
	if err != nil {
		return err
	}
	home, err := a.home()
	if err != nil {
		return err
	}
	a.forgive()
	switch h.Event {
	case "UserPromptSubmit":
		return a.prompted(home, self, h)
	case "PermissionRequest":
		return a.permission(ctx, home, self, h)
	case "SessionStart":
		if err := a.sessionStarted(home, self, h); err != nil {
			a.warn("hook: %v", err) // its line is worth having all the same
		}
	case "PostToolUse":
		if h.Tool == inboxTool {
			if err := a.handedOver(self, data); err != nil {
				a.warn("hook: %v", err)
			}
		}
	}
	return a.note(home, self, h.Line())
}

// Claude Code's names for netsky's tools, and for the one that hands over mail.
const (
	ownTools  = "mcp__agent__"
	inboxTool = ownTools + "inbox"
)

// note leaves the event's line, if it has one.
func (a *app) note(home home.Dir, self agent.ID, e agent.Event) error {
	if e.Event == "" {
		return nil
	}
	e.Start = a.getenv("NETSKY_START")
	return home.AppendEvent(self, e)
}

// prompted is told of a text that is about to be given to the model.
func (a *app) prompted(home home.Dir, self agent.ID, h claude.Hook) error {
	ids, _ := envelope.RenderedIDs(h.Prompt)
	if len(ids) > 0 {
		b, err := a.bus()
		if err != nil {
			return err
		}
		if again, err := b.SeenText(self, h.Prompt); err == nil && again {
			// Said once more, for a receiver that has missed it.
			if err := b.Witness(self, ids...); err != nil {
				return err
			}
			return errAgain
		}
		if err := b.Witness(self, ids...); err != nil {
			return err
		}
	}
	e := h.Line()
	e.IDs = ids
	if err := a.note(home, self, e); err != nil {
		return err
	}
	s, err := claude.LoadState(home, self)
	if err != nil || s.Used && s.Session == h.Session {
		return err
	}
	return a.saveSession(home, self, s, h, true)
}

// handedOver says of mail that the inbox tool has given that the model has it.
func (a *app) handedOver(self agent.ID, data []byte) error {
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
	b, err := a.bus()
	if err != nil {
		return err
	}
	return b.Witness(self, ids...)
}

// each calls fn with the texts in a value of JSON's kinds.
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

// sessionStarted keeps which conversation the agent has: a person may begin
// another in the pane.
func (a *app) sessionStarted(home home.Dir, self agent.ID, h claude.Hook) error {
	s, err := claude.LoadState(home, self)
	if err != nil {
		return err
	}
	return a.saveSession(home, self, s, h, s.Used && s.Session == h.Session)
}

func (a *app) saveSession(home home.Dir, self agent.ID, s claude.State, h claude.Hook, used bool) error {
	if start := a.getenv("NETSKY_START"); s.Start != "" && s.Start != start {
		return nil // of an earlier life, which has nothing to say any more
	}
	now := s
	now.Session, now.Transcript, now.Used = h.Session, h.Transcript, used
	if now == s {
		return nil
	}
	return claude.SaveState(home, self, now)
}

// permission puts a question of the model's before the owner and gives Claude
// Code the answer, unless it is given at the pane first. The dialog stands there
// all the while.
func (a *app) permission(ctx context.Context, home home.Dir, self agent.ID, h claude.Hook) error {
	p, ok := h.Permission()
	if !ok {
		return nil
	}
	if strings.HasPrefix(p.Tool, ownTools) {
		// The settings allow them, which plan mode does not hear. Each refuses by
		// itself what is not the agent's to do.
		_, err := a.out.Write(claude.Decision(true, ""))
		return err
	}
	b, err := a.bus()
	if err != nil {
		return err // the pane can still answer
	}
	// Claude Code ends the hook with the dialog when somebody presses Escape there.
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGHUP)
	defer stop()
	start := a.getenv("NETSKY_START")
	q, err := a.askOwner(ctx, home, b, agent.Approval{
		Agent: self, Start: start, Tool: p.Tool, Text: p.Text, Reason: p.Reason, Dir: p.Dir,
		Message: prompting(home, self, start),
	})
	if err != nil {
		return err
	}
	defer home.Settle(q.Code)
	e := h.Line()
	e.ID = q.Code
	if err := a.note(home, self, e); err != nil {
		a.warn("hook: %v", err)
	}
	k, err := home.LoadKeeper(self)
	if err != nil {
		return err
	}
	w := claude.PermissionWait{
		Home: home, Agent: self, Start: start, ConfigDir: claude.ConfigDir(a.getenv), PID: k.PID,
		Session: h.Session, Tool: h.Tool, Input: h.Input,
	}
	var answer agent.Answer
	end := w.Wait(ctx, func() (allow, ok bool) {
		answer, ok, err = home.Answered(q.Code)
		return answer.Allow, ok && err == nil
	})
	err = a.permitted(home, self, q.Code, end)
	// Claude Code has its answer; how it was settled comes on record afterwards.
	switch end {
	case claude.Allowed, claude.Denied:
		a.decided(ctx, home, q, answered(answer))
	case claude.AllowedAtPane:
		a.decided(ctx, home, q, allowedInPane)
	case claude.AtPane:
		a.decided(ctx, home, q, inPane)
	default:
		a.decided(ctx, home, q, elsewhere)
	}
	return err
}

// permitted tells Claude Code and the agent's events how a question ended.
func (a *app) permitted(home home.Dir, self agent.ID, code string, end claude.Outcome) error {
	word := inPane
	switch end {
	case claude.Unanswered:
		return nil // told to end: the pane has the question still
	case claude.Allowed:
		word = "allowed"
	case claude.Denied:
		word = "denied"
	case claude.AllowedAtPane:
		word = allowedInPane
	}
	if end == claude.Allowed || end == claude.Denied {
		if _, err := a.out.Write(claude.Decision(end == claude.Allowed, "the owner said no")); err != nil {
			return err
		}
	}
	return a.note(home, self, agent.Event{Event: agent.EventPermitted, ID: code, Text: word})
}
