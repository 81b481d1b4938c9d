package view

import (
	"fmt"
	"slices"
	"time"

	"netsky/agent"
	"netsky/spawn"
)

// A Down reports how a down goes.
type Down struct {
	Printer
	Ended  int  // how many have ended
	Failed bool // not everything is known to have ended

	rows  []downRow
	notes []string
	why   map[string]int // how many were not ended, by reason
}

type downRow struct {
	What  string         `json:"what"`
	Step  spawn.DownStep `json:"step"`
	Error string         `json:"error,omitempty"`
}

// Say reports something else.
func (r *Down) Say(text string) {
	if r.JSON {
		r.notes = append(r.notes, text)
		return
	}
	r.print("%s", text)
}

// Tried reports whether anything was done about the agent.
func (r *Down) Tried(id agent.ID) bool {
	return slices.ContainsFunc(r.rows, func(row downRow) bool { return row.What == string(id) })
}

// Progress reports one step.
func (r *Down) Progress(p spawn.DownProgress) {
	row := downRow{What: p.What, Step: p.Step}
	if p.Err != nil {
		row.Error = p.Err.Error()
	}
	r.rows = append(r.rows, row)
	if p.Step == spawn.DownEnded {
		r.Ended++
	}
	if r.JSON {
		return
	}
	switch p.Step {
	case spawn.DownAsked:
		r.print("%s: asked to finish", p.What)
	case spawn.DownUnasked:
		r.print("%s: could not be asked (%v); ending it", p.What, p.Err)
	case spawn.DownClosed:
		r.print("%s: closed by itself", p.What)
	case spawn.DownAcked:
		r.print("%s: finished", p.What)
	case spawn.DownUnfinished:
		r.print("%s", unfinished(p))
	case spawn.DownLeft:
		r.print("%s: asked to finish, still running", p.What)
	case spawn.DownTimeout:
		r.print("%s: no answer within %v; ending it", p.What, p.After)
	case spawn.DownEnded:
		r.print("%s: ended", p.What)
	case spawn.DownFailed:
		if r.why == nil {
			r.why = make(map[string]int)
		}
		if r.why[row.Error]++; r.why[row.Error] <= 3 { // the error at the end names all
			r.print("%s: not ended: %v", p.What, p.Err)
		}
	case spawn.DownWarning:
		r.Warn("%s: %v", orAll(p.What), p.Err)
	}
}

func unfinished(p spawn.DownProgress) string {
	return fmt.Sprintf("%s: not finished after %v; its message goes to its next start", p.What, p.After.Round(time.Second))
}

func orAll(what string) string {
	if what == "" {
		return "down"
	}
	return what
}

// Finish prints the JSON object, if requested.
func (r *Down) Finish() error {
	if !r.JSON {
		return nil
	}
	return r.json(struct {
		Ended int       `json:"ended"`
		Steps []downRow `json:"steps"`
		Notes []string  `json:"notes"`
	}{r.Ended, append([]downRow{}, r.rows...), append([]string{}, r.notes...)})
}

// Fresh reports why ending an agent takes time, and how not to wait.
func Fresh(p Printer, st spawn.Status) func(spawn.DownProgress) {
	return func(d spawn.DownProgress) {
		switch {
		case d.Step == spawn.DownAsked && st.State == agent.Busy:
			p.Warn("%s is busy; waiting up to %v for its running turn to end (`netsky down %s --force` in another terminal ends it at once)",
				d.What, spawn.DownWithin, d.What)
		case d.Step == spawn.DownUnfinished:
			p.Warn("%s", unfinished(d))
		case d.Step == spawn.DownTimeout:
			p.Warn("%s: no answer within %v; ending it", d.What, d.After)
		case d.Step == spawn.DownUnasked:
			p.Warn("%s: could not be asked (%v); ending it", d.What, d.Err)
		case d.Step == spawn.DownWarning:
			p.Warn("%s: %v", orAll(d.What), d.Err)
		}
	}
}

// RemnantsOf are those of the list that are of these agents, all of them with all, and
// without either those of agent0 and the clones.
func RemnantsOf(list []spawn.Remnant, ids []agent.ID, all bool) (rest []spawn.Remnant) {
	for _, r := range list {
		of := slices.Contains(ids, r.Agent) || len(ids) == 0 && r.Agent != "" && r.Agent != agent.Infinity
		if all || of {
			rest = append(rest, r)
		}
	}
	return rest
}

// AgentsOf are the agents that the list is about, each once.
func AgentsOf(list []spawn.Remnant) (ids []agent.ID) {
	for _, r := range list {
		if r.Agent != "" && !slices.Contains(ids, r.Agent) {
			ids = append(ids, r.Agent)
		}
	}
	return ids
}
