package cli

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// flagsFirst lets options stand behind arguments, as people write them
// (`netsky up 2 --type demo`): the parser below stops at the first argument and
// would take what follows for more of them. What stands behind "--" is argument
// alone, and so is a word that can be no option, such as a text that begins with
// a dash and holds a space.
func flagsFirst(a *cli.App, args []string) []string {
	if len(args) == 0 || args[len(args)-1] == completionFlag {
		return args // what the parser completes is told by the order
	}
	head, rest := args[:1:1], args[1:]
	flags, commands := a.Flags, a.Commands
	for len(rest) > 0 {
		i := slices.IndexFunc(commands, func(c *cli.Command) bool { return c.HasName(rest[0]) })
		if i < 0 {
			break
		}
		head = append(head, rest[0])
		flags, commands, rest = commands[i].Flags, commands[i].Subcommands, rest[1:]
	}
	var options, words []string
	for len(rest) > 0 {
		word := rest[0]
		rest = rest[1:]
		if word == "--" {
			words = append(words, rest...)
			break
		}
		if !optionLike(word) {
			words = append(words, word)
			continue
		}
		options = append(options, word)
		if wantsValue(flags, word) && len(rest) > 0 {
			options = append(options, rest[0])
			rest = rest[1:]
		}
	}
	if len(commands) > 0 && len(words) > 0 { // a verb that is none: there is no help about it
		options = slices.DeleteFunc(options, func(w string) bool { return w == "--help" || w == "-h" })
	}
	head = append(head, options...)
	if slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(w, "-") }) {
		head = append(head, "--")
	}
	return append(head, words...)
}

// completionFlag stands last where a shell asks what could come next.
const completionFlag = "--generate-bash-completion"

// completing makes sure that such a question runs nothing: the library takes it
// for an argument behind "--". That may be the beginning of an option; behind it
// there is nothing to complete.
func completing(args []string) ([]string, bool) {
	if len(args) == 0 || args[len(args)-1] != completionFlag {
		return args, true
	}
	switch at := slices.Index(args, "--"); at {
	case -1:
		return args, true
	case len(args) - 2:
		return slices.Concat(args[:at], []string{"-", completionFlag}), true
	}
	return nil, false
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
