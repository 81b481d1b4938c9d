package agent

import (
	"errors"

	"netsky/agent/proc"
)

// An Approval is an agent's question whether it may do something.
type Approval struct {
	Code    string       `json:"code"` // five letters
	Agent   ID           `json:"agent"`
	Start   string       `json:"start"`
	Tool    string       `json:"tool"`
	Text    string       `json:"text"` // the command, or what it is about
	Reason  string       `json:"reason,omitempty"`
	Dir     string       `json:"dir,omitempty"`
	AskedMS int64        `json:"asked_ms"`
	Asker   proc.Process `json:"asker"`             // the process waiting for the answer
	Message string       `json:"message,omitempty"` // id of the message in whose turn it is asked, if known
	Mail    string       `json:"mail,omitempty"`    // file name of the envelope that notified the owner, in the owner's mailbox
}

// MailID returns the id of the envelope that notifies the owner.
func (a Approval) MailID() string { return "approval-" + a.Code + "-" + a.Start }

// An Answer is the owner's answer to an Approval, and where it was given.
type Answer struct {
	Allow bool   `json:"allow"`
	By    string `json:"by,omitempty"` // "netsky approve"
	ID    string `json:"id,omitempty"` // tells it from another of the same words
}

// ErrNoApproval is returned for an answer to a question that is not pending.
var ErrNoApproval = errors.New("no such approval is pending")
