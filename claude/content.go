// This file reads the content of messages as Claude Code writes them into its files.

package claude

import (
	"encoding/json"
	"strings"
)

// Text returns the text of a message's content, which is a string or a list of blocks: those of text, one
// below the other. Anything else has none.
func Text(content json.RawMessage) string {
	var s string
	if json.Unmarshal(content, &s) == nil {
		return s
	}
	var blocks []struct{ Type, Text string }
	if json.Unmarshal(content, &blocks) != nil {
		return ""
	}
	var texts []string
	for _, b := range blocks {
		if b.Type == "text" && b.Text != "" {
			texts = append(texts, b.Text)
		}
	}
	return strings.Join(texts, "\n")
}
