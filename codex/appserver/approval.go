package appserver

import (
	"context"
	"encoding/json"
	"time"
)

// An Approval is a request of Codex's to let the model do something.
type Approval struct {
	Thread, Turn string
	Tool         string // "shell", "edit", "permissions", "server.tool", "question"
	Text         string // the command, or what it is about
	Reason       string // why it asks, in the model's words
	Dir          string // where a command would run
	Message      string // id of the message being processed, if the sidecar knows it
}

// A Decision answers an Approval.
type Decision int

const (
	Decline Decision = iota // the model gets a refusal, and the turn continues
	Accept                  // this once
	Leave                   // left to another client: a person at a terminal on the same server
)

// An Approver decides. It may take its time; ctx ends when the question is answered
// elsewhere or the connection ends.
type Approver func(ctx context.Context, a Approval) Decision

// A question is a request from the server that an Approver answers.
type question struct {
	approval Approval
	answer   func(Decision) any
	cancel   context.CancelFunc
	settled  bool // another client has answered; guarded by the server's mu
}

func (q *question) event(kind EventKind) Event {
	a := q.approval
	return Event{Kind: kind, Turn: a.Turn, Tool: a.Tool, Text: a.Text, Approval: &a}
}

type askParams struct {
	Thread     string  `json:"threadId"`
	Turn       *string `json:"turnId"`
	Command    *string `json:"command"`
	Dir        *string `json:"cwd"`
	Reason     *string `json:"reason"`
	GrantRoot  *string `json:"grantRoot"`
	ServerName string  `json:"serverName"`
	Message    string  `json:"message"`
	Tool       string  `json:"tool"`
	Meta       struct {
		Kind string `json:"codex_approval_kind"`
		Tool string `json:"tool_name"`
	} `json:"_meta"`
}

// asked returns what a request asks for, nil if it is not a question for an Approver.
func asked(method string, params json.RawMessage) *question {
	var p askParams
	if json.Unmarshal(params, &p) != nil {
		return nil
	}
	a := Approval{Thread: p.Thread, Turn: word(p.Turn), Text: word(p.Command), Reason: word(p.Reason), Dir: word(p.Dir)}
	switch method {
	case "item/commandExecution/requestApproval":
		a.Tool = "shell"
		return &question{approval: a, answer: decided}
	case "item/fileChange/requestApproval":
		a.Tool, a.Text = "edit", word(p.GrantRoot)
		return &question{approval: a, answer: decided}
	case "item/permissions/requestApproval":
		// More rights for the rest of the turn are never granted: they can be requested
		// for each command.
		a.Tool = "permissions"
		return &question{approval: a, answer: func(Decision) any { return map[string]any{"permissions": map[string]any{}, "scope": "turn"} }}
	case "mcpServer/elicitation/request":
		a.Tool, a.Text = p.ServerName, p.Message
		if p.Meta.Tool != "" {
			a.Tool += "." + p.Meta.Tool
		}
		// A form that is not an approval has fields, and nobody here fills them in.
		approval := p.Meta.Kind != ""
		return &question{approval: a, answer: func(d Decision) any { return elicited(d, approval) }}
	case "item/tool/requestUserInput":
		a.Tool = "question"
		return &question{approval: a, answer: func(Decision) any { return map[string]any{"answers": map[string]any{}} }}
	}
	return nil
}

func word(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func decided(d Decision) any {
	says := "decline"
	if d == Accept {
		says = "accept"
	}
	return map[string]any{"decision": says}
}

func elicited(d Decision, approval bool) any {
	if approval && d == Accept {
		return map[string]any{"action": "accept", "content": map[string]any{}, "_meta": nil}
	}
	return map[string]any{"action": "decline", "content": nil, "_meta": nil}
}

// plain answers the requests that need no decision. Unknown ones are refused, which
// Codex treats as a no.
func plain(method string) (any, error) {
	switch method {
	case "currentTime/read":
		return map[string]any{"currentTimeAt": time.Now().Unix()}, nil
	case "item/tool/call":
		text := []map[string]any{{"type": "inputText", "text": "netsky has no such tool"}}
		return map[string]any{"contentItems": text, "success": false}, nil
	}
	return nil, &remoteError{Code: codeNoMethod, Message: "netsky does not support " + method}
}
