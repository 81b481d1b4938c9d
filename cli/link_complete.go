package cli

import (
	"fmt"
	"slices"
	"time"

	"netsky/agent"
	"netsky/attention"
	"netsky/home"
	"netsky/internal/words"
	"netsky/link/team"
)

func roles() []candidate { return plain(string(team.Worker), string(team.Owner)) }

// linkCandidates returns the hosts that can be removed from the team, or the codes of those that
// ask to join.
func (c Completer) linkCandidates(hosts bool) (list []candidate) {
	h, _, err := c.looking()
	if err != nil {
		return nil
	}
	if hosts {
		t, _ := team.Load(h) // without a team: no candidates
		for _, one := range t.Hosts {
			if one.Name != t.Owner {
				list = append(list, candidate{one.Name, string(one.Role)})
			}
		}
		return list
	}
	asks, _ := team.Requests(h)
	for _, q := range asks {
		if q.State == team.Pending {
			list = append(list, candidate{q.Code, q.Name})
		}
	}
	return list
}

// joinAt joins what bash has cut at an @, as in agent3@build1, and returns what it keeps of the last word.
func joinAt(words []string) (joined []string, before string) {
	for i := 0; i < len(words); i++ {
		if words[i] != "@" || i == 0 {
			joined = append(joined, words[i])
			continue
		}
		last := &joined[len(joined)-1]
		if *last += "@"; i+2 >= len(words) {
			before = *last
		}
		if i++; i < len(words) {
			*last += words[i]
		}
	}
	return joined, before
}

// everywhere returns the agents that have a mailbox here, more, and those that other hosts have told of.
func (c Completer) everywhere(more ...agent.ID) []candidate {
	list := c.agentCandidates(more...)
	h, _, err := c.looking()
	if err != nil {
		return nil
	}
	hosts, _ := attention.Hosts(h, time.Now()) // without a team: no candidates
	for _, one := range hosts {
		for _, a := range one.Agents {
			list = append(list, candidate{string(a.ID), a.Runtime + ", " + string(a.State)})
		}
	}
	return list
}

// codeCandidates returns what can be approved.
func (c Completer) codeCandidates() (list []candidate) {
	h, _, err := c.looking()
	if err != nil {
		return nil
	}
	asked, _ := home.Approvals(h).List() // without mailboxes: no candidates
	for _, p := range asked {
		list = append(list, candidate{p.Code, fmt.Sprintf("%s: %s: %s", p.Agent, p.Tool, words.FirstLine(p.Text))})
	}
	for _, one := range c.agentCandidates() { // whose last report is that they wait at a dialog
		id := agent.ID(one.word)
		r, err := h.LoadReport(id)
		if err == nil && r.State == agent.Waiting && !slices.ContainsFunc(asked, func(p agent.Approval) bool { return p.Agent == id }) {
			list = append(list, candidate{one.word, r.Detail})
		}
	}
	hosts, _ := attention.Hosts(h, time.Now())
	for _, n := range attention.List(attention.Sources{Hosts: hosts}) {
		if len(n.Options) > 0 {
			list = append(list, candidate{n.Code, n.Line()})
		}
	}
	return list
}
