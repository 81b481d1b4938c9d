package anthropic_test

import (
	"netsky/internal/loopmodel/anthropic"
)

func said(text string) func(anthropic.Request) bool {
	return func(q anthropic.Request) bool { return q.Last() == text }
}
