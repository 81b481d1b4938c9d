package dashboard

import (
	"context"
	"slices"

	"netsky/agent"
	"netsky/attention"
	"netsky/view"
)

// A host is another host of the team, as a page shows it.
type host struct {
	attention.Host
	Old string // how old what is known of it is, "" if it is up
}

// hostsOf returns the other hosts of the team, if they tell this one. What can't be read is
// told with what needs the owner.
func hostsOf(o Options) (list []host) {
	now := o.Now()
	found, _ := attention.Hosts(o.Home, now)
	for _, h := range found {
		list = append(list, host{h, h.AsOf(now)})
	}
	return list
}

// Panes are the commands that show the terminal of one of its agents.
func (h host) Panes(id agent.ID) []attention.Command {
	return []attention.Command{
		{Does: "Print its screen", Line: "netsky peek " + string(id)},
		{Does: "Open it, by ssh", Line: "netsky attach " + string(id)},
	}
}

// Everywhere returns the agents of all hosts.
func (sh *shell) Everywhere() []view.Agent { return withHosts(sh.Agents, sh.Hosts) }

func withHosts(list []view.Agent, hosts []host) []view.Agent {
	list = slices.Clip(list)
	for _, h := range hosts {
		list = append(list, h.Agents...)
	}
	return list
}

// allAgents are the agents of all hosts, for the browsers that follow.
type allAgents struct{ *Server }

func (s allAgents) Agents(ctx context.Context) ([]view.Agent, error) {
	list, err := s.o.Agents.Agents(ctx)
	return withHosts(list, hostsOf(s.o)), err
}
