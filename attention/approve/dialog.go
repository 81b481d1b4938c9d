package approve

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"netsky/agent"
	"netsky/bus/envelope"
	"netsky/internal/advice"
	"netsky/spawn"
	"netsky/spawn/pane"
	"netsky/store"
)

// A Dialog is a question in a program's pane at which agents wait for a person.
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

// A Choice is the owner's answer to a dialog.
type Choice struct {
	// Agents are those to answer. The dialog is the one at which the first of them waits; with
	// Same, other agents at the same one are answered too.
	Agents []agent.ID
	Same   bool
	// Words are what the owner was shown of the dialog, as a status shows it: another one is not
	// answered. Empty, the dialog in the pane is meant, whatever it says.
	Words string
	Code  string // of the item that the owner was shown, for the record; may be empty
	Allow bool
	By    string // where it was given: "the phone"
}

// A Decision is the result of answering the dialog at which agents wait.
type Decision struct {
	Dialog  agent.Dialog `json:"dialog"`
	Given   []agent.ID   `json:"given"`   // agents that were answered
	Others  []agent.ID   `json:"others"`  // agents at the same dialog that were not answered
	Differs []agent.ID   `json:"differs"` // agents at another dialog
	Failed  []error      `json:"-"`
}

// Decide gives the owner's answer to the dialog at which agents wait, and returns when
// their panes show something else. What was given is on record.
func (d Desk) Decide(ctx context.Context, l *spawn.Launcher, runtimes map[string]spawn.Runtime, c Choice) (v Decision, err error) {
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
	id := c.Agents[0]
	first := list.Find(id)
	want, _, ok, err := question(first)
	switch {
	case err != nil:
		return v, err
	case !ok && !first.Alive():
		return v, spawn.NeedsUp(first, "no dialog is open")
	case !ok:
		return v, AtPane(id, fmt.Errorf("%s: nothing was answered: it is %s, and %w", id, first.How(), ErrNoDialog))
	case c.Words != "" && c.Words != want.String():
		return v, AtPane(id, fmt.Errorf("%s: nothing was answered: %w: now it is: %s", id, pane.ErrChanged, want))
	}
	v.Dialog = want
	for _, st := range list {
		now, r, ok, err := question(st)
		named := slices.Contains(c.Agents, st.Agent)
		switch {
		case err != nil:
			v.Failed = append(v.Failed, fmt.Errorf("%s: %w", st.Agent, err))
		case !ok || now.Name != want.Name || now.Text != want.Text:
			if (c.Same || named) && st.Asks() {
				v.Differs = append(v.Differs, st.Agent)
			}
		case !named && !c.Same:
			v.Others = append(v.Others, st.Agent)
		default:
			if err := l.Lookout(st, r).Decide(ctx, want, c.Allow, c.By); err != nil {
				v.Failed = append(v.Failed, AtPane(st.Agent, err))
				continue
			}
			v.Given = append(v.Given, st.Agent)
			d.decided(ctx, st, want, c)
		}
	}
	return v, nil
}

// decided records how an item about a dialog was settled, for who answers it next.
func (d Desk) decided(ctx context.Context, st spawn.Status, dialog agent.Dialog, c Choice) {
	if c.Code == "" {
		return
	}
	j := store.NewJournal(d.Home)
	defer j.Close()
	_ = j.Record(context.WithoutCancel(ctx), store.AddLog{ // what can't be recorded now is spooled
		Part: logPart, Actor: st.Agent, About: st.Start, Fields: map[string]any{"code": c.Code},
		Text: envelope.Line(By(agent.Answer{Allow: c.Allow, By: c.By})+": "+dialog.String(), 300),
	})
}

// AtPane adds advice on where an agent's question can be answered.
func AtPane(id agent.ID, err error) error {
	return advice.With(err, "`netsky approvals` lists what waits for your approval; `netsky attach %s` opens its pane", id)
}
