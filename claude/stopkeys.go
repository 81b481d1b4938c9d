package claude

import (
	"context"
	"encoding/json"
	"path/filepath"
	"regexp"
	"strings"
)

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

var vimMode = regexp.MustCompile(`(?m)^\s*-- [A-Z]+( [A-Z]+)* --`)

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
	case l.composer && vimMode.MatchString(strings.Join(l.lines[l.rules[len(l.rules)-1]+1:], "\n")):
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

var functionKey = regexp.MustCompile(`^f[0-9]{1,2}$`)

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
		case functionKey.MatchString(last):
			last = strings.ToUpper(last)
		case len(last) != 1:
			return nil
		}
		keys = append(keys, key+last)
	}
	return keys
}
