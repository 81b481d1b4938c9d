package view_test

import (
	"testing"

	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/cli/view"
	"netsky/internal/testworld"
)

// What the netsky of another host has written says where its commands are for.
func TestMailOfHost(t *testing.T) {
	t.Parallel()
	e := bus.Entry{Envelope: envelope.Envelope{ID: "m", From: "agent3@build1", Kind: envelope.KindApproval, Text: "netsky approve abcde", Via: bus.ViaLinkCode}}
	testworld.Contains(t, view.Mail(e), "\n    (its commands are for build1: type them there, or after `netsky --on build1`)\n", "netsky's")
	e.Envelope.Via = bus.ViaLink
	testworld.Contains(t, view.Mail(e), "approval, in its own words", "an agent's")
	testworld.Lacks(t, view.Mail(e), "its commands", "an agent's")
}
