package mcp

import "netsky/bus/envelope"

// maxResult is how many bytes of text a tool's result has at most: Claude Code
// cuts off what is much larger.
const maxResult = 20 << 10

// shown is text for a tool's result: nothing in it is taken for a control, or
// for a message, and there is not too much of it.
func shown(s string) string {
	return envelope.Shorten(envelope.SafeText(envelope.Plain(s)), maxResult)
}
