package dashboard

import (
	"context"

	"netsky/agent"
	"netsky/store"
)

// An Overview is what the first page and GET /api/snapshot show: how the agents
// are now, what waits for the owner, and the records. What could not be found
// out is in Errors, and the rest is there all the same.
type Overview struct {
	Version   string     `json:"version"`
	Agents    []Agent    `json:"agents"`
	Approvals []Approval `json:"approvals"`
	Unread    int        `json:"unread"` // the owner's mail that `netsky inbox` has not shown
	Errors    []string   `json:"errors"`
	store.Snapshot
}

func (s *Server) overview(ctx context.Context) Overview {
	v := Overview{Version: s.o.Version, Agents: []Agent{}, Approvals: []Approval{}, Errors: []string{}}
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
	if list, err := s.o.Agents.Agents(ctx); err != nil {
		failed(err)
	} else if list != nil {
		v.Agents = list
	}
	if list, err := s.approvals(); err != nil {
		failed(err)
	} else {
		v.Approvals = list
	}
	n, _, err := s.unread.mail()
	if err != nil {
		failed(err)
	}
	v.Unread = n
	return v
}

// An Approval is a question that waits for the owner, and the command that
// answers it. It is answered from a terminal or the phone, not from here.
type Approval struct {
	Code   string     `json:"code"`
	Agent  agent.ID   `json:"agent"`
	Start  string     `json:"start,omitempty"`
	Tool   string     `json:"tool"`
	Text   string     `json:"text"` // the command, or what it is about
	Reason string     `json:"reason,omitempty"`
	Dir    string     `json:"dir,omitempty"`
	Asked  store.Time `json:"asked"`
	Allow  string     `json:"allow"` // the command that says yes
	Deny   string     `json:"deny"`  // and no
}

// approvals lists what waits for an answer, the oldest first.
func (s *Server) approvals() ([]Approval, error) {
	asked, err := s.o.Home.Approvals()
	list := []Approval{}
	for _, a := range asked {
		if _, answered, _ := s.o.Home.Answered(a.Code); answered {
			continue
		}
		list = append(list, Approval{
			Code: a.Code, Agent: a.Agent, Start: a.Start, Tool: a.Tool, Text: a.Text, Reason: a.Reason, Dir: a.Dir,
			Asked: store.Time(a.AskedMS), Allow: "netsky approve " + a.Code, Deny: "netsky approve " + a.Code + " --deny",
		})
	}
	return list, err
}
