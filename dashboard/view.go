package dashboard

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"slices"
	"strings"

	"netsky/agent"
	"netsky/agent/home"
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
	Code    string     `json:"code"`
	Agent   agent.ID   `json:"agent"`
	Start   string     `json:"start,omitempty"`
	Tool    string     `json:"tool"`
	Text    string     `json:"text"` // the command, or what it is about
	Reason  string     `json:"reason,omitempty"`
	Dir     string     `json:"dir,omitempty"`
	Asked   store.Time `json:"asked"`
	Allow   string     `json:"allow"` // the command that says yes
	Deny    string     `json:"deny"`  // and no
	askedMS int64
}

const maxApproval = 4 << 20

// approvals lists what waits, the oldest first. It is Home.Approvals without
// clearing away what a dead process left: looking changes nothing.
func (s *Server) approvals() ([]Approval, error) {
	list := []Approval{}
	dir, err := s.o.Home.OpenDir(home.ApprovalDir, false)
	if errors.Is(err, fs.ErrNotExist) {
		return list, nil
	}
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if a, ok := s.approval(name); ok {
			list = append(list, a)
		}
	}
	slices.SortFunc(list, func(x, y Approval) int {
		return cmp.Or(cmp.Compare(x.askedMS, y.askedMS), cmp.Compare(x.Code, y.Code))
	})
	return list, nil
}

func (s *Server) approval(name string) (Approval, bool) {
	code, ok := strings.CutSuffix(name, ".json")
	if !ok || len(code) != 5 || strings.Trim(code, "abcdefghijklmnopqrstuvwxyz") != "" {
		return Approval{}, false
	}
	data, err := s.o.Home.ReadFile(home.ApprovalDir+"/"+name, maxApproval)
	if err != nil {
		return Approval{}, false // settled in this moment, or no file of ours
	}
	var a agent.Approval
	if json.Unmarshal(data, &a) != nil || a.Code != code || !a.Asker.Alive() {
		return Approval{}, false
	}
	if _, answered, _ := s.o.Home.Answered(code); answered {
		return Approval{}, false
	}
	return Approval{
		Code: code, Agent: a.Agent, Start: a.Start, Tool: a.Tool, Text: a.Text, Reason: a.Reason, Dir: a.Dir,
		Asked: store.Time(a.AskedMS), Allow: "netsky approve " + code, Deny: "netsky approve " + code + " --deny", askedMS: a.AskedMS,
	}, true
}
