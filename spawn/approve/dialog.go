package approve

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"netsky/agent"
	"netsky/internal/advice"
	"netsky/spawn"
	"netsky/spawn/pane"
)

// A Dialog is one at which agents wait for a person.
type Dialog struct {
	Agents    []agent.ID `json:"agents"`
	Text      string     `json:"text"`
	Decidable bool       `json:"decidable"` // netsky can answer it
}

// Dialogs are those at which agents wait, besides the requests with a code; agents at
// the same dialog share one entry.
func Dialogs(states spawn.Statuses, asked []agent.Approval, runtimes map[string]spawn.Runtime) (list []Dialog) {
	for _, st := range states {
		if st.Asks() && !slices.ContainsFunc(asked, func(q agent.Approval) bool { return q.Agent == st.Agent }) {
			list = Group(list, st.Agent, st.Detail, pane.Decidable(runtimes[st.Runtime], st.Dialog))
		}
	}
	return list
}

// Group adds the dialog at which one agent waits to the list.
func Group(list []Dialog, id agent.ID, text string, decidable bool) []Dialog {
	i := slices.IndexFunc(list, func(d Dialog) bool { return d.Text == text && d.Decidable == decidable })
	if i < 0 {
		return append(list, Dialog{Agents: []agent.ID{id}, Text: text, Decidable: decidable})
	}
	list[i].Agents = append(list[i].Agents, id)
	return list
}

// ErrNoDialog is returned for an agent that waits at nothing that netsky can answer.
var ErrNoDialog = errors.New("netsky recognizes no dialog in its pane")

// A Decision is the result of answering the dialog at which agents wait.
type Decision struct {
	Dialog  agent.Dialog
	Given   []agent.ID // agents that were answered
	Others  []agent.ID // agents at the same dialog that were not answered
	Differs []agent.ID // agents at another dialog
	Failed  []error
}

// Decide gives the owner's answer to the dialog at which an agent waits, and with all
// to the same one of others. given is called for each that was answered.
func Decide(ctx context.Context, l *spawn.Launcher, runtimes map[string]spawn.Runtime, id agent.ID, allow, all bool, given func(agent.ID, agent.Dialog)) (v Decision, err error) {
	list, err := l.Inspect(ctx)
	if err != nil {
		return v, err
	}
	question := func(st spawn.Status) (d agent.Dialog, r pane.Deciding, ok bool, err error) {
		if r, ok = runtimes[st.Runtime].(pane.Deciding); !ok || !st.Asks() || st.Pane() == "" {
			return d, r, false, nil
		}
		d, ok, err = l.Lookout(st, r).Question(ctx)
		return d, r, ok, err
	}
	first := list.Find(id)
	want, _, ok, err := question(first)
	switch {
	case err != nil:
		return v, err
	case !ok && !first.Alive():
		return v, spawn.NeedsUp(first, "no dialog is open")
	case !ok:
		return v, AtPane(id, fmt.Errorf("%s: nothing was answered: it is %s, and %w", id, first.How(), ErrNoDialog))
	}
	v.Dialog = want
	for _, st := range list {
		d, r, ok, err := question(st)
		switch {
		case err != nil:
			v.Failed = append(v.Failed, fmt.Errorf("%s: %w", st.Agent, err))
		case !ok || d.Name != want.Name || d.Text != want.Text:
			if all && st.Asks() {
				v.Differs = append(v.Differs, st.Agent)
			}
		case st.Agent != id && !all:
			v.Others = append(v.Others, st.Agent)
		default:
			if err := l.Lookout(st, r).Decide(ctx, want, allow); err != nil {
				v.Failed = append(v.Failed, AtPane(st.Agent, err))
				continue
			}
			v.Given = append(v.Given, st.Agent)
			given(st.Agent, d)
		}
	}
	return v, nil
}

// AtPane adds advice on where an agent's question can be answered.
func AtPane(id agent.ID, err error) error {
	return advice.With(err, "`netsky approvals` lists what waits for your approval; `netsky attach %s` opens its pane", id)
}
