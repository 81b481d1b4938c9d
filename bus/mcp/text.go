package mcp

import "netsky/bus/envelope"

// maxResult is the most bytes of text in a tool's result: Claude Code truncates
// anything much larger.
const maxResult = 20 << 10

// shown makes a text safe for a tool's result: no control characters, nothing that
// looks like a message, and at most maxResult bytes.
func shown(s string) string {
	return envelope.Shorten(envelope.SafeText(envelope.Plain(s)), maxResult)
}
