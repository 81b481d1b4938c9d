package spawn

import (
	"netsky/agent"
	"netsky/spawn/backoff"
	"netsky/spawn/hang"
)

// judgeWatched adds what the watchdog has found and decided.
func (l *Launcher) judgeWatched(st *Status) {
	if st.State == agent.Dead {
		loops := false
		if st.Restart, loops = backoff.Shown(l.Home, st.Agent, st.Start); loops {
			st.State = agent.CrashLooping
		}
	} else if words, since, hung := hang.Shown(l.Home, st.Agent, st.Start); hung && st.Alive() && !st.Asks() {
		st.State, st.Detail, st.Since = agent.Hung, words, since
	}
}
