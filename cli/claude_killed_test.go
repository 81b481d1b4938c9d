package cli_test

import (
	"strings"
)

// words are what is the same in what the model said and in the answer.
func words(said string) string {
	return strings.Join(strings.Fields(strings.ReplaceAll(said, "&lt;", "<")), " ")
}
