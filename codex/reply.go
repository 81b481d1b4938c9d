package codex

import "strings"

const (
	replyOpen  = "<netsky-reply>"
	replyClose = "</netsky-reply>"
)

// ExtractReply returns the part of a model's answer that goes to the sender: the first
// <netsky-reply> block, else all of it, trimmed.
func ExtractReply(answer string) string {
	if _, rest, ok := strings.Cut(answer, replyOpen); ok {
		if body, _, ok := strings.Cut(rest, replyClose); ok {
			return strings.TrimSpace(body)
		}
	}
	return strings.TrimSpace(answer)
}
