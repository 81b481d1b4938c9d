package recall

import (
	"errors"
	"fmt"
	"time"

	"netsky/agent"
	"netsky/agent/home"
)

func fallFile(id agent.ID) string { return "state/recall/" + string(id) + ".json" }

// A fall is the end of all agents at once, of which one has to be told.
type fall struct {
	FoundMS int64  `json:"found_ms"`
	Down    []Down `json:"down"`
}

// A Down is an agent that was down against the owner's wish.
type Down struct {
	Agent   agent.ID `json:"agent"`
	SinceMS int64    `json:"since_ms"` // 0: it is not known
}

// Fell notes that all these agents are down, for those among them that have to know about
// the others. Each is told with its next text, which spends nothing by itself.
func Fell(h home.Dir, list []Down) (err error) {
	for _, d := range list {
		if !d.Agent.IsClone() {
			err = errors.Join(err, h.Save(fallFile(d.Agent), fall{time.Now().UnixMilli(), list}, false))
		}
	}
	return err
}

// Due reports whether an agent has to be told of a fall.
func Due(h home.Dir, id agent.ID) bool { return h.Mark(fallFile(id)).Exists() }

// Told returns what forgets a fall once the agent was told of it.
func Told(h home.Dir, id agent.ID) func() {
	return func() { _ = h.Remove(fallFile(id)) } // at worst it is told again
}

// fell adds who was down.
func (f *facts) fell() {
	fall, err := home.Load[fall](f.l.Home, fallFile(f.id))
	if err != nil {
		return
	}
	var lines []string
	for _, d := range fall.Down {
		words, ms := "since", d.SinceMS
		if ms <= 0 {
			words, ms = "found down at", fall.FoundMS
		}
		lines = append(lines, fmt.Sprintf("%s, %s %s", d.Agent, words, time.UnixMilli(ms).UTC().Format("2006-01-02 15:04:05Z")))
	}
	f.add("All agents were down at once and are started again with their conversations:", lines)
}
