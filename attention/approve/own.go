package approve

import (
	"context"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"netsky/agent"
	"netsky/home"
	"netsky/internal/execx"
	"netsky/work/check"
	"netsky/work/git"
	"netsky/work/tree"
)

// An Own is what the owner lets agents do in their own worktrees without asking each time: `git add` and `git commit`
// of plain words, and exactly the check command. It is decided from the program's structured call alone.
type Own struct {
	Home  home.Dir
	Check check.Command // counts once the owner has agreed to its text
	Path  string        // PATH of whoever runs the command
}

// Allows reports whether that is all that a request asks for. What can't be told is not allowed.
func (o Own) Allows(ctx context.Context, q agent.Approval) bool {
	text, ok := shellText(q)
	if !ok {
		return false
	}
	w, ok := tree.WorksAt(o.Home, q.Agent, q.Dir)
	if !ok {
		return false
	}
	if check := strings.TrimSpace(o.Check.Text); strings.TrimSpace(text) == check && check != "" {
		agreed, err := o.Check.Agreed(o.Home)
		return agreed && err == nil
	}
	return commits(text) && o.finds(w.Dir) && plainRepository(ctx, w)
}

// shellText returns the one command of a request that is nothing else: no other argument may change how it runs.
func shellText(q agent.Approval) (text string, ok bool) {
	if q.Only != "" || q.Missing > 0 {
		return "", false
	}
	switch q.Tool {
	case "Bash": // Claude Code's
		harmless := func(f agent.Field) bool { return f.Name == "timeout" }
		return q.Text, q.Subject == "command" && !slices.ContainsFunc(q.Fields, func(f agent.Field) bool { return !harmless(f) })
	case "shell": // Codex's: the words of the shell that it starts
		if len(q.Fields) > 0 {
			return "", false
		}
		list, ok := split(q.Text, true)
		if ok && len(list) == 3 && slices.Contains(shells, list[0]) && (list[1] == "-lc" || list[1] == "-c") {
			return list[2], true
		}
		return q.Text, true
	}
	return "", false
}

// shells are those that Codex starts.
var shells = []string{"bash", "sh", "zsh", "/bin/bash", "/bin/sh", "/bin/zsh", "/usr/bin/bash", "/usr/bin/sh", "/usr/bin/zsh"}

// commits reports whether a shell would read the text as one `git add` or one `git commit` of plain words.
func commits(text string) bool {
	list, ok := words(text)
	if !ok || len(list) < 3 || list[0] != "git" {
		return false
	}
	switch args := list[2:]; list[1] {
	case "add":
		plain, _ := only(args, []string{"-A", "--all", "-u", "--update", "-v", "--verbose"}, nil)
		return plain
	case "commit":
		// Without a message git would start an editor.
		plain, message := only(args, []string{"-a", "--all", "-q", "--quiet", "-v", "--verbose"}, []string{"-m", "-am", "--message"})
		return plain && message
	}
	return false
}

// only reports whether there are only these flags, those that take a message with one, and plain names; and whether there
// is a message.
func only(args, flags, messages []string) (plain, message bool) {
	names := false
	for i := 0; i < len(args); i++ {
		word := args[i]
		switch {
		case names || !strings.HasPrefix(word, "-"):
			if !plainName(word) {
				return false, false
			}
		case word == "--":
			names = true
		case slices.Contains(messages, word):
			if i++; i == len(args) || strings.TrimSpace(args[i]) == "" {
				return false, false
			}
			message = true
		case !slices.Contains(flags, word):
			return false, false
		}
	}
	return true, message
}

// plainName reports whether a word names files below the directory, and nothing else to git.
func plainName(word string) bool {
	return word != "" && word[0] != ':' && word[0] != '/' && word[0] != '-' && !slices.Contains(strings.Split(word, "/"), "..")
}

// words splits a text as every shell does, if that is beyond doubt: words without any sign that means something to a
// shell, and texts in quotes in which nothing is replaced.
func words(text string) (list []string, ok bool) { return split(text, false) }

// split is words; with escapes, a backslash in double quotes escapes what it may escape there, as Codex writes words.
func split(text string, escapes bool) (list []string, ok bool) {
	word, open := "", false
	for text != "" {
		c, size := utf8.DecodeRuneInString(text)
		switch {
		case c == ' ':
			if open {
				list = append(list, word)
			}
			word, open = "", false
		case c == '\'' || c == '"':
			inner, end := quoted(text, escapes && c == '"')
			if end == 0 || !quotable(text[1:end], c, escapes) {
				return nil, false
			}
			word, open, size = word+inner, true, end+1
		case plain(c) && (c != '=' || open): // zsh replaces one that begins a word
			word, open = word+text[:size], true
		default:
			return nil, false
		}
		text = text[size:]
	}
	if open {
		list = append(list, word)
	}
	return list, true
}

// quoted returns what is in the quotes that a text begins with, and where they end; 0 is nowhere, or that a backslash
// stands before what it does not escape.
func quoted(text string, escapes bool) (inner string, end int) {
	for i := 1; i < len(text); i++ {
		switch c := text[i]; {
		case c == text[0]:
			return inner, i
		case escapes && (c == '$' || c == '`'):
			return "", 0
		case escapes && c == '\\':
			if i++; i == len(text) || !strings.ContainsRune("\"\\$`", rune(text[i])) {
				return "", 0
			}
		}
		inner += text[i : i+1]
	}
	return "", 0
}

// plain reports whether a character means itself to every shell, wherever it is in a word.
func plain(c rune) bool {
	if c < 0x80 {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("_./,:@+=-", c)
	}
	return unicode.IsLetter(c) || unicode.IsDigit(c)
}

// quotable reports whether a text in quotes is what it looks like.
func quotable(text string, quote rune, escaped bool) bool {
	for _, c := range text {
		switch {
		case c == '\n' || c == '\t':
		case unicode.IsControl(c) || unicode.Is(unicode.Bidi_Control, c) || c == unicode.ReplacementChar:
			return false
		case quote == '"' && !escaped && strings.ContainsRune("$`\\!", c):
			return false
		}
	}
	return true
}

// finds reports whether no program in the worktree is found under git's name.
func (o Own) finds(dir string) bool {
	for _, at := range filepath.SplitList(o.Path) {
		if !path.IsAbs(at) || within(dir, at) {
			return false
		}
	}
	return execx.Find(o.Path, "git") != ""
}

func within(root, dir string) bool {
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	if real, err := filepath.EvalSymlinks(root); err == nil {
		root = real
	}
	return tree.Within(root, dir)
}

// plainRepository reports whether a git in the worktree runs no program that is in it: neither a hook, nor one
// that a repository within its files names.
func plainRepository(ctx context.Context, w tree.Worktree) bool {
	r, err := w.Git() // fails if .git leads elsewhere
	if err != nil {
		return false
	}
	r.Hooks = ""
	hooks, err := r.HooksDir(ctx)
	if err != nil || within(w.Dir, hooks) {
		return false
	}
	names, _ := os.ReadDir(hooks)
	for _, e := range names {
		if within(w.Dir, filepath.Join(hooks, e.Name())) { // a link
			return false
		}
	}
	return !holdsRepository(ctx, r)
}

// holdsRepository reports whether the index has another repository, whose configuration git would obey.
func holdsRepository(ctx context.Context, r git.Repo) bool {
	list, err := r.Look().List(ctx, "ls-files", "--stage", "-z")
	return err != nil || strings.HasPrefix(list, "160000 ") || strings.Contains(list, "\x00160000 ")
}
