// Package program finds programs that are not netsky's own and asks them short
// questions, such as which version they are.
//
// It promises that a question is bounded in time and in what is kept of the answer,
// that no answer of a program gets into an error with more than one line of harmless
// text, and that an environment is cleaned in one way wherever a program is started.
// It keeps no state on disk; a program that is asked is killed with its question.
package program

import (
	"cmp"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// Find returns the program of that name on a PATH, or "". Entries that are not
// absolute are left out. Links are not resolved: an update replaces them.
func Find(path, name string) string {
	for _, dir := range filepath.SplitList(path) {
		if !filepath.IsAbs(dir) {
			continue
		}
		if file, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return file
		}
	}
	return ""
}

// maxAnswer is how much is kept of an answer, in bytes.
const maxAnswer = 64 << 10

// A Question is a program that is run for what it prints.
type Question struct {
	Program string
	Args    []string
	Env     []string
	Dir     string
	Wait    time.Duration // 0 is 20 s
}

// Ask runs the program and returns what it printed, also beside an error.
func (q Question) Ask(ctx context.Context) ([]byte, error) {
	wait := cmp.Or(q.Wait, 20*time.Second)
	limited, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	var out, errs head
	cmd := exec.CommandContext(limited, q.Program, q.Args...)
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = q.Env, q.Dir, &out, &errs, time.Second
	err := cmd.Run()
	what := q.Program + " " + strings.Join(q.Args, " ") // there may be several
	switch {
	case err == nil:
		return out.text, nil
	case ctx.Err() != nil:
		return out.text, ctx.Err()
	case limited.Err() != nil:
		return out.text, fmt.Errorf("%s: no answer within %v", what, wait)
	}
	if words := firstLine(string(errs.text)); words != "" {
		return out.text, fmt.Errorf("%s: %w: %s", what, err, words)
	}
	return out.text, fmt.Errorf("%s: %w", what, err)
}

// A head keeps the beginning of what is written to it.
type head struct{ text []byte }

func (h *head) Write(p []byte) (int, error) {
	h.text = append(h.text, p[:min(len(p), maxAnswer-len(h.text))]...)
	return len(p), nil
}

// firstLine is what a program says in its first line, made fit to be shown.
func firstLine(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return -1
		}
		return r
	}, s)
	if len(s) > 200 {
		s = strings.ToValidUTF8(s[:200], "") + "…"
	}
	return s
}

// A Version is a release of a program: its three numbers.
type Version [3]int

func (v Version) String() string { return fmt.Sprintf("%d.%d.%d", v[0], v[1], v[2]) }

// Before reports whether the release is older than another.
func (v Version) Before(w Version) bool { return slices.Compare(v[:], w[:]) < 0 }

// ParseVersion reads "2.1.329"; what follows the third number is left out.
func ParseVersion(word string) (v Version, ok bool) {
	n, _ := fmt.Sscanf(word, "%d.%d.%d", &v[0], &v[1], &v[2])
	if n != 3 || slices.Min(v[:]) < 0 {
		return Version{}, false
	}
	return v, true
}

// Answers keeps what programs have answered: all agents of one up ask the same. The
// zero Answers is empty. It is safe for concurrent use.
type Answers[T any] struct {
	mu   sync.Mutex // guards what follows, also while a program is asked
	kept map[string]answer[T]
}

type answer[T any] struct {
	value T
	err   error
}

// Get returns the answer under key, and asks for it if there is none. A caller that comes while
// another is asking waits. An answer of which ctx has ended is not kept: it says more
// of the caller than of the program.
func (a *Answers[T]) Get(ctx context.Context, key string, ask func() (T, error)) (T, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if k, ok := a.kept[key]; ok {
		return k.value, k.err
	}
	value, err := ask()
	if ctx.Err() == nil {
		if a.kept == nil {
			a.kept = make(map[string]answer[T])
		}
		a.kept[key] = answer[T]{value, err}
	}
	return value, err
}
