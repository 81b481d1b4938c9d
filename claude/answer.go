package claude

import (
	"path/filepath"
	"slices"
	"strings"

	"netsky/agent"
)

// A yes is a dialog that the owner's own command may have answered already. All of it is
// compared, from the rule above it to the last line of the screen, so that netsky never
// agrees to words it does not know: a folder's dialog that also warns of commands in its
// settings is a different one.
type yes struct {
	name string
	// text is what is above the menu; "…" stands for anything, which implied judges.
	text    string
	options []string // the first is the yes; none: there is no menu
	footer  string
	implied func(f frame, free string, l agent.Launch) bool
}

// decidable are dialogs that no launch implies an answer to, and that the owner can answer
// without going to the pane, for several agents at once. The text in place of the "…" is
// part of the question: another key is another question.
var decidable = []struct {
	yes
	no []string // the options, the no first
}{
	{
		yes: yes{
			name:    keyDialog,
			text:    "Detected a custom API key in your environment ANTHROPIC_API_KEY: … Do you want to use this API key?",
			options: []string{"Yes", "No (recommended)"},
			footer:  confirmFooter,
		},
		no: []string{"No (recommended)", "Yes"},
	}, {
		yes: yes{
			name: importsDialog,
			text: `Allow external CLAUDE.md file imports? This project's CLAUDE.md or .claude/rules imports files outside
				the current working directory. Never allow this for third-party repositories. External imports: …
				Important: Only use Claude Code with files you trust. Accessing untrusted files may pose security
				risks https://code.claude.com/docs/en/security`,
			options: []string{"Yes, allow external imports", "No, disable external imports"},
			footer:  confirmFooter,
		},
		no: []string{"No, disable external imports", "Yes, allow external imports"},
	},
}

// Decidable reports whether dialogs of that name can be answered by [Runtime.Decide].
func (r *Runtime) Decidable(name string) bool {
	return name == keyDialog || name == importsDialog
}

// Dismisses reports whether the program opens dialogs of that name by itself; Escape closes them.
func (r *Runtime) Dismisses(name string) bool { return name == limitDialog }

// Decide returns the dialog on the screen, if the owner can answer it from elsewhere, with
// the keys for it; as with [Answer], only if every word is known.
func (r *Runtime) Decide(screen string, allow bool) (agent.Dialog, bool) {
	look := readScreen(screen)
	if look.composer || len(look.rules) == 0 {
		return agent.Dialog{}, false
	}
	return look.frames()[0].decide(allow)
}

func (f frame) decide(allow bool) (agent.Dialog, bool) {
	for _, d := range decidable {
		if !allow {
			d.options = d.no
		}
		if keys, free, ok := d.match(f); ok {
			return agent.Dialog{Name: d.name, Text: short(f.title() + " " + free), Keys: keys}, true
		}
	}
	return agent.Dialog{}, false
}

const confirmFooter = "Enter to confirm · Esc to cancel"

var answers = []yes{
	{
		name: trustDialog,
		text: `Accessing workspace: … Quick safety check: Is this a project you created or one you trust?
			(Like your own code, a well-known open source project, or work from your team). If not, take a
			moment to review what's in this folder first. Claude Code'll be able to read, edit, and execute
			files here. Security guide`,
		options: []string{"Yes, I trust this folder", "No, exit"},
		footer:  confirmFooter,
		implied: isLaunchDir,
	}, {
		name: bypassDialog,
		text: `WARNING: Claude Code running in Bypass Permissions mode In Bypass Permissions mode, Claude Code
			will not ask for your approval before running potentially dangerous commands. This mode should
			only be used in a sandboxed container/VM that has restricted internet access and can easily be
			restored if damaged. By proceeding, you accept all responsibility for actions taken while running
			in Bypass Permissions mode. https://code.claude.com/docs/en/security`,
		options: []string{"Yes, I accept", "No, exit"},
		footer:  confirmFooter,
		implied: func(_ frame, _ string, l agent.Launch) bool {
			return modeOf(l.Argv) == "bypassPermissions" || slices.Contains(l.Argv, "--dangerously-skip-permissions")
		},
	}, {
		// Not observed, as channels require a login: the words are from the program, laid
		// out like its other dialogs.
		name: channelsDialog,
		text: `WARNING: Loading development channels --dangerously-load-development-channels is for local channel
			development only. Do not use this option to run channels you have downloaded off the internet.
			Please use --channels to run a list of approved channels. Channels: …`,
		options: []string{"I am using this for local development", "Exit"},
		footer:  confirmFooter,
		implied: isLaunchChannels,
	}, {
		// It says that the mode cannot work, and closing it does not leave the mode. Each
		// action is then asked for.
		name: autoDialog,
		text: `Auto mode can't check actions in this session Auto mode's safety check runs on the server. … You can
			stay in auto mode and approve each action that needs the check yourself. Or you can leave for
			accept edits mode, which has no safety check, and auto mode stays off. These then run without
			asking: file edits and commands such as rm and mv in your working folders, some tools, such as
			subagents and scheduled tasks, and anything allowed by rules that auto mode set aside, such as
			Bash(*). This turn stops, so its waiting actions don't run, but background tasks go on. Claude
			goes on at your next message, or sooner. To get the check back, ask whoever runs your gateway to
			pass it through: https://code.claude.com/docs/en/permission-modes#server-side-classifier-review`,
		footer:  "Enter to stay in auto mode · shift+Tab to leave for accept edits mode and stop · Esc to cancel",
		implied: func(_ frame, _ string, l agent.Launch) bool { return modeOf(l.Argv) == "auto" },
	},
}

// Answer returns the keys that say yes to the dialog on the screen, or nil if the launch
// does not imply that yes, or if anything on the screen differs from what is known. The
// last key answers, the ones before it move the arrow; press each only when the screen
// calls for it and the keys after it: once the arrow has moved, Answer returns the rest.
//
// What a model or a file has written cannot cause this: see [Recognise]. What remains is a
// program that, at the moment of a look, writes to the terminal past Claude all of a
// dialog that the launch implies; it already runs as the same user, and all that it gains
// is an arrow and one Enter in that pane. And a screen that changes between the look and
// the key: the key acts on what is there then.
func Answer(screen string, l agent.Launch) []string {
	look := readScreen(screen)
	if look.composer || len(look.rules) == 0 {
		return nil
	}
	f := look.frames()[0]
	for _, a := range answers {
		if keys, free, ok := a.match(f); ok {
			if !a.implied(f, free, l) {
				return nil
			}
			return keys
		}
	}
	return nil
}

// match compares the frame with the dialog. free is the text in place of the "…", without
// white space.
func (a yes) match(f frame) (keys []string, free string, ok bool) {
	body, footer := f.split(a.footer)
	if footer == "" {
		return nil, "", false
	}
	keys = []string{"Enter"}
	if len(a.options) > 0 {
		n := len(body) - len(a.options)
		if n < 1 {
			return nil, "", false
		}
		moves, ok := a.menu(body[n:])
		if !ok {
			return nil, "", false
		}
		body, keys = body[:n], append(moves, keys...)
	}
	before, after, _ := strings.Cut(squash(a.text), "…")
	text := squash(strings.Join(body, ""))
	if !strings.Contains(a.text, "…") {
		return keys, "", text == before
	}
	if len(text) < len(before)+len(after) || !strings.HasPrefix(text, before) || !strings.HasSuffix(text, after) {
		return nil, "", false
	}
	return keys, text[len(before) : len(text)-len(after)], true
}

// split removes the footer, which may be wrapped, from the frame's end.
func (f frame) split(footer string) (body []string, last string) {
	want := squash(footer)
	for n := 1; n <= min(4, len(f.lines)); n++ {
		at := len(f.lines) - n
		if squash(strings.Join(f.lines[at:], "")) == want {
			return f.lines[:at], want
		}
	}
	return nil, ""
}

// menu reads a menu that has exactly the known options, in any order, and returns the
// moves of its arrow to the yes.
func (a yes) menu(lines []string) (moves []string, ok bool) {
	at, to := -1, -1
	var have []string
	for i, line := range lines {
		label := strings.TrimSpace(line)
		if rest, selected := strings.CutPrefix(label, "❯ "); selected {
			if at >= 0 {
				return nil, false
			}
			at, label = i, strings.TrimSpace(rest)
		}
		if label == a.options[0] {
			to = i
		}
		have = append(have, label)
	}
	want := slices.Clone(a.options)
	slices.Sort(want)
	slices.Sort(have)
	if at < 0 || to < 0 || !slices.Equal(want, have) {
		return nil, false
	}
	for range at - to {
		moves = append(moves, "Up")
	}
	for range to - at {
		moves = append(moves, "Down")
	}
	return moves, true
}

// isLaunchDir reports whether the directory asked about is the one that the agent was
// started in. Claude shows it with links resolved.
func isLaunchDir(f frame, free string, l agent.Launch) bool {
	dirs := []string{l.Dir}
	if real, err := filepath.EvalSymlinks(l.Dir); err == nil {
		dirs = append(dirs, real)
	}
	// In a wrapped path the spaces can't be told from the breaks.
	shown := strings.TrimSpace(f.lines[1])
	for _, dir := range dirs {
		if dir != "" && squash(dir) == free && (shown == dir || squash(shown) != free) {
			return true
		}
	}
	return false
}

// isLaunchChannels reports whether a dialog asks about exactly the launch's channels.
func isLaunchChannels(_ frame, free string, l agent.Launch) bool {
	const flag = "--dangerously-load-development-channels"
	at := slices.Index(l.Argv, flag)
	if at < 0 {
		return false
	}
	var list []string
	for _, word := range l.Argv[at+1:] {
		if strings.HasPrefix(word, "-") {
			break
		}
		list = append(list, word)
	}
	return len(list) > 0 && squash(strings.Join(list, ",")) == free
}

// modeOf returns the permission mode that a command line asks for, or "".
func modeOf(argv []string) (m string) {
	for i, word := range argv {
		if v, ok := strings.CutPrefix(word, "--permission-mode="); ok {
			m = v
		} else if word == "--permission-mode" && i+1 < len(argv) {
			m = argv[i+1]
		}
	}
	return m
}
