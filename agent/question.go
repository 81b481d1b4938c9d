package agent

import (
	"errors"

	"netsky/agent/proc"
)

// An Approval is a question of an agent's whether it may do something.
type Approval struct {
	Code    string       `json:"code"` // five letters
	Agent   ID           `json:"agent"`
	Start   string       `json:"start"`
	Tool    string       `json:"tool"`
	Text    string       `json:"text"` // the command, or what it is about
	Reason  string       `json:"reason,omitempty"`
	Dir     string       `json:"dir,omitempty"`
	AskedMS int64        `json:"asked_ms"`
	Asker   proc.Process `json:"asker"`             // who waits for the answer
	Message string       `json:"message,omitempty"` // id of the message in whose turn it is asked, if that is known
	Mail    string       `json:"mail,omitempty"`    // file name of the envelope that told the owner, in the owner's mailbox
}

// MailID is the id of the envelope that tells the owner of it.
func (a Approval) MailID() string { return "approval-" + a.Code + "-" + a.Start }

// An Answer is what the owner said to an Approval, and by which surface.
type Answer struct {
	Allow bool   `json:"allow"`
	By    string `json:"by,omitempty"` // "netsky approve"
}

// ErrNoApproval is returned for an answer that nobody waits for.
var ErrNoApproval = errors.New("no such approval waits")
