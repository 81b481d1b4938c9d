package watch

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"netsky/agent"
	"netsky/bus/envelope"
	"netsky/home"
	"netsky/store"
)

func noteFile(id agent.ID) string { return "state/recall/" + string(id) + ".json" }

// An owed is what an agent has to be told with its next text.
type owed struct {
	FoundMS int64  `json:"found_ms,omitempty"` // when all agents had ended at once
	Down    []Down `json:"down,omitempty"`
	Forgot  bool   `json:"forgot,omitempty"` // its conversation was compacted or cleared
	Died    *death `json:"died,omitempty"`   // its program, last
}

// A death is the end of an agent's program that nobody wanted.
type death struct {
	Start string `json:"start"`
	How   string `json:"how"`
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
			n := load(h, d.Agent)
			n.FoundMS, n.Down = time.Now().UnixMilli(), list
			err = errors.Join(err, h.Save(noteFile(d.Agent), n, false))
		}
	}
	return err
}

// Died notes that an agent's program died in a start and is about to be started again.
func Died(h home.Dir, id agent.ID, start, how string) error {
	n := load(h, id)
	n.Died = &death{start, how}
	return h.Save(noteFile(id), n, false)
}

// load returns what the agent has to be told; a note that is damaged says nothing.
func load(h home.Dir, id agent.ID) owed {
	n, err := home.Load[owed](h, noteFile(id))
	if err != nil {
		return owed{}
	}
	return n
}

func (m Briefing) note() owed { return load(m.l.Home, m.id) }

// Due reports whether the agent has to be told anything with its next text.
func (m Briefing) Due() bool { return m.l.Home.Mark(noteFile(m.id)).Exists() }

// Forgot notes that the agent's conversation was compacted or cleared. If that can't be
// saved, it is known until the courier ends.
func (m Briefing) Forgot() {
	n := m.note()
	n.Forgot = true
	_ = m.l.Home.Save(noteFile(m.id), n, false)
}

// Told removes the note: the agent was told.
func (m Briefing) Told() { _ = m.l.Home.Remove(noteFile(m.id)) } // at worst it is told again

// add adds what is noted. It reports whether the conversation has forgotten something: it
// has if nothing else is noted.
func (n owed) add(f *facts) (forgot bool) {
	if n.Died != nil {
		f.died(*n.Died)
	}
	var lines []string
	for _, d := range n.Down {
		words, ms := "since", d.SinceMS
		if ms <= 0 {
			words, ms = "found down at", n.FoundMS
		}
		lines = append(lines, fmt.Sprintf("%s, %s %s", d.Agent, words, time.UnixMilli(ms).UTC().Format("2006-01-02 15:04:05Z")))
	}
	f.add("All agents were down at once and are started again with their conversations:", lines)
	return n.Forgot || len(lines) == 0 && n.Died == nil
}

// died adds how the agent's program ended, with the last lines of its pane.
func (f *facts) died(d death) {
	title := fmt.Sprintf("Your program died (%s) and was started again", envelope.Line(d.How, mostWords))
	lines := []string{"its last lines are not on record"}
	if db, err := store.OpenRead(f.ctx, f.l.Home); err == nil {
		defer db.Close()
		if s, err := db.Session(f.ctx, d.Start); err == nil && s.LastLines != "" {
			lines = nil
			for line := range strings.Lines(s.LastLines) {
				if line = envelope.Line(line, mostWords); line != "" {
					lines = append(lines, strconv.Quote(line))
				}
			}
			lines = lines[max(len(lines)-mostLast, 0):]
		}
	}
	f.add(title+"; the last lines of its pane:", lines)
}
