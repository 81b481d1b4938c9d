package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"netsky/claude"
)

// nearEnd is the part of a conversation's time in which its end is near.
const nearEnd = 6

// checkConversations reports the conversations that Claude Code has removed, or is about to.
func checkConversations(_ context.Context, e *exam) (list []Finding) {
	statuses, _ := e.agents() // its error is another check's
	n := 0
	for _, st := range statuses {
		s, err := claude.LoadState(e.Home, st.Agent)
		la, lerr := e.Home.LoadLaunch(st.Agent)
		if err != nil || lerr != nil || st.Forgotten || !s.Used || la.Runtime != "claude" {
			continue
		}
		n++
		days, set := claude.CleanupDays(e.Home, st.Agent, la.Env)
		info, err := os.Stat(s.Transcript)
		if errors.Is(err, fs.ErrNotExist) {
			list = append(list, Finding{
				Level: Warn, Text: fmt.Sprintf("%s: the file of its conversation is gone: %s", st.Agent, e.tilde(s.Transcript)),
				Do: "its next start begins a new conversation and tells it what the records hold; a copy of the file put back there is continued",
			})
		}
		if err != nil {
			continue
		}
		age, keep := e.Now().Sub(info.ModTime()), time.Duration(days)*24*time.Hour
		if keep-age <= keep/nearEnd {
			list = append(list, Finding{
				Level: Warn, Text: fmt.Sprintf("%s: nothing was written to its conversation for %s; Claude Code removes it after %d", st.Agent, plural(int(age/(24*time.Hour)), "day"), days),
				Do: fmt.Sprintf("a message that it answers (`netsky agent %s` starts it) keeps the conversation, and so does a larger cleanupPeriodDays in %s", st.Agent.N(), e.tilde(set)),
			})
		}
	}
	if n > 0 && len(list) == 0 {
		list = append(list, ok("%s on Claude Code, none near its end", plural(n, "conversation")))
	}
	return list
}
