package bridge

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"netsky/agent"
	"netsky/attention"
	"netsky/attention/approve"
	"netsky/bus/envelope"
	"netsky/cli/view"
	"netsky/cost"
	"netsky/fleet"
	"netsky/home"
	"netsky/internal/proc"
	"netsky/phone"
	"netsky/spawn"
	"netsky/spawn/pane"
	"netsky/store"
)

// A Desk does what the owner asks for by text, as the verbs do it.
type Desk struct {
	Overview view.Options
	Approve  approve.Desk
}

var _ phone.Desk = Desk{}

// ByPhone is the [agent.Answer.By] of an answer by text.
const ByPhone = "the phone"

func (d Desk) launcher() *spawn.Launcher { return d.Overview.Launcher }

// Needs implements [phone.Desk].
func (d Desk) Needs(ctx context.Context) ([]attention.Need, error) {
	list, err := d.launcher().Inspect(ctx)
	found, nerr := view.Needs(ctx, d.Overview, list, view.Daemon{State: "running", Wanted: true})
	return found, errors.Join(err, nerr)
}

const (
	effectWithin = 10 * time.Second // for an agent to read the answer to its question
	effectLook   = 50 * time.Millisecond
)

// Answer implements [phone.Desk].
func (d Desk) Answer(ctx context.Context, n attention.Need, allow bool) (string, error) {
	switch n.Kind {
	case attention.Dialog:
		return d.dialog(ctx, n, allow)
	case attention.Budget:
		return d.budget(ctx, n, allow)
	}
	q, err := d.Approve.Answer(ctx, n.Code, agent.Answer{Allow: allow, By: ByPhone})
	line, _ := q.Brief(200)
	what := fmt.Sprintf("%s: %s: %s: %s: %s.", n.Code, approve.Verdict(allow), q.Agent, q.Tool, line)
	switch {
	case errors.Is(err, agent.ErrNoApproval):
		how := d.How(ctx, n.Code)
		if how == "" {
			how = "it may have been withdrawn"
		}
		return "", fmt.Errorf("%s is settled: %s", n.Code, how)
	case errors.Is(err, agent.ErrUntaken):
		return what + " But it has not been read yet.", nil
	case err != nil:
		return "", fmt.Errorf("%s was possibly not answered: %w", n.Code, err)
	}
	return what, nil
}

// budget answers for a budget that is used up.
func (d Desk) budget(ctx context.Context, n attention.Need, allow bool) (string, error) {
	db, err := store.Open(ctx, d.launcher().Home)
	if err != nil {
		return "", fmt.Errorf("%s was not answered: %w", n.Code, err)
	}
	defer db.Close()
	text, err := cost.Answer(ctx, d.launcher().Bus, db, n.Budget, allow)
	return n.Code + ": " + text, err
}

// unread waits until the asker has read the answer to its question, which removes the
// question, and returns why it has not; "" if it has.
func (d Desk) unread(ctx context.Context, code string) string {
	why := ""
	for end := time.Now().Add(effectWithin); time.Now().Before(end); {
		list, err := home.Approvals(d.launcher().Home).List() // without those of askers that have ended
		waits := slices.ContainsFunc(list, func(q agent.Approval) bool { return q.Code == code })
		_, given, _ := home.Approvals(d.launcher().Home).Answered(code)
		switch {
		case err == nil && !waits && !given:
			return ""
		case err == nil && !waits:
			why = "what asked for it has ended before it read the answer"
		default:
			why = "it has not been read yet"
		}
		if proc.Sleep(ctx, effectLook) != nil {
			return why
		}
	}
	return why
}

// dialog answers a dialog in the panes of the agents that wait at it, if it is the one that
// the owner was shown.
func (d Desk) dialog(ctx context.Context, n attention.Need, allow bool) (string, error) {
	v, err := d.Approve.Decide(ctx, d.launcher(), d.Overview.Runtimes, approve.Choice{Agents: n.Agents, Words: n.Text, Code: n.Code, Allow: allow, By: ByPhone})
	if err == nil {
		err = errors.Join(v.Failed...)
	}
	if len(v.Given) == 0 {
		if how := d.Approve.How(ctx, n.Code); how != "" && errors.Is(err, pane.ErrChanged) {
			err = fmt.Errorf("%w; it was %s", err, how)
		} else if err == nil {
			err = errors.New("nothing was answered")
		}
		return "", fmt.Errorf("%s: %w", n.Code, err)
	}
	text := fmt.Sprintf("%s: %s: %s: %s.", n.Code, approve.Verdict(allow), attention.Names(v.Given), envelope.Line(v.Dialog.Text, 200))
	if len(v.Differs) > 0 {
		text += fmt.Sprintf(" Not answered, as it is another dialog now: %s.", attention.Names(v.Differs))
	}
	if err != nil {
		text += " " + err.Error()
	}
	return text, nil
}

// How implements [phone.Desk].
func (d Desk) How(ctx context.Context, code string) string {
	how := d.Approve.How(ctx, code)
	if how == "" {
		return ""
	}
	if why := d.unread(ctx, code); why != "" {
		how += ", but " + why
	}
	return how
}

// Status implements [phone.Desk].
func (d Desk) Status(ctx context.Context) (string, error) {
	v := view.Collect(ctx, d.Overview)
	var lines []string
	down := 0
	for _, a := range v.Agents {
		if a.State == agent.Down && !a.Wanted {
			down++
			continue
		}
		line := string(a.Agent) + " " + string(a.State)
		if words := a.Words(); words != "" {
			line += ": " + envelope.Line(words, 120)
		}
		lines = append(lines, line)
	}
	switch {
	case len(lines) == 0:
		lines = append(lines, "No agent is up.")
	case down > 0:
		lines = append(lines, fmt.Sprintf("%d more down", down))
	}
	if n := len(v.Needs); n > 0 {
		lines = append(lines, attention.Count(n)+": "+attention.Headline(v.Needs)+". `needs` lists them.")
	} else {
		lines = append(lines, "Nothing needs you.")
	}
	for _, note := range v.Notes {
		lines = append(lines, "! "+envelope.Line(note, 300))
	}
	return strings.Join(lines, "\n"), nil
}

// Peek implements [phone.Desk].
func (d Desk) Peek(ctx context.Context, id agent.ID, n int) (string, error) {
	st, err := d.status(ctx, id)
	if err != nil {
		return "", err
	}
	if st.Pane() == "" {
		return "", spawn.NoPane(st)
	}
	lines, err := d.launcher().LastLines(ctx, st, n)
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Trim(strings.Join(lines, "\n"), "\n"), err
}

// Stop implements [phone.Desk].
func (d Desk) Stop(ctx context.Context, id agent.ID) (string, error) {
	st, err := d.status(ctx, id)
	if err != nil {
		return "", err
	}
	ended, err := fleet.Turn(ctx, d.launcher(), agent.Owner, st, d.Overview.Runtimes[st.Runtime])
	switch {
	case err != nil:
		return "", err
	case !ended:
		return fmt.Sprintf("%s is %s: there is nothing to end.", id, st.State), nil
	}
	return fmt.Sprintf("%s: its turn has ended; the agent stays up (on the computer, `netsky down %[1]s` ends it).", id), nil
}

// Waits implements [phone.Desk].
func (d Desk) Waits(ctx context.Context, id agent.ID) string {
	st, err := d.status(ctx, id)
	switch {
	case err != nil:
		return ""
	case !st.Alive():
		return fmt.Sprintf("%s is %s: your message waits until it is up.", id, st.State)
	case st.State == agent.Blocked, st.State == agent.Hung, st.State == agent.Waiting && st.Asks():
		return fmt.Sprintf("%s is %s: your message waits.", id, st.How())
	}
	return ""
}

func (d Desk) status(ctx context.Context, id agent.ID) (spawn.Status, error) {
	list, err := d.launcher().Inspect(ctx)
	if err != nil {
		return spawn.Status{}, err
	}
	return list.Find(id), nil
}
