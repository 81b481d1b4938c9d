package daemon_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"netsky/agent"
	"netsky/internal/testworld"
)

// What an agent says of itself is what the dashboard shows, each time, and so is
// how much mail waits for it.
func TestAgentsOnTheDashboard(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	w.up(sh(ready+"exec cat"), "agent1")
	start := w.statuses().Find("agent1").Start
	for i := range 10 {
		detail := fmt.Sprintf("turn %d", i)
		r := agent.Report{Start: start, State: agent.Busy, SinceMS: 1, Detail: detail}
		testworld.Must(t, w.home.SaveReport("agent1", r))
		w.mail("agent1", detail)
		var got shown
		testworld.WaitOr(w, func() bool {
			got = w.shown("agent1")
			return got.Detail == detail && got.Inbox == i+1
		}, func() string {
			return fmt.Sprintf("agent1 is shown as %+v, after %d messages it is at %q", got, i+1, detail)
		})
	}
}

// shown is a part of what the dashboard says of an agent.
type shown struct {
	ID     agent.ID
	Detail string
	Inbox  int
}

func (w *world) shown(id agent.ID) shown {
	w.Helper()
	base, header := w.web()
	r := testworld.Got(http.NewRequestWithContext(w.ctx, "GET", base+"/api/snapshot", nil))(w)
	r.Header = header
	a := testworld.Got(http.DefaultClient.Do(r))(w)
	defer a.Body.Close()
	var v struct{ Agents []shown }
	testworld.Must(w, json.NewDecoder(a.Body).Decode(&v), "%s", a.Status)
	for _, s := range v.Agents {
		if s.ID == id {
			return s
		}
	}
	return shown{}
}
