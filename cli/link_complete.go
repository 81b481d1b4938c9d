package cli

import "netsky/link/team"

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
