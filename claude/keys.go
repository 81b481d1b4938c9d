package claude

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
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

const (
	escape  = "Escape"
	control = "C-c"
	// cancelAction is what Claude Code calls ending the running turn in keybindings.json.
	cancelAction = "chat:cancel"
)

// A stopper knows the keys that end a running turn, one after the other if those before had
// no effect. Escape does, unless the person has given that to another key, or to none; or
// the composer is in a mode of vim's, which Escape would only leave. Ctrl+C does then, if it
// still has its meaning, and in vim's modes it keeps what is in the composer.
type stopper struct {
	left    [][]string // by tmux's names
	pressed []string   // all that were
	last    []string
	why     string // they may have no effect
}

var vimMode = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?m)^\s*-- [A-Z]+( [A-Z]+)* --`) })

// stopper returns the one for the session as it is now.
func (s *Session) stopper(ctx context.Context) *stopper {
	ctx, cancel := context.WithTimeout(ctx, lookWithin)
	defer cancel()
	screen, err := s.Pane.Screen(ctx)
	if err != nil {
		screen = "" // as without vim
	}
	file := filepath.Join(s.ConfigDir, "keybindings.json")
	keys, changed := cancelKeys(file)
	p := &stopper{}
	if changed {
		p.why = "; " + file + " has changed which key ends a turn"
	}
	l := readScreen(plain(screen))
	switch {
	case l.composer && vimMode().MatchString(strings.Join(l.lines[l.rules[len(l.rules)-1]+1:], "\n")):
		p.why += "; its composer is in vim mode (editorMode in Claude Code's settings)"
		if p.left = [][]string{{control}}; keys != nil {
			p.left = append(p.left, keys, keys) // the first may only leave the mode
		}
	case keys == nil:
		p.left = [][]string{{control}}
	default:
		p.left = [][]string{keys}
	}
	return p
}

// press presses the next keys, if there are any.
func (p *stopper) press(ctx context.Context, pane Pane) error {
	if len(p.left) == 0 {
		return nil
	}
	p.last, p.left = p.left[0], p.left[1:]
	return p.again(ctx, pane)
}

// again presses the last keys once more.
func (p *stopper) again(ctx context.Context, pane Pane) error {
	p.pressed = append(p.pressed, strings.Join(p.last, " "))
	return pane.Keys(ctx, p.last...)
}

// cancelKeys returns the keys that end a turn by a person's keybindings.json; nil if none
// does, or none that tmux can press. changed reports that Escape does not.
func cancelKeys(file string) (keys []string, changed bool) {
	keys = []string{escape}
	o, err := readObject(file)
	if err != nil {
		return keys, false // there is none, or Claude Code does not heed it
	}
	var list []struct {
		Context  string             `json:"context"`
		Bindings map[string]*string `json:"bindings"`
	}
	if json.Unmarshal(o["bindings"], &list) != nil {
		return keys, false
	}
	chat := map[string]string{escape: cancelAction}
	for _, b := range list {
		for named, action := range b.Bindings {
			if words := tmuxKeys(named); b.Context == "Chat" && words != nil {
				chat[strings.Join(words, " ")] = ""
				if action != nil {
					chat[strings.Join(words, " ")] = *action
				}
			}
		}
	}
	if chat[escape] == cancelAction {
		return keys, false
	}
	keys = nil
	for words, action := range chat {
		if action == cancelAction {
			keys = strings.Fields(words)
		}
	}
	return keys, true
}

var functionKey = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^f[0-9]{1,2}$`) })

// tmuxKeys translates keys as Claude Code names them, "ctrl+x ctrl+k" or "escape"; nil if
// it can't.
func tmuxKeys(named string) (keys []string) {
	mods := map[string]string{"ctrl": "C-", "control": "C-", "alt": "M-", "meta": "M-", "opt": "M-", "option": "M-", "shift": "S-"}
	known := map[string]string{"esc": escape, "escape": escape, "enter": "Enter", "return": "Enter", "tab": "Tab", "space": "Space",
		"backspace": "BSpace", "up": "Up", "down": "Down", "left": "Left", "right": "Right"}
	for chord := range strings.FieldsSeq(strings.ToLower(named)) {
		parts := strings.Split(chord, "+")
		key, last := "", parts[len(parts)-1]
		for _, m := range parts[:len(parts)-1] {
			if mods[m] == "" {
				return nil
			}
			key += mods[m]
		}
		switch {
		case known[last] != "":
			last = known[last]
		case functionKey().MatchString(last):
			last = strings.ToUpper(last)
		case len(last) != 1:
			return nil
		}
		keys = append(keys, key+last)
	}
	return keys
}

const (
	declineAgain = 2 * time.Second // for a dialog to close
	openedWithin = 10 * time.Second
)

// decline closes the dialog with which Claude Code 2.1.329 offers, after a usage limit, to
// wait for the reset or to upgrade, and behind which it takes no message. One Escape means
// neither; the message is offered again when the account serves. It is pressed only if the
// failed turn has opened the dialog, not a person.
func (s *Session) decline(ctx context.Context) {
	if !s.hands.TryLock() { // an interrupt takes its time
		return
	}
	defer s.hands.Unlock()
	if s.Pane == nil || time.Since(s.declined) < declineAgain {
		return
	}
	f := s.known()
	r, err := FindSession(s.ConfigDir, s.PID)
	if err != nil || r.Status != statusWaiting || f.failed.fault.Reason != agent.UsageLimit ||
		r.StatusMS < f.prompted || r.StatusMS > f.failed.ms+openedWithin.Milliseconds() {
		return
	}
	screen, err := s.Pane.Screen(ctx)
	if d, ok := Recognise(plain(screen)); err != nil || !ok || d.Name != limitDialog {
		return
	}
	s.declined = time.Now()
	_ = s.Pane.Keys(ctx, "Escape") // else it is pressed at the next look
}
