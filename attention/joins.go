package attention

import (
	"fmt"

	"netsky/agent"
	"netsky/link/team"
	"netsky/store"
)

// joins are the hosts that ask to join the team. Who lets one in has to see both codes, so
// that is done in a terminal and nowhere else.
func (s Sources) joins() (list []Need) {
	for _, q := range s.Joins {
		if q.State != team.Pending {
			continue
		}
		list = append(list, Need{
			Kind: Join, About: q.Name, Agents: []agent.ID{}, Title: "asks to join", Since: store.At(q.At), id: []string{q.ID},
			Text:      fmt.Sprintf("compare the code %s with the one that it shows; only in a terminal%s", q.Code, q.Caution()),
			Otherwise: "it is not let in, and its request is over at " + agent.Clock(q.Until(), s.Now),
			Commands: []Command{
				{"Let it in, if it shows that code", "netsky link approve " + q.Code}, {"Keep it out", "netsky link reject " + q.Code},
			},
		})
	}
	return list
}
