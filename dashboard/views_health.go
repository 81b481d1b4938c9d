package dashboard

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"netsky/agent"
	"netsky/attention"
	"netsky/view"
)

// A health says whether everything is all right, and what needs the owner.
type health struct {
	Word   string // a state's, or "well"
	Line   string // one sentence: what needs the owner first
	Counts string // how many items need the owner, how many agents are in which state
	Waits  []need
	Groups []needGroup // the same, by kind
}

// A need is one item of what needs the owner, as a page shows it.
type need struct {
	attention.Need
	Key   string
	Word  string // a state's
	Old   string // how old what is known of it is, if it is on a host that is silent
	Here  bool   // it can be answered on this page
	Alone []need // the same for each agent, if several wait at one dialog
}

// needsOf lists what needs the owner.
func (s *Server) needsOf(ctx context.Context, list []view.Agent) ([]need, error) {
	from := attention.Sources{Now: s.o.Now(), Agents: list, Daemon: attention.DaemonRuns} // this process
	if s.o.Mistake != nil {
		from.Mistake, from.Prevents = s.o.Mistake()
	}
	found, err := attention.Collect(ctx, s.o.Home, s.questions, from)
	all := make([]need, 0, len(found))
	for _, n := range found {
		one := need{Need: n, Key: keyOf(n.Kind, n.Code), Word: needWords[n.Kind], Old: n.Stale(from.Now)}
		one.Here = n.Kind == attention.Approval && s.o.Desk != nil && len(n.Options) > 0 && len(n.Text) <= onPageText
		if n.Kind == attention.Dialog && len(n.Agents) > 1 && len(n.Options) > 0 {
			for _, id := range n.Agents {
				one.Alone = append(one.Alone, aloneOf(one, id))
			}
		}
		all = append(all, one)
	}
	return all, err
}

// aloneOf returns the need of one of several agents that wait at the same dialog. A conflict is not one
// agent's alone, nor is a budget that several share; what is on another host is answered there.
func aloneOf(n need, id agent.ID) need {
	if len(n.Agents) < 2 || n.Host != "" || n.Kind == attention.Conflict || n.Kind == attention.Budget {
		return n
	}
	n.Agents, n.Alone, n.Title = []agent.ID{id}, nil, n.Kind.Phrase()
	yes := "netsky approve " + string(id)
	n.Commands = []attention.Command{{Does: "Open its terminal", Line: "netsky attach " + string(id)}}
	if len(n.Options) > 0 {
		n.Commands = append([]attention.Command{{Does: "Allow", Line: yes}, {Does: "Deny", Line: yes + " --deny"}}, n.Commands...)
	}
	return n
}

// needWords are the words that a need's colour and glyph are chosen by: states.
var needWords = map[attention.Kind]string{
	attention.Approval: "waiting", attention.Dialog: "waiting", attention.Question: "waiting",
	attention.Login: "blocked", attention.Limit: "blocked", attention.Blocked: "blocked", attention.Daemon: "hung", attention.Link: "hung", attention.Unreached: "hung", attention.Config: "hung",
	attention.Unready: "hung", attention.Hung: "hung", attention.Looping: "crash-looping", attention.Dead: "dead", attention.Down: "down", attention.Unreadable: "poisoned",
	attention.Conflict: "waiting", attention.Join: "waiting",
}

// A needGroup is the needs of one kind: the first few, and the rest.
type needGroup struct {
	Title string
	First []need
	Rest  []need
}

// shownNeeds is how many needs of a kind are shown before the rest is folded.
const shownNeeds = 3

// groupNeeds splits needs, which are sorted by kind, into kinds.
func groupNeeds(all []need) (groups []needGroup) {
	for len(all) > 0 {
		n := 1
		for n < len(all) && all[n].Kind == all[0].Kind {
			n++
		}
		few := min(n, shownNeeds)
		if n == shownNeeds+1 {
			few = n // a line that says "1 more" would take as much room
		}
		groups = append(groups, needGroup{all[0].Kind.Title(), all[:few], all[few:n]})
		all = all[n:]
	}
	return groups
}

// Count returns how many agents have needs of the kind, or how many conflicts there are: one that two
// agents have is one.
func (g needGroup) Count() (n int) {
	for _, one := range slices.Concat(g.First, g.Rest) {
		if one.Kind == attention.Conflict {
			n++
			continue
		}
		n += max(len(one.Agents), 1)
	}
	return n
}

// More returns how many of them are in the rest.
func (g needGroup) More() int { return g.Count() - needGroup{First: g.First}.Count() }

// Names lists the agents of the rest.
func (g needGroup) Names() string {
	var names []string
	for _, n := range g.Rest {
		for _, id := range n.Agents {
			if name := string(id); !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return strings.Join(names, ", ")
}

// healthOf summarizes the agents' states and what needs the owner. unsure is set if they
// could not be read.
func healthOf(list []view.Agent, waits []need, unsure bool) health {
	h := health{Word: "well", Line: "All healthy", Waits: waits, Groups: groupNeeds(waits)}
	up, starting := 0, 0
	for _, a := range list {
		if a.State == agent.Starting {
			starting++
		}
		if a.State != agent.Down {
			up++
		}
	}
	items := attention.Count(len(h.Waits))
	h.Counts = counts(list)
	urgent := len(h.Waits) > 0 && h.Waits[0].Kind != attention.Unreadable && h.Waits[0].Kind != attention.Conflict
	switch {
	case urgent:
		h.Word, h.Line = h.Waits[0].Word, headline(waits)
		h.Counts = items + " · " + h.Counts
	case unsure:
		h.Word, h.Line = "unknown", "Status unknown"
	case len(list) == 0:
		h.Word, h.Line = "down", "No agents yet"
	case up == 0:
		h.Word, h.Line = "down", "All agents are down"
	case len(h.Waits) > 0:
		h.Word, h.Line = "poisoned", "All healthy · "+items
	case starting > 0:
		h.Word, h.Line = "starting", plural(starting, "agent is", "agents are")+" starting"
	}
	return h
}

func headline(waits []need) string {
	list := make([]attention.Need, 0, len(waits))
	for _, n := range waits {
		list = append(list, n.Need)
	}
	return attention.Headline(list)
}

// isIll reports whether the agent has failed, or is down and should be up.
func isIll(a view.Agent) bool {
	switch a.State {
	case agent.Blocked, agent.Hung, agent.Dead, agent.CrashLooping:
		return true
	case agent.Down:
		return a.Wanted
	}
	return false
}

// counts says how many agents are in which state, the usual states first.
func counts(list []view.Agent) string {
	n := map[agent.State]int{}
	for _, a := range list {
		n[a.State]++
	}
	var words []string
	for _, s := range []agent.State{
		agent.Busy, agent.Idle, agent.Waiting, agent.Starting, agent.Blocked, agent.Hung, agent.Dead, agent.CrashLooping, agent.Down, agent.Unknown,
	} {
		if n[s] > 0 {
			words = append(words, fmt.Sprintf("%d %s", n[s], s))
		}
	}
	return strings.Join(words, " · ")
}

// startAgain is the command that starts an agent again.
func startAgain(id agent.ID) attention.Command {
	return attention.Command{Does: "Start it again", Line: "netsky agent " + id.N()}
}
