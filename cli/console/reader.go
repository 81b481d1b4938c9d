package console

import (
	"context"
	"errors"
	"io"
	"time"
)

// A Reader is whoever reads stdout: it prints, and knows as far as the system tells whether a reader took it:
// what lies in the pipe of a reader that has gone was printed for nobody.
type Reader struct {
	out  io.Writer
	pipe *pipe     // nil: written is taken
	till time.Time // how long a slow reader is waited for, all in all; zero before it begins

	person bool // who reads is at a terminal, and waited for without end
	slow   bool // the reader was waited for in vain, and has taken nothing since
}

// slowReader is how long all of a drain waits for its reader: one that reads only
// when we have ended counts as one that will.
const slowReader = 2 * time.Second

// NewReader prints to out, behind which the stream is. person says that who reads is at a
// terminal, and is waited for without end.
func NewReader(out io.Writer, stream any, person bool) *Reader {
	return &Reader{out: out, pipe: pipeOf(stream), person: person}
}

// ErrNoStdout reports that there is no stdout.
var ErrNoStdout = errors.New("stdout: closed; nothing is taken")

// ErrNotTaken reports that the reader has gone and has not read all.
var ErrNotTaken = errors.New("stdout: its reader has gone")

// Print prints, and waits for the reader. Once it has been slow, what it has not
// taken counts as what it will.
func (t *Reader) Print(ctx context.Context, text string) error {
	if t.till.IsZero() {
		t.till = time.Now().Add(slowReader)
	}
	if _, err := t.out.Write([]byte(text)); err != nil {
		return err
	}
	_, err := t.wait(ctx, t.till)
	return err
}

// Show is print for what has to be known to be taken: it waits for each anew, and
// reports whether the reader has taken all that was printed.
func (t *Reader) Show(ctx context.Context, text string) (taken bool, err error) {
	if _, err := t.out.Write([]byte(text)); err != nil {
		return false, err
	}
	till := time.Now()
	if !t.slow {
		till = till.Add(slowReader)
	}
	if !t.person { // it is in the pipe already, whatever comes
		ctx = context.WithoutCancel(ctx)
	}
	taken, err = t.wait(ctx, till)
	t.slow = err == nil && !taken
	return taken, err
}

func (t *Reader) wait(ctx context.Context, till time.Time) (taken bool, err error) {
	if t.pipe == nil {
		return true, nil
	}
	for wait := 50 * time.Microsecond; ; wait = min(2*wait, 10*time.Millisecond) {
		unread, gone := t.pipe.state()
		switch {
		case unread && gone:
			return false, ErrNotTaken
		case !unread:
			return true, nil
		case !t.person && time.Now().After(till):
			return false, nil
		}
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-time.After(wait):
		}
	}
}
