// Package spell parses a command line and puts it in the order that the library needs:
// people put options before the verb, after it, and after its arguments (`netsky up 2
// --type demo`).
package spell

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
)

// A Line is a parsed command line. (The library's own parser stops at the first argument
// and takes what follows for more arguments.)
type Line struct {
	Verbs   []string     // the path of the verb
	Command *cli.Command // nil without a verb
	Options []string     // each followed by its value
	Words   []string     // the arguments
	Open    string       // the last option, if its value is missing
	Literal bool         // "--" was among them
	help    bool         // help is requested, anywhere in the line: nothing runs
	version bool         // likewise, before the verb
}

// Parse parses the words after the program's name. What follows "--" is an argument, and
// so is a word that can't be an option, such as a text that begins with a dash and
// contains a space.
func Parse(a *cli.App, rest []string) Line {
	var l Line
	flags, commands := a.Flags, a.Commands
	descending := true
	for len(rest) > 0 {
		word := rest[0]
		rest = rest[1:]
		switch i := slices.IndexFunc(commands, func(c *cli.Command) bool { return c.HasName(word) }); {
		case word == "--":
			l.Literal = true
			l.Words = append(l.Words, rest...)
			return l
		case asksHelp(flags, word):
			l.help = true
		case l.Command == nil && OptionIn(a.Flags[:1], word):
			l.version = true
		case !OptionLike(word) && i >= 0 && descending:
			l.Verbs, l.Command = append(l.Verbs, word), commands[i]
			flags, commands = commands[i].Flags, commands[i].Subcommands
		case !OptionLike(word):
			descending = false
			l.Words = append(l.Words, word)
		default:
			descending = false
			l.Options = append(l.Options, word)
			switch {
			case !wantsValue(flags, word):
			case len(rest) == 0:
				l.Open = word
			case asksHelp(flags, rest[0]): // help is requested instead of a value
			default:
				l.Options = append(l.Options, rest[0])
				rest = rest[1:]
			}
		}
	}
	return l
}

// FlagsFirst puts a command line in the order that the library needs. If help or the
// version is requested, the rest is dropped.
func FlagsFirst(a *cli.App, args []string) []string {
	if len(args) == 0 {
		return args
	}
	l := Parse(a, args[1:])
	if l.Unknown(a) { // there is no help for it
		l.help, l.version = false, false
	}
	head := append(args[:1:1], l.Verbs...)
	if l.Command == nil && l.Unknown(a) {
		l.Options = nil // of an unknown verb
	}
	switch {
	case l.help:
		return append(head, "--help")
	case l.version:
		return append(args[:1:1], "--version")
	}
	head = append(head, l.Options...)
	if slices.ContainsFunc(l.Words, func(w string) bool { return strings.HasPrefix(w, "-") }) {
		head = append(head, "--")
	}
	return append(head, l.Words...)
}

// Unknown reports whether the first argument is in the place of a verb but is none.
func (l Line) Unknown(a *cli.App) bool {
	list := a.Commands
	if l.Command != nil {
		list = l.Command.Subcommands
	}
	return len(list) > 0 && len(l.Words) > 0 && !slices.ContainsFunc(list, func(c *cli.Command) bool { return c.HasName(l.Words[0]) })
}

// asksHelp reports whether the word requests help and is not one of the verb's own
// options.
func asksHelp(flags []cli.Flag, word string) bool {
	return !OptionIn(flags, word) && OptionIn([]cli.Flag{cli.HelpFlag}, word)
}

// OptionIn reports whether the word is one of these options.
func OptionIn(flags []cli.Flag, word string) bool {
	if !OptionLike(word) {
		return false
	}
	name, _, _ := strings.Cut(strings.TrimLeft(word, "-"), "=")
	return slices.ContainsFunc(flags, func(f cli.Flag) bool { return slices.Contains(f.Names(), name) })
}

// OptionLike reports whether the word has the form of an option: a dash or two,
// a letter, then letters, digits and dashes up to an equals sign.
func OptionLike(word string) bool {
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

// Dashes returns an option's name with its dashes.
func Dashes(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}

// NumberIn returns the first of the words that is a number.
func NumberIn(words []string) (string, bool) {
	i := slices.IndexFunc(words, func(w string) bool { return w != "" && strings.Trim(w, "0123456789") == "" })
	if i < 0 {
		return "", false
	}
	return words[i], true
}

// A Rule says with what other option of its verb an option means something, and with
// which it does not.
type Rule struct{ Option, Needs, Not string }

// Check returns what is wrong with the options of a command line, as the library's own
// errors can be told apart only by their text. rules are by verb. Options of an unknown
// verb are not checked, nor any if help is requested.
func Check(a *cli.App, rules map[string][]Rule, args []string) error {
	if len(args) == 0 {
		return nil
	}
	l := Parse(a, args[1:])
	if l.Unknown(a) && l.Command == nil || !l.Unknown(a) && (l.help || l.version) {
		return nil
	}
	verb, flags := strings.Join(l.Verbs, " "), a.Flags
	of := verb
	if n := len(l.Verbs); l.Command != nil {
		flags = l.Command.Flags
		of = strings.Join(append(l.Verbs[:n-1:n-1], l.Command.Name), " ") // not its alias
	}
	wrong := func(format string, args ...any) error {
		text := fmt.Sprintf(format, args...)
		if verb != "" {
			text = verb + ": " + text
		}
		return fmt.Errorf("%s; `%s --help` lists the options", text, strings.TrimSpace("netsky "+verb))
	}
	set := make(map[string]bool)
	for i := 0; i < len(l.Options); i++ {
		option := l.Options[i]
		name, value, given := strings.Cut(strings.TrimLeft(option, "-"), "=")
		at := slices.IndexFunc(flags, func(f cli.Flag) bool { return slices.Contains(f.Names(), name) })
		switch {
		case at < 0 && wantsValue(a.Flags, Dashes(name)):
			return fmt.Errorf("%[1]s: %[2]s comes before the verb: `netsky %[2]s … %[1]s`", verb, Dashes(name))
		case at < 0:
			return wrong("no option %s", Dashes(name))
		case option == l.Open:
			return wrong("%s: needs a value", Dashes(name))
		case !given && wantsValue(flags, option):
			if i++; i == len(l.Options) {
				return nil // help is requested instead of a value
			}
			value, given = l.Options[i], true
		}
		set[flags[at].Names()[0]] = true
		if !given {
			continue
		}
		var err error
		must := "not a valid value"
		switch flags[at].(type) {
		case *cli.DurationFlag:
			_, err = time.ParseDuration(value)
			must = "must be a duration, such as 90s, 10m or 2h"
		case *cli.IntFlag:
			_, err = strconv.ParseInt(value, 0, strconv.IntSize)
			must = "must be a number"
		case *cli.BoolFlag:
			set[flags[at].Names()[0]], err = strconv.ParseBool(value)
		}
		if err != nil {
			return wrong("%s %q: %s", Dashes(name), value, must)
		}
	}
	for _, r := range rules[of] {
		switch {
		case !set[r.Option]:
		case r.Needs != "" && !set[r.Needs]:
			return wrong("%s needs %s", Dashes(r.Option), Dashes(r.Needs))
		case set[r.Not]:
			return wrong("%s does not go with %s", Dashes(r.Option), Dashes(r.Not))
		}
	}
	return nil
}
