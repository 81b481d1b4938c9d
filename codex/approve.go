package codex

import "netsky/codex/appserver"

// What the one who starts Codex agents decides with, and what may keep one from
// starting.
type (
	Approval = appserver.Approval
	Decision = appserver.Decision
	Approver = appserver.Approver
)

const (
	Decline = appserver.Decline
	Accept  = appserver.Accept
	Leave   = appserver.Leave
)

var (
	ErrLogin   = appserver.ErrLogin
	ErrMissing = appserver.ErrMissing
)
