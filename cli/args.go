package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/urfave/cli/v2"

	"netsky/agent"
	"netsky/internal/words"
)

// eachArg returns the action of a verb that takes one or several words, and does the same for each: a word
// that fails leaves the others alone.
func (a *app) eachArg(what string, do func(c *cli.Context, word string) error) cli.ActionFunc {
	return func(c *cli.Context) error {
		if c.NArg() == 0 {
			return usagef("%s: needs %s", verbOf(c), what)
		}
		return a.each(c.Args().Slice(), func(word string) error { return do(c, word) })
	}
}

// each calls a function once for each of the words.
func (a *app) each(words []string, do func(word string) error) error {
	if len(words) == 1 {
		return do(words[0])
	}
	worst, done := 0, 0
	for i, word := range words {
		if slices.Contains(words[:i], word) {
			continue
		}
		err := do(word)
		if err == nil {
			done++
			continue
		}
		a.complain(err)
		worst = max(worst, status(err))
	}
	switch {
	case worst == 0:
		return nil
	case done > 0:
		worst = exitPartly
	}
	return exitError{worst, errTold}
}

// textArg returns the verb's text: its argument i, or the file. A blank text is refused:
// it would settle a question that nobody has answered.
func (a *app) textArg(c *cli.Context, i int, usage string) (string, error) {
	text, err := a.givenText(c, i, usage)
	if err == nil && words.Blank(text) {
		return "", usagef("%s: the text is empty", verbOf(c))
	}
	return text, err
}

// givenText returns the verb's text as it was given, blank or not.
func (a *app) givenText(c *cli.Context, i int, usage string) (string, error) {
	file := c.String("file")
	switch {
	case file == "" && c.NArg() == i+1:
		return c.Args().Get(i), nil
	case file == "" || c.NArg() != i:
		for _, f := range c.Command.Flags {
			if slices.Contains(f.Names(), "file") {
				usage += "; or --file instead of the text"
			}
		}
		return "", usagef("%s", usage)
	}
	return a.textFile("--file", file)
}

// textFile reads a text from a file that an option names, or from standard input for "-".
func (a *app) textFile(option, file string) (string, error) {
	const limit = 16 << 20 // bounds memory; the bus's own limit is far lower
	var in io.Reader = a.in
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return "", fmt.Errorf("%s %s: %w", option, file, errors.Unwrap(err))
		}
		defer f.Close()
		in = f
	}
	data, err := io.ReadAll(io.LimitReader(in, limit+1))
	if err == nil && len(data) > limit {
		err = usagef("%s: larger than %d bytes", file, limit)
	}
	return string(data), err
}

// mailboxArg returns the address named, else the caller's own.
func (a *app) mailboxArg(c *cli.Context) (agent.ID, error) {
	if c.NArg() == 0 {
		return a.self()
	}
	arg, err := one(c, "at most one address")
	if err != nil {
		return "", err
	}
	return agent.ParseArgAddress(arg)
}

func (a *app) needsSub(c *cli.Context) error {
	names := ""
	for _, s := range c.Command.Subcommands {
		if !s.Hidden {
			names += " " + s.Name
		}
	}
	verb := verbOf(c)
	if c.NArg() > 0 {
		return usagef("%s: no verb %q; there are:%s", verb, c.Args().First(), names)
	}
	return usagef("%s: needs one of:%s", verb, names)
}
