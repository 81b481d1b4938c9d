package fleet

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"netsky/agent"
	"netsky/bus/envelope"
	"netsky/config"
	"netsky/fleet/plan"
	"netsky/home"
	"netsky/internal/advice"
	"netsky/internal/words"
	"netsky/spawn"
	"netsky/work/check"
)

// ask puts a question to a person. unasked is the error if nobody can be asked, and unanswered if
// nobody answers.
func (f *Fleet) ask(question string, unasked, unanswered error) (string, error) {
	answer, err := f.UI.Ask(question)
	switch {
	case errors.Is(err, ErrNobody):
		return "", unasked
	case err != nil && answer == "":
		return "", unanswered
	}
	return strings.TrimSpace(answer), nil
}

func yes(answer string) bool {
	answer = strings.ToLower(answer)
	return answer == "y" || answer == "yes"
}

// chooseDir asks where the agents of a first up work if that would be netsky's own checkout.
func (s *starter) chooseDir() error {
	own, ok, err := s.planner.OwnCheckout(s.Agents, s.Dir)
	if err != nil || !ok {
		return err
	}
	unsaid := &plan.UsageError{Err: advice.With(
		fmt.Errorf("%s: is netsky's own checkout, where agents work only if you ask for it; nothing was started", own),
		"cd to your project first, or use --dir DIR (--dir . is this directory)")}
	answer, err := s.ask(fmt.Sprintf("This is netsky's own checkout, %s.\nIn which directory should the agents work? They may edit what is there (. is this one): ", s.tilde(own)), unsaid, unsaid)
	if err != nil {
		return err
	}
	if answer == "" {
		return unsaid
	}
	dir, err := config.Expand(s.userHome(), answer)
	if err != nil {
		return err
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return usagef("%s: is not a directory; nothing was started", dir)
	}
	s.planner.Here = dir
	return nil
}

// agreeToAll has the owner say what has to be said before agents start. The answers are saved to
// netsky.toml once nothing prevents the start with them.
func (s *starter) agreeToAll() error {
	modes := make([]config.Mode, len(s.warrants))
	for i, w := range s.warrants {
		modes[i] = w.Modes[0]
		if !s.Yes {
			var err error
			if modes[i], err = s.askMode(w); err != nil {
				return err
			}
		}
		w.Give(s.Config, modes[i])
	}
	if s.many != "" && !s.Yes {
		answer, err := s.ask(s.many+".\nStart them? [y/N] ",
			usagef("up: %s: more than %d clones need --yes", s.many, maxUnasked), usagef("up: no answer; nothing was started"))
		if err == nil && !yes(answer) {
			err = usagef("up: not confirmed; nothing was started")
		}
		if err != nil {
			return err
		}
	}
	if s.agree {
		if err := s.Agree(s.setupCommand(), "is run in each new worktree, before its agent starts", s.Yes); err != nil {
			return err
		}
	}
	for i, w := range s.warrants {
		of := slices.DeleteFunc(slices.Clone(s.starting), func(p spawn.Plan) bool { return p.Runtime.Name() != w.Runtime })
		if err := s.Launcher.Recheck(s.ctx, s.prep, of); err != nil { // the answer may bring up another obstacle
			return err
		}
		if err := w.Write(s.Home, modes[i]); err != nil {
			return err
		}
		s.warn("%s agents may: %s (written to %s)", w.Name, modes[i].Words, s.tilde(s.file))
	}
	return nil
}

func (s *starter) askMode(w config.Warrant) (config.Mode, error) {
	var text strings.Builder
	fmt.Fprintf(&text, "What may %s agents do on this machine without asking you?\n", w.Name)
	for i, m := range w.Modes {
		fmt.Fprintf(&text, "  %d  %s\n", i+1, m.Words)
		if m.More != "" {
			fmt.Fprintf(&text, "     (%s)\n", strings.ReplaceAll(m.More, "\n", "\n      "))
		}
	}
	text.WriteString("1, 2 or 3 (anything else starts nothing): ")
	unsaid := usagef("no permission mode was chosen; nothing was started")
	answer, err := s.ask(text.String(), usagef("no permission mode is set for %s agents: set `%s` under [%s] in %s, or use --yes for full access",
		w.Name, strings.Join(w.Keys, "` and `"), w.Runtime, s.file), unsaid)
	if err != nil {
		return config.Mode{}, err
	}
	if n, err := strconv.Atoi(answer); err == nil && n >= 1 && n <= len(w.Modes) {
		return w.Modes[n-1], nil
	}
	return config.Mode{}, unsaid
}

// Agree has the owner agree to a command of [work]: on the terminal, by yes, or before. An agent
// can't. when says when it is run.
func (f *Fleet) Agree(c check.Command, when string, agreed bool) error {
	if ok, err := c.Agreed(f.Home); ok || err != nil {
		return err
	}
	about := fmt.Sprintf("`%s` under [work] in %s", c.What, f.tilde(f.Home.Path(home.ConfigFile)))
	switch {
	case f.Actor.IsAgent():
		return usagef("%s: the owner has not agreed to this text yet, and only the owner can: %s", about, words.Brief(c.Text, 200))
	case !agreed:
		refused := usagef("%s: not agreed to; nothing was done", about)
		answer, err := f.ask(fmt.Sprintf("%s %s. It may do what you may do:\n\n%s\n\nRun this text from now on? [y/N] ", about, when, "    "+strings.ReplaceAll(envelope.Plain(c.Text), "\n", "\n    ")),
			usagef("%s: you have not agreed to this text yet: %s\nrun this on a terminal, where you are asked, or with --yes", about, words.Brief(c.Text, 200)), refused)
		if err != nil {
			return err
		}
		if !yes(answer) {
			return refused
		}
	}
	f.warn("%s is run from now on as it is; a changed text asks again: %s", about, words.Brief(c.Text, 200))
	return c.Agree(f.Home)
}

// agreed returns an error if another host says yes to what is asked here.
func (f *Fleet) agreed(deed string, yes bool) error {
	if yes && f.host != "" {
		return usagef("%s: yes: what agents may do on this host, and what is run for them, is said at a terminal here, not by another host", deed)
	}
	return nil
}

// OwnersEnviron returns the environment that what an actor starts inherits. If the actor is an agent,
// that is the one it was started with itself: without what its program adds for its tools, and what it
// has changed there.
func OwnersEnviron(h home.Dir, actor agent.ID, environ []string) ([]string, error) {
	if !actor.IsAgent() {
		return environ, nil
	}
	la, err := plan.Before(h, actor)
	if err != nil || len(la.Env) == 0 {
		return environ, err
	}
	return la.Env, nil
}
