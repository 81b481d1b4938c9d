package view

import (
	"fmt"

	"netsky/agent"
	"netsky/fleet"
	"netsky/home"
	"netsky/internal/words"
	"netsky/spawn"
)

// UntestedNotes returns a note for each release that agents run of a program, if it is not the
// one that netsky was tested with. It is no fault.
func UntestedNotes(list spawn.Statuses) (notes []string) {
	var releases []string
	names := map[string][]string{}
	for _, st := range list {
		if st.Untested == "" || !st.Alive() {
			continue
		}
		if names[st.Untested] == nil {
			releases = append(releases, st.Untested)
		}
		names[st.Untested] = append(names[st.Untested], string(st.Agent))
	}
	for _, r := range releases {
		verb := "runs"
		if len(names[r]) > 1 {
			verb = "run"
		}
		notes = append(notes, fmt.Sprintf("%s %s on %s", words.Names(names[r]), verb, r))
	}
	return notes
}

// UntestedStarts returns the notes of UntestedNotes about agents that have just been started.
func UntestedStarts(h home.Dir, ends []fleet.Step) []string {
	var list spawn.Statuses
	for _, p := range ends {
		if la, err := h.LoadLaunch(p.Agent); err == nil && (p.Step == spawn.StepReady || p.Step == spawn.StepSlow) {
			list = append(list, spawn.Status{Agent: p.Agent, State: agent.Starting, Untested: la.Untested})
		}
	}
	return UntestedNotes(list)
}
