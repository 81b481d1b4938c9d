package testworld_test

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"netsky/internal/testworld"
)

// told is a test that notes what is reported.
type told struct {
	testing.TB
	list []string
}

func (t *told) Helper()                   {}
func (t *told) Error(a ...any)            { t.list = append(t.list, fmt.Sprint(a...)) }
func (t *told) Errorf(f string, a ...any) { t.Error(fmt.Sprintf(f, a...)) }
func (t *told) Fatalf(f string, a ...any) { t.Errorf(f, a...) }

// What compares reports what differs, in words that say what it was, and nothing else.
func TestCompare(t *testing.T) {
	missing := fmt.Errorf("open x: %w", fs.ErrNotExist)
	for want, compare := range map[string]func(tb testing.TB){
		`got "a", want "b"`:                                         func(tb testing.TB) { testworld.Equal(tb, "a", "b") },
		`agent1: got 1, want 2`:                                     func(tb testing.TB) { testworld.Equal(tb, 1, 2, "agent%d", 1) },
		"got\na\nb\nwant\n\"b\"":                                    func(tb testing.TB) { testworld.Equal(tb, "a\nb", "b") },
		`order: got [1 2], want [2 1]`:                              func(tb testing.TB) { testworld.EqualList(tb, []int{1, 2}, []int{2, 1}, "order") },
		`"b" is in "abc"`:                                           func(tb testing.TB) { testworld.Lacks(tb, "abc", "b") },
		`left: got 1, want 0: [7]`:                                  func(tb testing.TB) { testworld.Len(tb, []int{7}, 0, "left") },
		`"x" is not in "abc"`:                                       func(tb testing.TB) { testworld.Contains(tb, "abc", "x") },
		`got EOF, want file does not exist`:                         func(tb testing.TB) { testworld.ErrorIs(tb, errors.New("EOF"), fs.ErrNotExist) },
		`none: error <nil>, want one with ""`:                       func(tb testing.TB) { testworld.Fails(tb, nil, "", "none") },
		`error open x: file does not exist, want one with "denied"`: func(tb testing.TB) { testworld.Fails(tb, missing, "denied") },
		`agent1: open x: file does not exist`:                       func(tb testing.TB) { testworld.Must(tb, missing, "%s", "agent1") },
		"": func(tb testing.TB) {
			testworld.Equal(tb, 1, 1)
			testworld.EqualList(tb, []int{}, nil)
			testworld.Contains(tb, "abc", "b")
			testworld.Lacks(tb, "abc", "x")
			testworld.Len(tb, []int{7}, 1)
			testworld.ErrorIs(tb, testworld.Err(1, missing), fs.ErrNotExist)
			testworld.Fails(tb, missing, "")
			testworld.Must(tb, nil)
		},
	} {
		var tb told
		compare(&tb)
		if got := strings.Join(tb.list, "; "); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
