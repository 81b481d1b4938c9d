package dashboard

import (
	"cmp"
	"context"
	"strings"

	"netsky/agent"
	"netsky/work/record"
)

// A foundPlace is what a search finds that is no record of its own: what needs the owner, an agent's branch or
// changed file, a landing or a check by its commit or id.
type foundPlace struct {
	Kind  string
	Agent agent.ID
	Text  string
	Link  string
}

const (
	shortCommit = 7   // how much of a commit's name there must be
	shortName   = 3   // of a branch's or a file's
	inPlaces    = 200 // how many landings and checks are looked at
	maxPlaces   = 20
)

// places finds the text in what needs the owner, and in the agents' work. What git does not tell soon is not found.
func (w *works) places(ctx context.Context, sh *shell, text string) (list []foundPlace) {
	word := strings.ToLower(strings.TrimSpace(text))
	for _, n := range sh.Health.Waits {
		if word == n.Code {
			list = append(list, foundPlace{Kind: "needs you", Text: n.Line(), Link: "/#waiting"})
		}
	}
	if w.Work == nil || len(word) < shortName || strings.Contains(word, " ") {
		return list
	}
	ctx, cancel := context.WithTimeout(ctx, wordLimit)
	defer cancel()
	list = append(list, w.placesInGit(ctx, word)...)
	landings, _ := w.Landings(ctx, record.Filter{Limit: inPlaces}) // the page of work reports what can't be read
	for _, l := range landings {
		if l.ID == word || commit(word, l.After, l.Head, l.Undo, l.Before) {
			list = append(list, foundPlace{"landing", l.Agent, cmp.Or(l.After, l.Head) + " " + LandingOf(l).Says, "/work"})
		}
	}
	checks, _ := w.Checks(ctx, record.Filter{Limit: inPlaces})
	for _, k := range checks {
		if k.ID == word || commit(word, k.Head, k.Base) {
			list = append(list, foundPlace{"check", k.Agent, k.Head + " " + k.State + ": " + k.Command, "/work"})
		}
	}
	return list[:min(len(list), maxPlaces)]
}

// placesInGit finds the word in the names of the agents' branches and of the files that they have changed.
func (w *works) placesInGit(ctx context.Context, word string) (list []foundPlace) {
	states, _, _ := w.States(ctx)
	for _, st := range states {
		if strings.Contains(strings.ToLower(st.Branch), word) || commit(word, st.Head) {
			list = append(list, foundPlace{"branch", st.Agent, st.Branch + " at " + st.Head, href("work", st.Agent)})
		}
		if st.Dirty+st.Ahead == 0 || st.Gone || len(list) >= maxPlaces {
			continue
		}
		c, _, err := w.Change(ctx, st.Agent, "")
		if err != nil {
			continue
		}
		for _, f := range c.Files {
			if strings.Contains(strings.ToLower(f.Path), word) && len(list) < maxPlaces {
				list = append(list, foundPlace{"changed file", st.Agent, f.Path, withQuery(href("work", st.Agent), "file", f.Path)})
			}
		}
	}
	return list
}

// commit reports whether the word is, or begins, the name of one of the commits.
func commit(word string, names ...string) bool {
	if len(word) < shortCommit || strings.Trim(word, "0123456789abcdef") != "" {
		return false
	}
	for _, name := range names {
		if strings.HasPrefix(name, word) {
			return true
		}
	}
	return false
}
