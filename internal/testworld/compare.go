// This file compares what a test got with what it wants. Each takes the words for what is
// compared last, where the values don't say it: a format, and what belongs into it.

package testworld

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// Equal reports a value that is not the one wanted. The test goes on.
func Equal[T comparable](tb testing.TB, got, want T, what ...any) {
	tb.Helper()
	if got != want {
		tb.Error(differ(got, want, what))
	}
}

// EqualList is Equal for lists. An empty one equals none.
func EqualList[E comparable](tb testing.TB, got, want []E, what ...any) {
	tb.Helper()
	if !slices.Equal(got, want) {
		tb.Error(differ(got, want, what))
	}
}

// Contains reports a text that lacks another.
func Contains(tb testing.TB, text, want string, what ...any) {
	tb.Helper()
	if !strings.Contains(text, want) {
		tb.Errorf("%s%q is not in %s", words(what), want, shown(text))
	}
}

// Lacks reports a text that contains another.
func Lacks(tb testing.TB, text, unwanted string, what ...any) {
	tb.Helper()
	if strings.Contains(text, unwanted) {
		tb.Errorf("%s%q is in %s", words(what), unwanted, shown(text))
	}
}

// Len reports a list that is not of the length wanted.
func Len[E any](tb testing.TB, list []E, want int, what ...any) {
	tb.Helper()
	if len(list) != want {
		tb.Errorf("%sgot %d, want %d: %+v", words(what), len(list), want, list)
	}
}

// ErrorIs reports an error that is not the one wanted.
func ErrorIs(tb testing.TB, err, want error, what ...any) {
	tb.Helper()
	if !errors.Is(err, want) {
		tb.Error(differ(err, want, what))
	}
}

// Fails reports that there is no error. Refusal, if it is not empty, must be in its words.
func Fails(tb testing.TB, err error, refusal string, what ...any) {
	tb.Helper()
	if err == nil || !strings.Contains(err.Error(), refusal) {
		tb.Errorf("%serror %v, want one with %q", words(what), err, refusal)
	}
}

// Err is the error of a call that returns a value, too.
func Err[T any](_ T, err error) error { return err }

func differ(got, want any, what []any) string {
	g, w := shown(got), shown(want)
	if strings.Contains(g+w, "\n") {
		return fmt.Sprintf("%sgot\n%s\nwant\n%s", words(what), g, w)
	}
	return fmt.Sprintf("%sgot %s, want %s", words(what), g, w)
}

// shown is a value as a failure shows it: a text of one line with its ends, another as it is.
func shown(v any) string {
	if s, ok := v.(string); ok && !strings.Contains(s, "\n") {
		return fmt.Sprintf("%q", s)
	}
	return fmt.Sprintf("%+v", v)
}

func words(what []any) string {
	if len(what) == 0 {
		return ""
	}
	return fmt.Sprintf(what[0].(string), what[1:]...) + ": "
}
