package tmux

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// deaf is true for a pane whose program would not get typed keys.
const deaf = "#{||:#{pane_in_mode},#{pane_dead}}"

// Keys presses keys in the pane, one after the other: tmux's names for keys,
// such as Enter, C-c or Escape; a word that is no such name is typed. The error
// matches [ErrInMode] or [ErrNotFound] if the program would not get them.
func (s *Server) Keys(ctx context.Context, pane string, keys ...string) error {
	target, err := exact(pane)
	if err != nil {
		return err
	}
	words := make([]string, len(keys))
	for i, k := range keys {
		words[i] = Quote(k)
	}
	send := "send-keys -t " + Quote(target) + " -- " + strings.Join(words, " ")
	if err := oneLine(send); err != nil {
		return err
	}
	if len(keys) == 0 {
		return nil
	}
	ctx, cancel, err := settled(ctx, "send-keys")
	if err != nil {
		return err
	}
	defer cancel()
	out, err := s.run(ctx, strings.NewReader(unlessDeaf(target, send, "")+"\n"), "source-file", "-")
	return heard(pane, out, err)
}

// Paste inserts text into the pane as if it had been pasted, bracketed if the program
// asked for that, without an Enter at the end. Text of any size is fine; control
// characters other than line feed and tab are refused, as is text that is not UTF-8.
// Errors are as for [Server.Keys]. After an error nothing was pasted, unless ctx's
// deadline passed meanwhile.
func (s *Server) Paste(ctx context.Context, pane, text string) error {
	target, err := exact(pane)
	if err != nil {
		return err
	}
	if err := harmless(text); err != nil {
		return fmt.Errorf("tmux paste-buffer: %s: %w", pane, err)
	}
	if text == "" {
		return nil
	}
	ctx, cancel, err := settled(ctx, "paste-buffer")
	if err != nil {
		return err
	}
	defer cancel()
	buffer := "paste-" + rand.Text()
	forget := "delete-buffer -b " + buffer
	paste := "paste-buffer -p -r -d -b " + buffer + " -t " + Quote(target)
	out, err := s.run(ctx, strings.NewReader(text),
		"load-buffer", "-b", buffer, "-", ";",
		"if-shell", "-F", "-t", target, deaf, forget+"; "+whyDeaf(target), paste)
	if err != nil {
		_, _ = s.run(ctx, nil, "delete-buffer", "-b", buffer)
	}
	return heard(pane, out, err)
}

// unlessDeaf returns a line that executes command if the pane's program gets it.
func unlessDeaf(target, command, otherwise string) string {
	return "if-shell -F -t " + Quote(target) + " " + Quote(deaf) + " { " + otherwise + whyDeaf(target) + " } { " + command + " }"
}

func whyDeaf(target string) string {
	return "display-message -p -t " + Quote(target) + ` "#{?pane_dead,dead,mode}"`
}

// heard makes an error from the output of a deaf pane's guard.
func heard(pane, out string, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", pane, err)
	}
	switch strings.TrimSpace(out) {
	case "":
		return nil
	case "dead":
		return fmt.Errorf("%s: %w: its program has ended", pane, ErrNotFound)
	default:
		return fmt.Errorf("%s: %w", pane, ErrInMode)
	}
}

// harmless refuses text with which a program could be made to do more than receive it:
// an end of the bracketed paste, an interrupt, an escape sequence.
func harmless(text string) error {
	if !utf8.ValidString(text) {
		return errors.New("text is not UTF-8")
	}
	for i, r := range text {
		if r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 {
			return fmt.Errorf("control character %U at byte %d", r, i)
		}
	}
	return nil
}

// Capture says what to read of a pane.
type Capture struct {
	Lines   int  // lines of history above the screen
	Escapes bool // with colours and attributes as escape sequences
}

func (o Capture) flags() string {
	var flags string
	if o.Escapes {
		flags += " -e"
	}
	if o.Lines > 0 {
		flags += " -S -" + strconv.Itoa(o.Lines)
	}
	return flags
}

// Capture reads the pane's screen, empty lines at its end included, each line
// ended by a line feed.
func (s *Server) Capture(ctx context.Context, pane string, o Capture) (string, error) {
	target, err := exact(pane)
	if err != nil {
		return "", err
	}
	args := append([]string{"capture-pane", "-p", "-t", target}, strings.Fields(o.flags())...)
	return s.run(ctx, nil, args...)
}
