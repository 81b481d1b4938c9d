package cli

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"netsky/agent"
	"netsky/cli/view"
	"netsky/fleet"
	"netsky/home"
	"netsky/internal/advice"
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

// requestOf returns the code of an agent's only request, once the owner has seen it and agreed to answer it.
// Any other word is returned as it is: an agent without a request may wait at a dialog.
func (a *app) requestOf(ctx context.Context, word string, allow bool) (code string, err error) {
	id, err := agent.ParseAgent(word)
	if err != nil {
		return word, nil
	}
	l, err := a.launcher()
	if err != nil {
		return "", err
	}
	list, err := home.Approvals(l.Home).List()
	if err != nil {
		return "", err
	}
	var codes []string
	for _, p := range list {
		if p.Agent == id {
			codes = append(codes, p.Code)
		}
	}
	switch len(codes) {
	case 0:
		return word, nil
	case 1:
		code = codes[0]
	default:
		return "", advice.With(usagef("approve: %s asks for %d things: %s", id, len(codes), strings.Join(codes, ", ")),
			"`netsky needs CODE` shows one, `netsky approve CODE…` allows one or several")
	}
	n, ok := fleet.Answers{Fleet: a.fleetOf(l)}.Need(ctx, code)
	if !ok {
		return "", usagef("approve: %s: its request was settled just now", id)
	}
	a.print("%s", strings.Join(n.Whole(time.Now()), "\n"))
	question := "Allow it?"
	if !allow {
		question = "Deny it?"
	}
	if _, tty := view.Width(a.in); !tty {
		return "", advice.With(usagef("approve: %s: not a terminal, where you would be asked", id), "`netsky approve %s` answers it", code)
	}
	if ok, err := a.confirm("approve", question); err != nil || !ok {
		return "", exitError{exitFailed, errTold}
	}
	return code, nil
}
