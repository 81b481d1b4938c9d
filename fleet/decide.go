package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"netsky/agent"
	"netsky/attention"
	"netsky/attention/approve"
	"netsky/config"
	"netsky/cost"
	"netsky/internal/advice"
	"netsky/spawn"
	"netsky/store"
	"netsky/view"
)

// Where an answer was given, for the record: the [agent.Answer.By].
const (
	ByTerminal = "netsky approve"
	ByPhone    = "the phone"
	bySocket   = "the control socket"
)

// A DecideRequest answers what an agent asks for, or a dialog, or a budget.
type DecideRequest struct {
	Code  string   `json:"code,omitempty"`  // of the item, on another host with that: abcde@build1
	Agent agent.ID `json:"agent,omitempty"` // without a code: one that waits at a dialog, whatever that says
	Same  bool     `json:"same,omitempty"`  // with an agent: also the others at the same dialog
	Deny  bool     `json:"deny,omitempty"`
	// Digest is that of the item that the owner was shown, with its code: another is not answered. "": whatever it says.
	Digest string `json:"digest,omitempty"`

	By    string         `json:"-"` // where it was given
	Shown attention.Need `json:"-"` // the item that the owner was shown; the zero value: the one with the code
}

// A DecideResult is what was answered: one of these.
type DecideResult struct {
	Request *agent.Approval   `json:"request,omitempty"`
	Dialog  *approve.Decision `json:"dialog,omitempty"`
	Budget  string            `json:"budget,omitempty"` // what that did
}

// Answers is what the owner decides: what agents ask for, and how long hangs are not told.
type Answers struct{ *Fleet }

// Desk returns what puts agents' questions to the owner.
func (f Answers) Desk() approve.Desk {
	return approve.Desk{Home: f.Home, Bus: f.Launcher.Bus, Warn: f.UI.Warn}
}

// Decide gives the owner's answer, once, and returns when it has taken effect. With an error, the
// result says to how much of it that applies. A crash leaves an answer that the agent's program may
// still take.
func (f Answers) Decide(ctx context.Context, r DecideRequest) (v DecideResult, err error) {
	if err := f.May("approve"); err != nil {
		return v, err
	}
	if strings.Contains(r.Code, "@") {
		return f.elsewhere(ctx, r)
	}
	n := r.Shown
	if r.Digest != "" {
		if n, err = f.shown(ctx, r); err != nil {
			return v, err
		}
	}
	switch {
	case r.Agent != "" && r.Code == "":
		return f.dialog(ctx, r, attention.Need{Agents: []agent.ID{r.Agent}})
	case r.Agent != "" || r.Same || r.Code == "":
		return v, advice.With(usagef("approve: needs either a code, or an agent that waits at a dialog"), "`netsky needs` lists them")
	case n.Kind != attention.Dialog && n.Kind != attention.Budget:
		var q agent.Approval
		q, err = f.Desk().Answer(ctx, r.Code, agent.Answer{Allow: !r.Deny, By: r.By})
		if err == nil || q.Code != "" { // else there is none
			v.Request = &q
		}
		if n.Kind != "" || !errors.Is(err, agent.ErrNoApproval) {
			return v, err
		}
		var ok bool
		if n, ok = f.Need(ctx, r.Code); !ok || n.Kind == attention.Approval { // an agent still asks for what was just settled
			return v, err
		}
	}
	switch {
	case n.Kind == attention.Budget:
		return f.budget(ctx, n, !r.Deny)
	case n.Kind == attention.Dialog && len(n.Options) > 0:
		r.Same = r.Shown.Kind == "" && len(n.Agents) > 1
		return f.dialog(ctx, r, n)
	}
	return v, advice.With(usagef("approve: %s is no question that netsky can answer: %s", r.Code, n.Line()), "%s", n.How())
}

// shown returns the item that the owner was shown, if it is still the same.
func (f Answers) shown(ctx context.Context, r DecideRequest) (attention.Need, error) {
	n, ok := f.Need(ctx, r.Code)
	switch {
	case !ok:
		how := cmp.Or(f.Desk().How(ctx, r.Code), "it may have been answered or withdrawn")
		return n, advice.With(fmt.Errorf("%s: nothing was answered: it is not pending: %s", r.Code, how), "`netsky needs` lists what needs you")
	case n.Digest != r.Digest:
		return n, advice.With(usagef("%s: nothing was answered: it is not what you were shown; now it says: %s", r.Code, n.Line()), "`netsky needs` shows it")
	}
	return n, nil
}

// A Page takes the owner's answers to requests that are given in the dashboard.
type Page struct{ *Fleet }

// Answer answers the request for approval that the owner was shown, here or on another host.
func (p Page) Answer(ctx context.Context, n attention.Need, allow bool) (agent.Approval, error) {
	v, err := Answers(p).Decide(ctx, DecideRequest{Code: n.Code, Deny: !allow, By: approve.InDashboard, Shown: n})
	if v.Request == nil {
		return agent.Approval{}, err
	}
	if err == nil && n.There != nil {
		Host{p.Fleet, n.Host}.settled(ctx, n.Code)
	}
	return *v.Request, err
}

// How returns how a request was settled that is no longer pending, "" if that is not known.
func (p Page) How(ctx context.Context, code string) string {
	return Answers(p).Desk().How(ctx, code)
}

// dialog answers the dialog at which agents wait, if it is the one that the item is about.
func (f Answers) dialog(ctx context.Context, r DecideRequest, n attention.Need) (DecideResult, error) {
	d, err := f.Desk().Decide(ctx, f.Launcher, f.runtimes(), approve.Choice{
		Agents: n.Agents, Same: r.Same, Words: n.Text, Code: n.Code, Allow: !r.Deny, By: r.By,
	})
	if err == nil {
		err = errors.Join(d.Failed...)
	}
	if err != nil && len(d.Given) > 0 {
		err = partly(err)
	}
	return DecideResult{Dialog: &d}, err
}

// budget answers for a budget that is used up.
func (f Answers) budget(ctx context.Context, n attention.Need, allow bool) (v DecideResult, err error) {
	db, err := store.Open(ctx, f.Home)
	if err != nil {
		return v, err
	}
	defer db.Close()
	v.Budget, err = cost.Answer(ctx, f.Launcher.Bus, db, n.Budget, allow)
	return v, err
}

// Need returns the item with that code, among what needs the owner.
func (f Answers) Need(ctx context.Context, code string) (attention.Need, bool) {
	list, err := f.Launcher.Inspect(ctx)
	if err != nil {
		return attention.Need{}, false
	}
	var s attention.Sources
	s.Mistake, s.Prevents = config.Mistake(f.Home)
	found, _ := Needs(ctx, f.Launcher, f.runtimes(), list, s) // what can't be read has no code
	return attention.Find(found, code)
}

// Needs lists what needs the owner, by the agents' states and what else is known of netsky.
func Needs(ctx context.Context, l *spawn.Launcher, runtimes map[string]spawn.Runtime, list spawn.Statuses, s attention.Sources) ([]attention.Need, error) {
	s.Now, s.Ticks = time.Now(), l.Home.Ticks()
	for _, st := range list {
		if !st.Forgotten {
			s.Agents = append(s.Agents, view.Of(st, runtimes[st.Runtime]))
		}
	}
	found, err := attention.Collect(ctx, l.Home, attention.NewMail(l.Bus), s)
	return append([]attention.Need{}, found...), err
}
