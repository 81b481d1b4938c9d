package claude

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"

	"netsky/agent"
	"netsky/home"
	"netsky/internal/proc"
)

const (
	// calm is how long a composer must be unchanged to conclude that nobody is typing
	// there.
	calm = 300 * time.Millisecond
	// standPatience limits the wait for a pasted line to appear in the composer.
	standPatience = 3 * time.Second
	// takenPatience limits the wait for it to be accepted, after each Enter.
	takenPatience = 3 * time.Second
)

// pointer returns the line that says that messages wait.
func pointer(n int) string {
	if n == 1 {
		return "1 message waits for you: call the inbox tool"
	}
	return fmt.Sprintf("%d messages wait for you: call the inbox tool", n)
}

// isPointer matches such a line without its white space.
var isPointer = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^\d+messages?waits?foryou:calltheinboxtool$`)
})

// Point types one line into the composer that says that n messages wait. It does so only
// if that disturbs nothing: the session is idle, no dialog is open, the composer is empty
// and nobody is typing. The error names the obstacle; after one that quotes the line, the
// line may still be in the composer. nil means that Claude Code has accepted the line.
func (s *Session) Point(ctx context.Context, n int) error {
	s.hands.Lock()
	defer s.hands.Unlock()
	if s.Pane == nil {
		return fmt.Errorf("%s: no pane", s.Agent)
	}
	box, err := s.undisturbed(ctx)
	if err != nil {
		return fmt.Errorf("%s: %w", s.Agent, err)
	}
	tail := home.Events(s.Home).Tail(s.Agent)
	defer tail.Close()
	if err := tail.Read(func(agent.Event) {}); err != nil {
		return err
	}
	text := pointer(n)
	if !box.empty { // netsky's own line, which an Escape brought back
		text = box.text
	} else if err := s.Pane.Paste(ctx, text); err != nil {
		return err
	}
	if !until(ctx, standPatience, func() bool { return s.stands(ctx, text) }) {
		return fmt.Errorf("%s: the composer does not hold exactly the line %q", s.Agent, text)
	}
	return s.enter(ctx, text, tail)
}

// undisturbed returns the composer, if a line may be typed there.
func (s *Session) undisturbed(ctx context.Context) (composer, error) {
	before, err := s.free(ctx)
	if err != nil {
		return composer{}, err
	}
	if proc.Sleep(ctx, calm) != nil {
		return composer{}, ctx.Err()
	}
	after, err := s.free(ctx)
	if err == nil && before.shown != after.shown {
		err = errors.New("somebody is typing in the pane")
	}
	return after, err
}

// free returns the composer, if at this moment nothing forbids typing there.
func (s *Session) free(ctx context.Context) (composer, error) {
	r, err := FindSession(s.ConfigDir, s.PID)
	if err != nil {
		return composer{}, err
	}
	if r.Status != statusIdle && r.Status != statusShell {
		return composer{}, fmt.Errorf("not idle: %s", strings.TrimSuffix(r.Status+", "+r.WaitingFor, ", "))
	}
	screen, err := s.Pane.Screen(ctx)
	if err != nil {
		return composer{}, err
	}
	if d, ok := Recognise(plain(screen)); ok {
		return composer{}, fmt.Errorf("a dialog is open: %s", d.Name)
	}
	box, ok := findComposer(styledLines(screen))
	switch {
	case !ok:
		return composer{}, errors.New("no composer on the screen")
	case !box.empty && !isPointer().MatchString(squash(box.text)):
		return composer{}, errors.New("the composer holds a draft")
	}
	return box, nil
}

// stands reports whether the composer holds the line and nothing else.
func (s *Session) stands(ctx context.Context, text string) bool {
	screen, err := s.Pane.Screen(ctx)
	if err != nil {
		return false
	}
	box, ok := findComposer(styledLines(screen))
	return ok && squash(box.text) == squash(text)
}

// enter submits the line in the composer, with a second Enter at most: one that comes too
// early is lost.
func (s *Session) enter(ctx context.Context, text string, tail *home.EventTail) error {
	taken := false
	looks := func() bool {
		_ = tail.Read(func(e agent.Event) {
			taken = taken || e.Event == agent.EventPrompt && squash(e.Text) == squash(text)
		})
		return taken
	}
	for range 2 {
		// A message from another session may have opened a dialog, which the key would
		// answer.
		if r, err := FindSession(s.ConfigDir, s.PID); err != nil || r.Status != statusIdle && r.Status != statusShell {
			break
		}
		if err := s.Pane.Keys(ctx, "Enter"); err != nil {
			return err
		}
		if until(ctx, takenPatience, looks) {
			return nil
		}
		if !s.stands(ctx, text) {
			break
		}
	}
	if r, err := FindSession(s.ConfigDir, s.PID); err == nil && r.Status == statusBusy && !s.stands(ctx, text) {
		return nil // accepted, and the hook is late
	}
	return fmt.Errorf("%s: no sign that the line %q was accepted", s.Agent, text)
}
