package claude

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"netsky/agent"
)

// A Hook is what Claude Code passes to a hook on standard input. Texts are as received, of
// any length and content; [Hook.Line] shortens them.
type Hook struct {
	Event      string // Claude Code's own name, such as "PreToolUse"
	Session    string
	Transcript string // the conversation's file
	Dir        string // the current working directory
	Mode       string // the permission mode, as the person may have set it in the pane
	Turn       string // the same from a prompt to its stop; not in every event
	Subagent   string // "" is the conversation itself
	Prompt     string // UserPromptSubmit: the exact prompt
	Tool       string
	ToolUse    string // names one call of a tool; not with PermissionRequest
	Input      string // the tool's command, path or the like, in one line
	Call       string // tells the tool's arguments from others
	args       []agent.Field
	Source     string       // SessionStart: startup, resume, clear or compact
	Reason     string       // SessionEnd: why
	Message    string       // Notification
	Type       string       // Notification: its kind
	LastText   string       // Stop and StopFailure: the last text of the turn
	Error      string       // StopFailure: its kind; PostToolUseFailure: the tool's message
	Details    string       // StopFailure: the service's answer
	Interrupt  bool         // PostToolUseFailure: the person interrupted it
	Background []agent.Work // Stop: what still runs
}

// hookInput is a hook's standard input. [flexible] tolerates values of other types.
type hookInput struct {
	Event      flexible        `json:"hook_event_name"`
	Session    flexible        `json:"session_id"`
	Transcript flexible        `json:"transcript_path"`
	Dir        flexible        `json:"cwd"`
	Mode       flexible        `json:"permission_mode"`
	Turn       flexible        `json:"prompt_id"`
	Subagent   flexible        `json:"agent_id"`
	Prompt     flexible        `json:"prompt"`
	Tool       flexible        `json:"tool_name"`
	ToolUse    flexible        `json:"tool_use_id"`
	Input      json.RawMessage `json:"tool_input"`
	Source     flexible        `json:"source"`
	Reason     flexible        `json:"reason"`
	Message    flexible        `json:"message"`
	Type       flexible        `json:"notification_type"`
	LastText   flexible        `json:"last_assistant_message"`
	Error      flexible        `json:"error"`
	Details    flexible        `json:"error_details"`
	Interrupt  json.RawMessage `json:"is_interrupt"`
	Background json.RawMessage `json:"background_tasks"`
}

// flexible is a string, or the text of any other value: a later release may change a
// field's type, and the rest is still useful.
type flexible string

func (f *flexible) UnmarshalJSON(data []byte) error {
	var s string
	switch err := json.Unmarshal(data, &s); {
	case err == nil:
		*f = flexible(s)
	case data[0] != '{' && data[0] != '[':
		*f = flexible(data)
	}
	return nil
}

// ParseHook reads a hook's input. The event is what the hook was called for; "" takes it
// from the input. Unknown fields and events are accepted. An error means that the input is
// not a JSON object.
func ParseHook(event string, stdin []byte) (Hook, error) {
	var in hookInput
	if err := json.Unmarshal(stdin, &in); err != nil {
		return Hook{}, fmt.Errorf("hook %s: %w", event, err)
	}
	if !bytes.HasPrefix(bytes.TrimSpace(stdin), []byte("{")) {
		return Hook{}, fmt.Errorf("hook %s: not a JSON object", event)
	}
	h := Hook{
		Event: event, Session: string(in.Session), Transcript: string(in.Transcript), Dir: string(in.Dir), Mode: string(in.Mode),
		Turn: string(in.Turn), Subagent: string(in.Subagent), Prompt: string(in.Prompt),
		Tool: string(in.Tool), ToolUse: string(in.ToolUse),
		Source: string(in.Source), Reason: string(in.Reason), Message: string(in.Message), Type: string(in.Type),
		LastText: string(in.LastText), Error: string(in.Error), Details: string(in.Details),
		Interrupt: string(in.Interrupt) == "true", Background: background(in.Background),
	}
	if h.Event == "" {
		h.Event = string(in.Event)
	}
	h.args = agent.Fields(in.Input)
	h.Input, h.Call = brief(h.args, in.Input), digest(h.Tool, in.Input)
	return h, nil
}

// maxWorks bounds what is kept of what runs in the background.
const maxWorks = 20

// background reads what Claude Code says of what still runs, since 2.1.329 or earlier.
func background(data json.RawMessage) (list []agent.Work) {
	var tasks []struct {
		ID          flexible `json:"id"`
		Type        flexible `json:"type"`
		Status      flexible `json:"status"`
		Command     flexible `json:"command"`
		Description flexible `json:"description"`
	}
	if json.Unmarshal(data, &tasks) != nil {
		return nil
	}
	for _, t := range tasks {
		if t.Status == "running" && len(list) < maxWorks {
			text, _ := agent.Flat(string(cmp.Or(t.Command, t.Description)), 200)
			list = append(list, agent.Work{ID: line(string(t.ID), 100), Kind: line(string(t.Type), 40), Text: text})
		}
	}
	return list
}

// selfStarted begins the prompt of a turn that Claude Code begins with the result of what
// ran in the background.
const selfStarted = "<task-notification>"

// reportedWorks names the works whose results a prompt of Claude Code's own brings.
func reportedWorks(prompt string) (list []agent.Work) {
	for len(list) < maxWorks {
		_, rest, ok := strings.Cut(prompt, "<task-id>")
		id, rest, closed := strings.Cut(rest, "</task-id>")
		if !ok || !closed {
			break
		}
		list, prompt = append(list, agent.Work{ID: line(id, 100)}), rest
	}
	return list
}

// Edited is the file that a call has changed, "" if it was no call of a tool for that, or failed.
func (h Hook) Edited() string {
	if h.Event != "PostToolUse" || !slices.Contains([]string{"Edit", "MultiEdit", "Write", "NotebookEdit"}, h.Tool) {
		return ""
	}
	for _, name := range []string{"file_path", "notebook_path"} {
		if i := slices.IndexFunc(h.args, func(f agent.Field) bool { return f.Name == name }); i >= 0 {
			if filepath.IsAbs(h.args[i].Text) {
				return h.args[i].Text
			}
			return filepath.Join(h.Dir, h.args[i].Text)
		}
	}
	return ""
}

// File is the file of the conversation that the hook belongs to: a subagent has one of its
// own.
func (h Hook) File() string {
	if h.Subagent == "" || h.Transcript == "" {
		return h.Transcript
	}
	return strings.TrimSuffix(h.Transcript, ".jsonl") + "/subagents/agent-" + h.Subagent + ".jsonl"
}

// telling lists the fields of tools' inputs that best describe a call, the best first.
var telling = []string{"command", "file_path", "notebook_path", "path", "url", "query", "pattern", "skill", "subject", "prompt", "text", "description", "plan"}

// maxInput is the maximum length of the line that stands for a tool's input, in bytes.
const maxInput = 1 << 10

// brief stands for the arguments in one line.
func brief(args []agent.Field, data json.RawMessage) string {
	if i := subject(args); i >= 0 {
		return flat(args[i].Text)
	}
	if len(args) == 0 {
		return ""
	}
	return flat(string(data))
}

// subject returns the index of the argument that best describes a call, -1 if none does.
func subject(args []agent.Field) int {
	for _, name := range telling {
		if i := slices.IndexFunc(args, func(f agent.Field) bool { return f.Name == name && f.Text != "" }); i >= 0 {
			return i
		}
	}
	return -1
}

// digest tells calls of tools with other arguments apart. Their order and spacing don't
// count.
func digest(tool string, data json.RawMessage) string {
	var v any
	if tool == "" || json.Unmarshal(data, &v) != nil {
		return ""
	}
	sorted, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(append([]byte(tool+"\x00"), sorted...))
	return hex.EncodeToString(sum[:8])
}

// flat makes one line of a text, in which line breaks are visible and other controls are
// spaces.
func flat(s string) string {
	s, _ = agent.Flat(strings.ToValidUTF8(s, "\uFFFD"), maxInput)
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, s)
}

// line makes one line of at most max bytes from a text.
func line(s string, max int) string {
	s = cut(s, 4*max) // the rest would not be seen
	s = strings.Join(strings.FieldsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }), " ")
	return cut(s, max)
}

// cut returns the beginning of a text, at most max bytes plus the mark of a cut.
func cut(s string, max int) string {
	if len(s) <= max {
		return s
	}
	for max > 0 && !utf8.RuneStart(s[max]) {
		max--
	}
	return s[:max] + "…"
}

// maxBody is the maximum length of an event's text, in bytes.
const maxBody = 256 << 10

// body makes a text fit into an event: a character may take six bytes there.
func body(s string) string {
	s = strings.ToValidUTF8(cut(s, maxBody), "\uFFFD")
	for {
		data, err := json.Marshal(s)
		if err != nil || len(data) <= 2*maxBody {
			return s
		}
		s = cut(s, len(s)/2)
	}
}

// maxName bounds what is a name or a path, in bytes.
const maxName = 4 << 10

// Line returns the event to record for the hook. Its Event is "" if there is nothing to
// record: an unknown event, or the stop of a subagent. MS, Start, a prompt's IDs and an
// approval's code are set by the caller. For the end of a turn it reads the conversation's
// file from its end: for the last text, if Claude Code did not pass it, and for the usage.
// That file lags behind the hook; if it does not hold the turn's end yet there is no
// usage, and [Session.Usage] has it later. The ID of a prompt and of an end is the turn's
// number.
func (h Hook) Line() agent.Event {
	e := agent.Event{Session: cut(h.Session, maxName), Transcript: cut(h.Transcript, maxName)}
	switch h.Event {
	case "SessionStart":
		e.Event, e.Text = agent.EventSessionStart, line(h.Source, maxName)
	case "SessionEnd":
		e.Event, e.Text = agent.EventSessionEnd, line(h.Reason, maxName)
	case "UserPromptSubmit":
		e.Event, e.ID, e.Text = agent.EventPrompt, line(h.Turn, maxName), line(h.Prompt, maxInput)
		if strings.HasPrefix(h.Prompt, selfStarted) {
			e.Self, e.Background = true, reportedWorks(h.Prompt)
		}
	case "PreToolUse", "PostToolUse", "PostToolUseFailure", "PermissionRequest":
		h.tool(&e)
	case "Notification":
		e.Event, e.Text = agent.EventNotification, line(strings.TrimPrefix(h.Type+": "+h.Message, ": "), maxInput)
	case "Stop", "StopFailure":
		if h.Subagent != "" {
			return agent.Event{}
		}
		h.end(&e)
	default:
		return agent.Event{}
	}
	return e
}

// tool fills in the event of a tool call; the tool's output is not kept.
func (h Hook) tool(e *agent.Event) {
	e.Tool, e.Text, e.Input, e.ID = line(h.Tool, maxName), h.Input, h.Call, line(h.ToolUse, maxName)
	switch h.Event {
	case "PreToolUse":
		e.Event = agent.EventTool
	case "PermissionRequest":
		e.Event, e.ID = agent.EventPermission, ""
	default:
		e.Event = agent.EventToolDone
		if h.Interrupt {
			e.Error = "interrupted"
		} else if h.Event == "PostToolUseFailure" {
			e.Error = "failed"
		}
	}
}

// end fills in the event of a turn's end.
func (h Hook) end(e *agent.Event) {
	turn, err := ReadTurn(h.Transcript, h.Turn)
	if err == nil && turn.endsWith(h.LastText) {
		e.Usage = &turn.Usage
	}
	e.Event, e.ID, e.Text, e.Background = agent.EventStop, line(h.Turn, maxName), h.LastText, h.Background
	if h.Event == "StopFailure" {
		e.Event, e.Error, e.Text = agent.EventStopFailed, cmp.Or(line(h.Error, maxName), "unknown"), cmp.Or(h.LastText, h.Details)
		e.Fault = h.fault()
		if e.Fault != nil && e.Fault.Reason == agent.ContextFull {
			if e.Usage == nil {
				e.Usage = &agent.Usage{}
			}
			e.Usage.ContextFull = true
		}
	}
	if e.Text == "" && err == nil {
		e.Text = turn.Text
	}
	e.Text = body(e.Text)
}
