package dashboard

import (
	"context"

	"netsky/attention"
	"netsky/dashboard/live"
	"netsky/home"
	"netsky/store"
	"netsky/view"
)

// An Overview is what the first page and GET /api/snapshot show: the agents' states
// now, what waits for the owner, and the records. What could not be read is in Errors;
// the rest is shown anyway.
type Overview struct {
	Version   string           `json:"version"`
	Agents    []view.API       `json:"agents"`
	Hosts     []attention.Host `json:"hosts,omitempty"` // the other hosts of the team, with their agents
	Approvals []live.Approval  `json:"approvals"`
	Needs     []attention.Need `json:"needs"`  // everything that needs the owner
	Unread    int              `json:"unread"` // the owner's mail that `netsky inbox` has not shown
	Errors    []string         `json:"errors"`
	store.Snapshot
}

func (s *Server) overview(ctx context.Context) Overview {
	v := Overview{Version: s.o.Version, Agents: []view.API{}, Approvals: []live.Approval{}, Needs: []attention.Need{}, Errors: []string{}}
	v.Snapshot = store.Snapshot{
		Time: store.At(s.o.Now()), Actors: []store.ActorNow{}, Waiting: map[store.DeliveryState]int{},
		Tasks: []store.Task{}, Messages: []store.Message{}, Logs: []store.Log{},
	}
	failed := func(err error) { v.Errors = append(v.Errors, err.Error()) }
	if db, err := s.records(); err != nil {
		failed(err)
	} else if snap, err := db.Snapshot(ctx); err != nil {
		failed(err)
	} else {
		v.Snapshot = snap
	}
	agents, err := s.o.Agents.Agents(ctx)
	if err != nil {
		failed(err)
	}
	v.Agents = view.OfAPI(agents)
	v.Hosts, _ = attention.Hosts(s.o.Home, s.o.Now()) // what can't be read is told with what needs the owner
	if list, err := s.approvals(); err != nil {
		failed(err)
	} else {
		v.Approvals = list
	}
	waits, err := s.needsOf(ctx, agents)
	if err != nil {
		failed(err)
	}
	s.works.steps(ctx, waits)
	for _, n := range waits {
		v.Needs = append(v.Needs, n.Need)
	}
	n, _, err := s.unread.mail()
	if err != nil {
		failed(err)
	}
	v.Unread = n
	return v
}

// approvals lists what waits for an answer, the oldest first.
func (s *Server) approvals() ([]live.Approval, error) {
	asked, err := home.Approvals(s.o.Home).List()
	list := []live.Approval{}
	for _, a := range asked {
		if _, answered, _ := home.Approvals(s.o.Home).Answered(a.Code); answered {
			continue
		}
		list = append(list, live.Approval{
			Code: a.Code, Agent: a.Agent, Start: a.Start, Tool: a.Tool, Text: a.Whole(), Closed: a.Closed(), Reason: a.Reason, Dir: a.Dir,
			Asked: store.Time(a.AskedMS), Allow: "netsky approve " + a.Code, Deny: "netsky approve " + a.Code + " --deny",
		})
	}
	return list, err
}
