// Package view is what every surface shows of an agent: one struct, its JSON and its words, for status, needs, show,
// the agents' tools, the phone and the dashboard. It keeps nothing.
package view

import (
	"encoding/json"
	"fmt"
	"strings"

	"netsky/agent"
	"netsky/bus/courier"
	"netsky/home"
	"netsky/spawn"
	"netsky/spawn/pane"
	"netsky/store"
)

// An Agent is the state of one agent. Two that show the same are equal.
type Agent struct {
	ID       agent.ID    `json:"agent"`
	State    agent.State `json:"state"`
	Since    store.Time  `json:"since,omitzero"`
	Evidence string      `json:"evidence"` // what the state was derived from
	Detail   string      `json:"detail,omitempty"`
	Fault    agent.Fault `json:"-"` // what keeps its model from answering
	Attempt  int         `json:"attempt,omitempty"`
	Attempts int         `json:"attempts,omitempty"` // after which its program gives up
	Runtime  string      `json:"runtime,omitempty"`
	Model    string      `json:"model,omitempty"`
	Dir      string      `json:"dir,omitempty"`
	Start    string      `json:"start,omitempty"` // the id of its session in the records
	PID      int         `json:"pid,omitempty"`
	Pane     string      `json:"pane,omitempty"`
	Version  string      `json:"version,omitempty"` // of the netsky that its keeper runs
	Wanted   bool        `json:"wanted"`
	Inbox    int         `json:"inbox"` // envelopes; -1 if they can't be counted
	Claimed  int         `json:"claimed"`
	Outbox   int         `json:"outbox"`
	Poison   int         `json:"poison"`
	Strays   int         `json:"strays"`            // files in its inbox that nobody reads
	Restart  string      `json:"restart,omitempty"` // of one that has died: when it is started again, or why not

	// Held is how many delivered messages wait for its account, and HeldUntil when that ends, if it is known.
	Held      int        `json:"held,omitempty"`
	HeldUntil store.Time `json:"held_until,omitzero"`

	Decidable bool `json:"decidable,omitempty"` // netsky can answer what it waits at
	Deaf      bool `json:"deaf,omitempty"`      // it waits for a receiver, not at a dialog
}

// Of returns what is shown of an agent, whose runtime is r, apart from the messages that it holds.
func Of(st spawn.Status, r any) Agent {
	a := Agent{
		ID: st.Agent, State: st.State, Evidence: st.Evidence, Detail: st.Detail, Runtime: st.Runtime, Model: st.Model, Dir: st.Dir,
		Start: st.Start, PID: st.PID, Pane: st.Pane(), Version: st.Build, Wanted: st.Wanted,
		Inbox: st.Inbox, Claimed: st.Claimed, Outbox: st.Outbox, Poison: st.Poison, Restart: st.Restart,
		Decidable: st.Asks() && pane.Decidable(r, st.Dialog), Deaf: st.Deaf(),
	}
	if !st.Since.IsZero() {
		a.Since = store.At(st.Since)
	}
	if r := st.Report; st.State == r.State {
		a.Fault, a.Attempt, a.Attempts = r.Fault, r.Attempt, r.Of
	}
	return a
}

// Holding returns the agent with the messages that it holds.
func (a Agent) Holding(h home.Dir) Agent {
	n, until := courier.ReadLedger(h, a.ID).Holding()
	if a.Held = n; !until.IsZero() {
		a.HeldUntil = store.At(until)
	}
	return a
}

// All returns what is shown of the agents, but for those that the owner has hidden.
func All(h home.Dir, list spawn.Statuses, runtimes map[string]spawn.Runtime) []Agent {
	out := make([]Agent, 0, len(list))
	for _, st := range list {
		if !st.Forgotten {
			out = append(out, Of(st, runtimes[st.Runtime]).Holding(h))
		}
	}
	return out
}

type fields Agent // without methods

// MarshalJSON adds the parts of the fault.
func (a Agent) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		fields
		Reason  agent.Reason `json:"reason,omitempty"`
		Account string       `json:"account,omitempty"`
		Until   store.Time   `json:"until,omitzero"`
	}{fields(a), a.Fault.Reason, a.Fault.Account, store.Time(a.Fault.UntilMS)})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (a *Agent) UnmarshalJSON(data []byte) error {
	v := struct {
		*fields
		Reason  agent.Reason `json:"reason"`
		Account string       `json:"account"`
		Until   store.Time   `json:"until"`
	}{fields: (*fields)(a)}
	err := json.Unmarshal(data, &v)
	a.Fault = agent.Fault{Reason: v.Reason, Account: v.Account, UntilMS: int64(v.Until)}
	return err
}

// An API is an agent as the dashboard's API has it.
type API struct{ Agent }

// MarshalJSON names the agent by its id, and has the fault whole and the held messages in words.
func (a API) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		ID agent.ID `json:"id"`
		fields
		Held   string      `json:"held,omitempty"`
		Fault  agent.Fault `json:"fault,omitzero"`
		Strays int         `json:"strays,omitempty"` // which only status looks for
	}{a.ID, fields(a.Agent), a.HeldWords(), a.Fault, a.Strays})
}

// OfAPI returns the agents as the API has them.
func OfAPI(list []Agent) []API {
	out := make([]API, 0, len(list))
	for _, a := range list {
		out = append(out, API{a})
	}
	return out
}

// Waiting returns how many messages wait for the agent, beside those that are held.
func (a Agent) Waiting() int {
	n, _ := a.State.Backlog(a.Inbox, a.Claimed)
	return n
}

// Working returns how many messages it works on.
func (a Agent) Working() int {
	_, n := a.State.Backlog(a.Inbox, a.Claimed)
	return n
}

// HeldWords says how many messages it holds, and until when; "" if it holds none.
func (a Agent) HeldWords() string {
	if a.Held == 0 {
		return ""
	}
	return fmt.Sprintf("%d %s", a.Held, courier.HeldWords(agent.Fault{UntilMS: int64(a.HeldUntil)}.Until()))
}

// Asks reports whether the agent waits for a person: at a dialog of its program, or with a question from its model.
func (a Agent) Asks() bool { return a.State == agent.Waiting && !a.Deaf }

// Died reports whether the agent has ended though it is wanted up.
func (a Agent) Died() bool { return a.State == agent.Dead || a.State == agent.CrashLooping }

// Words describes an agent apart from its state: what it is doing, then what waits.
func (a Agent) Words() string {
	var words []string
	if a.Detail != "" {
		words = append(words, a.Detail)
	}
	if a.State == agent.Unknown || a.Died() && a.Detail == "" {
		words = append(words, a.Evidence)
	}
	if a.Restart != "" && len(words) > 0 {
		words[len(words)-1] += "; " + a.Restart
	}
	var mail []string
	count := func(n int, word string) {
		if n > 0 {
			mail = append(mail, fmt.Sprintf("%d %s", n, word))
		}
	}
	count(a.Waiting(), "waiting")
	count(a.Working(), "in progress")
	if held := a.HeldWords(); held != "" {
		mail = append(mail, held)
	}
	count(a.Outbox, "in outbox")
	count(a.Poison, "unreadable")
	if len(mail) > 0 {
		mail[0] = "mail: " + mail[0]
	}
	return strings.Join(append(words, mail...), ", ")
}
