// Package execx finds programs that are not netsky's own and asks them short
// questions, such as which version they are.
//
// It promises that a question is bounded in time and size, that only one line of
// harmless text of a program's answer gets into an error, and that environments are
// cleaned in the same way wherever a program is started. It keeps no state on disk; a
// program that is asked is killed with its question.
package execx

import (
	"cmp"
	"context"
	"fmt"
	"io"
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

// maxAnswer is how much of an answer is kept, in bytes.
const maxAnswer = 64 << 10

// A Question is a program that is run for its output.
type Question struct {
	Program string
	Args    []string
	Env     []string
	Dir     string
	In      io.Reader     // its standard input; nil is empty
	Wait    time.Duration // 0 is 20 s
}

// Ask runs the program and returns its output, also with an error.
func (q Question) Ask(ctx context.Context) ([]byte, error) {
	wait := cmp.Or(q.Wait, 20*time.Second)
	limited, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	var out, errs head
	cmd := exec.CommandContext(limited, q.Program, q.Args...)
	cmd.Env, cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = q.Env, q.Dir, q.In, &out, &errs, time.Second
	err := cmd.Run()
	what := strings.TrimSpace(q.Program + " " + strings.Join(q.Args, " ")) // there may be several
	switch {
	case err == nil:
		return out.text, nil
	case ctx.Err() != nil:
		return out.text, fmt.Errorf("%s: %w", what, ctx.Err())
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

// firstLine returns the first line of a program's output, made safe for display.
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

// Untested says that a release of a program is not the one that netsky was tested with; ""
// if it is.
func (v Version) Untested(program string, tested Version) string {
	how := "newer"
	switch {
	case v == tested:
		return ""
	case v.Before(tested):
		how = "older"
	}
	return fmt.Sprintf("%s %v, which is %s than the %v that netsky was tested with", program, v, how, tested)
}

// ParseVersion parses "2.1.329"; anything after the third number is ignored.
func ParseVersion(word string) (v Version, ok bool) {
	n, _ := fmt.Sscanf(word, "%d.%d.%d", &v[0], &v[1], &v[2])
	if n != 3 || slices.Min(v[:]) < 0 {
		return Version{}, false
	}
	return v, true
}

// Answers caches programs' answers: all agents of one up ask the same. The zero Answers
// is empty. It is safe for concurrent use.
type Answers[T any] struct {
	mu   sync.Mutex // guards the fields below, also while a program is asked
	kept map[string]answer[T]
}

type answer[T any] struct {
	value T
	err   error
}

// Get returns the answer under key, and asks for it if there is none. A caller waits
// while another is asking. An answer is not kept if ctx has ended: it says more about
// the caller than about the program.
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
