package tmux

import "strings"

// Unvis is what Capture undoes of tmux's escapes, for its fuzz test.
func Unvis(s string) (string, error) {
	var b strings.Builder
	if err := unvis(&b, []byte(s)); err != nil {
		return "", err
	}
	return b.String(), nil
}
