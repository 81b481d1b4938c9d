package dashboard

import (
	"slices"
	"strings"

	"netsky/store"
)

// An updateRun is one run of netsky's own update.
type updateRun struct {
	ID    string
	Steps []updateStep // in their order
}

// An updateStep is one step of a run; its State is the step's name.
type updateStep struct{ store.Update }

// Word returns what became of the step, as a state.
func (s updateStep) Word() string {
	switch {
	case s.Error != "" || s.State == "failed":
		return "failed"
	case s.Ended == 0:
		return "in_progress"
	case s.State == "undone":
		return "undone"
	}
	return "done"
}

// Last returns the last step, which says what became of the run.
func (r updateRun) Last() updateStep { return r.Steps[len(r.Steps)-1] }

// Of returns what the last step that knows it says of the whole run.
func (r updateRun) Of(what string) (text string) {
	for _, s := range r.Steps {
		known := map[string]string{"repository": s.Repository, "revision": s.Revision, "backup": s.Backup, "hint": s.RollbackHint}[what]
		if known != "" {
			text = known
		}
	}
	return text
}

// updateRuns groups steps, the newest first, by their runs: a step's id is its run's, a dot and a
// number.
func updateRuns(steps []store.Update) (runs []updateRun) {
	for _, s := range steps {
		id := s.ID
		if dot := strings.LastIndexByte(id, '.'); dot > 0 {
			id = id[:dot]
		}
		at := slices.IndexFunc(runs, func(r updateRun) bool { return r.ID == id })
		if at < 0 {
			at, runs = len(runs), append(runs, updateRun{ID: id})
		}
		runs[at].Steps = append(runs[at].Steps, updateStep{s})
	}
	for _, r := range runs {
		slices.Reverse(r.Steps)
	}
	return runs
}
