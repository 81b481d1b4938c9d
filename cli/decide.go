package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"netsky/agent"
	"netsky/spawn"
	"netsky/spawn/pane"
)

// A dialog is one at which agents wait for a person.
type dialog struct {
	Agents    []agent.ID `json:"agents"`
	Text      string     `json:"text"`
	Decidable bool       `json:"decidable"` // netsky can give the answer
}

// dialogs are those at which the agents wait; the same of several is one.
func (a *app) dialogs(agents []agentView) (list []dialog) {
	for _, s := range agents {
		if s.asks {
			list = addDialog(list, s.Agent, s.Detail, a.decidable(s.Runtime, s.Detail))
		}
	}
	return list
}

// dialogsNow are those at which agents wait now, beside the questions that
// netsky has put before the owner.
func (a *app) dialogsNow(ctx context.Context, asked []agent.Approval) ([]dialog, error) {
	l, err := a.launcher()
	if err != nil {
		return nil, err
	}
	states, err := l.Inspect(ctx)
	var list []agentView
	for _, st := range states {
		list = append(list, viewOf(st))
	}
	needNobodyThere(list, asked)
	return a.dialogs(list), err
}

// needNobodyThere takes note of the agents whose question can be answered by its
// code: it needs nobody at the pane.
func needNobodyThere(list []agentView, asked []agent.Approval) {
	for i, s := range list {
		list[i].asks = s.asks && !slices.ContainsFunc(asked, func(p agent.Approval) bool { return p.Agent == s.Agent })
	}
}

func addDialog(list []dialog, id agent.ID, text string, decidable bool) []dialog {
	i := slices.IndexFunc(list, func(d dialog) bool { return d.Text == text && d.Decidable == decidable })
	if i < 0 {
		return append(list, dialog{Agents: []agent.ID{id}, Text: text, Decidable: decidable})
	}
	list[i].Agents = append(list[i].Agents, id)
	return list
}

// decidable reports whether the owner can answer the dialog that the words of a
// state name by `netsky approve AGENT`.
func (a *app) decidable(runtime, detail string) bool {
	l, err := a.launcher()
	if err != nil {
		return false
	}
	return pane.Decidable(a.runtimes(l)[runtime], detail)
}

// words says who waits, and what the owner can do about it.
func (d dialog) words() string {
	first, text := d.Agents[0], ""
	if d.Text != "" {
		text = ": " + strconv.Quote(d.Text)
	}
	if len(d.Agents) == 1 {
		how := ""
		if d.Decidable {
			how = fmt.Sprintf(" or `netsky approve %s`, with --deny for a no", first)
		}
		return fmt.Sprintf("%s waits for you at its pane%s (`netsky attach %s`%s)", first, text, first, how)
	}
	how := ""
	if d.Decidable {
		how = fmt.Sprintf("; `netsky approve %s --all-same` answers all with yes, with --deny no", first)
	}
	return fmt.Sprintf("%s wait for you at the same dialog%s (`netsky attach %s`%s)", idList(d.Agents), text, first, how)
}

// idList names agents: "agent0, agent1".
func idList(ids []agent.ID) string {
	var words []string
	for _, id := range ids {
		words = append(words, string(id))
	}
	return strings.Join(words, ", ")
}

var errNoDialog = errors.New("shows no dialog that netsky can answer")

// decide gives the owner's answer to the dialog at which an agent waits, and with
// all to the same one of others.
func (a *app) decide(ctx context.Context, id agent.ID, allow, all bool) error {
	l, err := a.launcher()
	if err != nil {
		return err
	}
	list, err := l.Inspect(ctx)
	if err != nil {
		return err
	}
	runtimes := a.runtimes(l)
	question := func(st spawn.Status) (d agent.Dialog, r pane.Deciding, ok bool, err error) {
		if r, ok = runtimes[st.Runtime].(pane.Deciding); !ok || !st.Asks() || st.Pane() == "" {
			return d, r, false, nil
		}
		d, ok, err = l.Question(ctx, st, r)
		return d, r, ok, err
	}
	first := list.Find(id)
	want, _, ok, err := question(first)
	switch {
	case err != nil:
		return err
	case !ok && !first.Alive():
		return needUp{id, fmt.Errorf("%s: is %s: nothing waits there", id, first.State)}
	case !ok:
		return atDialog{id, fmt.Errorf("%s: is %s: %w: nothing was pressed", id, how(first), errNoDialog)}
	}
	word, others, done := "denied", []agent.ID(nil), 0
	if allow {
		word = "allowed"
	}
	var errs []error
	for _, st := range list {
		d, r, ok, err := question(st)
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("%s: %w", st.Agent, err))
			continue
		case !ok || d.Name != want.Name || d.Text != want.Text:
			if all && st.Asks() {
				a.warn("%s: waits, but not at that dialog: nothing was pressed there", st.Agent)
			}
			continue
		case st.Agent != id && !all:
			others = append(others, st.Agent)
			continue
		}
		if err := l.Decide(ctx, st, r, want, allow); err != nil {
			errs = append(errs, atDialog{st.Agent, err})
			continue
		}
		done++
		a.print("%s: %s: %s: %s", word, st.Agent, d.Name, d.Text)
	}
	if len(others) > 0 {
		a.warn("%s: the same dialog waits; `netsky approve %s --all-same` answers all", idList(others), others[0])
	}
	if err := errors.Join(errs...); err != nil && done > 0 {
		return exitError{exitPartly, err}
	} else if err != nil {
		return err
	}
	return nil
}
