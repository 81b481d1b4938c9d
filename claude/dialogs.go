package claude

import (
	"slices"
	"strings"

	"netsky/agent"
)

// Names of dialogs, as status and up show them.
const (
	trustDialog    = "workspace trust"
	bypassDialog   = "bypass warning"
	channelsDialog = "development channels"
	autoDialog     = "auto mode"
	loginDialog    = "login"
	keyDialog      = "custom API key"
	importsDialog  = "external imports"
	limitDialog    = "usage limit"
	transcriptView = "transcript"
	permission     = "permission"
	unknownDialog  = "unknown dialog"
)

// A kind is a dialog recognised by the beginning of its first line.
type kind struct {
	title string
	name  string
	text  func(f frame) string // what it asks; nil: its first line
}

var kinds = []kind{
	{"Accessing workspace:", trustDialog, workspace},
	{"WARNING: Claude Code running in Bypass Permissions mode", bypassDialog, nil},
	// Not observed: channels require a login. The words are from the program.
	{"WARNING: Loading development channels", channelsDialog, nil},
	{"Auto mode can't check actions", autoDialog, nil},
	{"Auto mode switched to its built-in", autoDialog, nil}, // not seen
	{"We're changing auto mode", autoDialog, nil},           // not seen
	{"Detected a custom API key in your environment", keyDialog, nil},
	{"New MCP server found in this project", "project MCP servers", nil},
	{"Login", loginDialog, question},
	{"Select login method", loginDialog, nil},
	{"Allow external CLAUDE.md file imports?", importsDialog, nil},
	{"Settings Error", "settings error", nil},
	{"Resume session", "resume", nil},
	{"Resume this conversation?", "resume", nil}, // not seen
	{"Held message from another session", "held message", nil},
	{"MCP server “", "MCP server's form", request},
	{"MCP server \"", "MCP server's form", request},
	{"Exit plan mode?", "plan", nil},
	{"Ready to code?", "plan", nil},
	{"Bash command", permission, request},
	{"Create file", permission, question},
	{"Edit file", permission, question},
	{"Overwrite file", permission, question}, // not seen
	{"Read file", permission, second},
	{"Fetch", permission, question},
	{"Tool use", permission, second},
	{"Select model", "model", nil},
	{"What do you want to do?", limitDialog, nil},
	// Not a dialog, but nothing can be typed there either.
	{"Showing detailed transcript", transcriptView, func(frame) string { return "it is open" }},
	{"☐ ", "question", below},
	// Several questions at once; the first may already be answered.
	{"←  ☐ ", "question", below},
	{"←  ☒ ", "question", below},
	{"←  ✔ ", "question", below},
}

// Recognise finds the dialog on a screen: the text of Claude's pane, captured without
// escapes, of any width. One that it does not know has the name "unknown dialog" and its
// first line as the text. A composer at the bottom means that there is no dialog, except
// that a session without a login says so above its composer; that has the login dialog's
// name. Keys is nil: [Answer] has them.
func Recognise(screen string) (agent.Dialog, bool) {
	l := readScreen(screen)
	if l.composer {
		if above := l.rules[len(l.rules)-2] - 1; above >= 0 && strings.Contains(l.lines[above], "Not logged in · run /login") {
			return notLoggedIn, true
		}
		return agent.Dialog{}, false
	}
	frames := l.frames()
	// What the owner can answer from elsewhere is named in full, as another key or another
	// file is another question.
	if d, ok := frames[0].decide(true); ok && len(l.rules) > 0 {
		d.Keys = nil
		return d, true
	}
	if d, ok := frames[0].known(); ok && frames[0].width > 0 {
		return d, true
	}
	low := l.lines[max(len(l.lines)-lowest, 0):]
	menu := selector(low)
	if menu < 0 && !isFooter(low) {
		return onboarding(l)
	}
	for _, f := range frames {
		if d, ok := f.known(); ok {
			return d, true
		}
	}
	if q := asked(low, menu); q != "" {
		if d, ok := (frame{lines: []string{q}}).known(); ok { // its title is above the pane
			return d, true
		}
		return agent.Dialog{Name: permission, Text: short(q)}, true
	}
	if name := byOptions(low); name != "" {
		return agent.Dialog{Name: name, Text: "its pane is too small to show it in full"}, true
	}
	return agent.Dialog{Name: unknownDialog, Text: short(frames[0].title())}, true
}

// Dialog returns the dialog on the screen of a launch's program, with the keys that say
// yes to it if the launch implies that: it combines [Recognise] and [Answer].
func (r *Runtime) Dialog(screen string, l agent.Launch) (agent.Dialog, bool) {
	d, ok := Recognise(screen)
	if ok {
		d.Keys = Answer(screen, l)
	}
	return d, ok
}

// notLoggedIn is what a session without a login shows above its composer.
var notLoggedIn = agent.Dialog{Name: loginDialog, Text: "not logged in"}

// lowest is how far from the bottom of a screen a dialog's menu is searched for, in
// non-empty lines.
const lowest = 40

// byOptions names the dialog, of those that can be answered, whose options are on the
// screen although its title is not.
func byOptions(lines []string) string {
	text := squash(strings.Join(lines, "|"))
	for _, a := range answers {
		there := len(a.options) > 0
		for _, o := range a.options {
			there = there && strings.Contains(text, squash(o)+"|")
		}
		if there {
			return a.name
		}
	}
	return ""
}

// onboarding recognises the first screen of a Claude that was never set up: it has neither
// rules nor, for a moment, a menu.
func onboarding(l look) (agent.Dialog, bool) {
	for _, line := range l.lines {
		if strings.HasPrefix(line, "Welcome to Claude Code v") {
			return agent.Dialog{Name: "onboarding", Text: short(line)}, true
		}
	}
	return agent.Dialog{}, false
}

// known names the frame by its first line.
func (f frame) known() (agent.Dialog, bool) {
	title := f.title()
	if strings.HasSuffix(title, "new MCP servers found in this project") {
		return agent.Dialog{Name: "project MCP servers", Text: short(title)}, true
	}
	// In a narrow pane the title may continue on the next line.
	head := strings.Join(f.words(2), " ")
	for _, k := range kinds {
		if strings.HasPrefix(title, k.title) || len(title) > 20 && strings.HasPrefix(head, k.title) {
			d := agent.Dialog{Name: k.name, Text: title}
			if k.text != nil {
				d.Text = k.text(f)
			}
			d.Text = short(d.Text)
			return d, true
		}
	}
	return agent.Dialog{}, false
}

// workspace returns the directory that the trust dialog asks about.
func workspace(f frame) string {
	for i := 1; i < len(f.lines); i++ {
		if strings.HasPrefix(strings.TrimSpace(f.lines[i]), "Quick safety check:") {
			return f.unwrap(f.lines[1:i])
		}
	}
	return f.unwrap(f.lines[1:min(2, len(f.lines))])
}

// second returns the frame's title and the words below it.
func second(f frame) string {
	return strings.Join(f.words(2), ": ")
}

// below returns what is below the frame's title.
func below(f frame) string {
	w := f.words(2)
	return w[len(w)-1]
}

// question returns what is above the frame's menu, or else its title.
func question(f frame) string {
	q := asked(f.lines, selector(f.lines))
	if q == "" || q == "Do you want to proceed?" {
		return f.title()
	}
	return q
}

// request returns the frame's title and what the request is for, which is between two
// dotted lines if there are any: if no hook ran, only the screen has it.
func request(f frame) string {
	lines := f.lines
	if menu := selector(lines); menu >= 0 {
		lines = lines[:menu]
	}
	dotted := func(line string) bool { return strings.HasPrefix(strings.TrimSpace(line), "╌╌╌") }
	if first := slices.IndexFunc(lines, dotted); first >= 0 {
		if n := slices.IndexFunc(lines[first+1:], dotted); n >= 0 {
			lines = lines[first+1 : first+1+n]
		}
	} else {
		lines = lines[min(1, len(lines)):]
	}
	var words []string
	for _, line := range (frame{lines: lines}).words(len(lines)) {
		if line != "Do you want to proceed?" {
			words = append(words, line)
		}
	}
	return strings.TrimSuffix(f.title()+": "+strings.Join(words, " ⏎ "), ": ")
}

// asked returns the line above a menu, if it is a question or an instruction.
func asked(lines []string, menu int) string {
	for i := menu - 1; i >= max(menu-4, 0); i-- {
		q := strings.TrimSpace(lines[i])
		if strings.HasPrefix(q, "Do you want to ") || strings.HasPrefix(q, "Select ") {
			return strings.TrimSuffix(q, ":")
		}
	}
	return ""
}

// maxText is the maximum length of a dialog's text, in bytes.
const maxText = 400

func short(s string) string {
	if len(s) <= maxText {
		return s
	}
	return strings.ToValidUTF8(s[:maxText], "") + "…"
}
