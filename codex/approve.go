package codex

import "netsky/codex/appserver"

// The types for deciding what Codex asks, and the errors that keep an agent from
// starting.
type (
	Approval = appserver.Approval
	Decision = appserver.Decision
	Approver = appserver.Approver
	Taken    = appserver.Taken
)

const (
	Decline = appserver.Decline
	Accept  = appserver.Accept
	Leave   = appserver.Leave

	AsSent    = appserver.AsSent
	Elsewhere = appserver.Elsewhere
)

var (
	ErrLogin   = appserver.ErrLogin
	ErrMissing = appserver.ErrMissing
)
