package cli

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// A commandLine is what was typed, taken apart: options may stand before the verb,
// behind it and behind its arguments, as people write them (`netsky up 2 --type
// demo`). The library's parser stops at the first argument and would take what
// follows for more of them.
type commandLine struct {
	verbs   []string     // the path of the verb
	command *cli.Command // nil above all verbs
	options []string     // each followed by its value
	words   []string     // the arguments
	open    string       // the last option, if its value is missing
	literal bool         // "--" was among them
	help    bool         // help is asked for: nothing runs, wherever that stands
	version bool         // likewise, before the verb
}

// parseLine takes the words behind the program's name apart. What stands behind
// "--" is argument alone, and so is a word that can be no option, such as a text
// that begins with a dash and holds a space.
func parseLine(a *cli.App, rest []string) commandLine {
	var l commandLine
	flags, commands := a.Flags, a.Commands
	descending := true
	for len(rest) > 0 {
		word := rest[0]
		rest = rest[1:]
		switch i := slices.IndexFunc(commands, func(c *cli.Command) bool { return c.HasName(word) }); {
		case word == "--":
			l.literal = true
			l.words = append(l.words, rest...)
			return l
		case asksHelp(flags, word):
			l.help = true
		case l.command == nil && optionIn(a.Flags[:1], word):
			l.version = true
		case !optionLike(word) && i >= 0 && descending:
			l.verbs, l.command = append(l.verbs, word), commands[i]
			flags, commands = commands[i].Flags, commands[i].Subcommands
		case !optionLike(word):
			descending = false
			l.words = append(l.words, word)
		default:
			descending = false
			l.options = append(l.options, word)
			switch {
			case !wantsValue(flags, word):
			case len(rest) == 0:
				l.open = word
			case asksHelp(flags, rest[0]): // no value that anybody means
			default:
				l.options = append(l.options, rest[0])
				rest = rest[1:]
			}
		}
	}
	return l
}

// flagsFirst puts a command line in the order that the library wants. Where help
// or the version is asked for, nothing else is left of it.
func flagsFirst(a *cli.App, args []string) []string {
	if len(args) == 0 {
		return args
	}
	l := parseLine(a, args[1:])
	if l.unknown(a) { // there is no help about it
		l.help, l.version = false, false
	}
	head := append(args[:1:1], l.verbs...)
	if l.command == nil && l.unknown(a) {
		l.options = nil // of which verb, nobody can tell
	}
	switch {
	case l.help:
		return append(head, "--help")
	case l.version:
		return append(args[:1:1], "--version")
	}
	head = append(head, l.options...)
	if slices.ContainsFunc(l.words, func(w string) bool { return strings.HasPrefix(w, "-") }) {
		head = append(head, "--")
	}
	return append(head, l.words...)
}

// unknown reports whether the first argument stands where a verb should, and is
// none.
func (l commandLine) unknown(a *cli.App) bool {
	list := a.Commands
	if l.command != nil {
		list = l.command.Subcommands
	}
	return len(list) > 0 && len(l.words) > 0 && !slices.ContainsFunc(list, func(c *cli.Command) bool { return c.HasName(l.words[0]) })
}

// asksHelp reports whether the word asks for help, and is no option of the verb's
// own.
func asksHelp(flags []cli.Flag, word string) bool {
	return !optionIn(flags, word) && optionIn([]cli.Flag{cli.HelpFlag}, word)
}

// optionIn reports whether the word is one of these options.
func optionIn(flags []cli.Flag, word string) bool {
	if !optionLike(word) {
		return false
	}
	name, _, _ := strings.Cut(strings.TrimLeft(word, "-"), "=")
	return slices.ContainsFunc(flags, func(f cli.Flag) bool { return slices.Contains(f.Names(), name) })
}

// optionLike reports whether the word has the form of an option: a dash or two,
// a letter, then letters, digits and dashes up to an equals sign.
func optionLike(word string) bool {
	name := strings.TrimPrefix(strings.TrimPrefix(word, "-"), "-")
	name, _, _ = strings.Cut(name, "=")
	if name == "" || len(name) == len(word) || !letter(name[0]) {
		return false
	}
	for i := range len(name) {
		if c := name[i]; !letter(c) && c != '-' && (c < '0' || c > '9') {
			return false
		}
	}
	return true
}

func letter(c byte) bool { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') }

// wantsValue reports whether the option takes the next word as its value.
func wantsValue(flags []cli.Flag, word string) bool {
	name := strings.TrimLeft(word, "-")
	if strings.Contains(name, "=") {
		return false
	}
	for _, f := range flags {
		if slices.Contains(f.Names(), name) {
			_, isBool := f.(*cli.BoolFlag)
			return !isBool
		}
	}
	return false
}
