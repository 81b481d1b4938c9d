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
	"netsky/config"
	"netsky/fleet"
	"netsky/home"
	"netsky/internal/proc"
	"netsky/phone"
	"netsky/spawn"
	"netsky/spawn/pane"
)

// A Desk does what the owner asks for by text, as the verbs do it.
type Desk struct {
	*fleet.Fleet
	Overview func(context.Context) (string, error) // the state of everything in some lines
}

var _ phone.Desk = Desk{}

// Needs implements [phone.Desk].
func (d Desk) Needs(ctx context.Context) ([]attention.Need, error) {
	list, err := d.Launcher.Inspect(ctx)
	s := attention.Sources{Daemon: attention.DaemonRuns}
	s.Mistake, s.Prevents = config.Mistake(d.Home)
	found, nerr := fleet.Needs(ctx, d.Launcher, d.Runtimes, list, s)
	return found, errors.Join(err, nerr)
}

const (
	effectWithin = 10 * time.Second // for an agent to read the answer to its question
	effectLook   = 50 * time.Millisecond
)

// Answer implements [phone.Desk].
func (d Desk) Answer(ctx context.Context, n attention.Need, allow bool) (string, error) {
	if n.Host != "" {
		var cancel context.CancelFunc
		ctx, cancel = within(ctx)
		defer cancel()
	}
	v, err := fleet.Answers{Fleet: d.Fleet}.Decide(ctx, fleet.DecideRequest{Code: n.Code, Deny: !allow, By: fleet.ByPhone, Shown: n})
	switch {
	case n.Host != "":
		return d.answeredAt(ctx, n, allow, v, err)
	case n.Kind == attention.Dialog:
		return d.dialog(ctx, n, allow, v.Dialog, err)
	case n.Kind == attention.Budget && v.Budget == "" && err != nil:
		return "", fmt.Errorf("%s was not answered: %w", n.Code, err)
	case n.Kind == attention.Budget:
		return n.Code + ": " + v.Budget, err
	case errors.Is(err, agent.ErrNoApproval):
		how := d.How(ctx, n.Code)
		if how == "" {
			how = "it may have been withdrawn"
		}
		return "", fmt.Errorf("%s is settled: %s", n.Code, how)
	case err != nil && !errors.Is(err, agent.ErrUntaken):
		return "", fmt.Errorf("%s was possibly not answered: %w", n.Code, err)
	}
	what := answered(n, allow, v)
	if err != nil {
		what += " But it has not been read yet."
	}
	return what, nil
}

// answered says what an answer to a request was to.
func answered(n attention.Need, allow bool, v fleet.DecideResult) string {
	line, _ := v.Request.Brief(200)
	return fmt.Sprintf("%s: %s: %s: %s: %s.", n.Code, approve.Verdict(allow), v.Request.Agent, v.Request.Tool, line)
}

// unread waits until the asker has read the answer to its question, which removes the
// question, and returns why it has not; "" if it has.
func (d Desk) unread(ctx context.Context, code string) string {
	why := ""
	for end := time.Now().Add(effectWithin); time.Now().Before(end); {
		list, err := home.Approvals(d.Launcher.Home).List() // without those of askers that have ended
		waits := slices.ContainsFunc(list, func(q agent.Approval) bool { return q.Code == code })
		_, given, _ := home.Approvals(d.Launcher.Home).Answered(code)
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

// dialog says what answering a dialog did.
func (d Desk) dialog(ctx context.Context, n attention.Need, allow bool, v *approve.Decision, err error) (string, error) {
	if v == nil || len(v.Given) == 0 {
		if how := (fleet.Answers{Fleet: d.Fleet}).Desk().How(ctx, n.Code); how != "" && errors.Is(err, pane.ErrChanged) {
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
	how := fleet.Answers{Fleet: d.Fleet}.Desk().How(ctx, code)
	if how == "" {
		return ""
	}
	if why := d.unread(ctx, code); why != "" {
		how += ", but " + why
	}
	return how
}

// Status implements [phone.Desk].
func (d Desk) Status(ctx context.Context) (string, error) { return d.Overview(ctx) }

// Peek implements [phone.Desk].
func (d Desk) Peek(ctx context.Context, id agent.ID, n int) (string, error) {
	var v fleet.PeekResult
	var err error
	if r := (fleet.PeekRequest{Agent: id.Local(), Lines: n}); id.Host() != "" {
		err = d.doAt(ctx, id.Host(), "peek", r, &v)
	} else {
		v, err = fleet.Panes{Fleet: d.Fleet}.Peek(ctx, r)
	}
	for i := range v.Lines {
		v.Lines[i] = strings.TrimRight(v.Lines[i], " ")
	}
	return strings.Trim(strings.Join(v.Lines, "\n"), "\n"), err
}

// Stop implements [phone.Desk].
func (d Desk) Stop(ctx context.Context, id agent.ID) (string, error) {
	if id.Host() != "" {
		return d.stopAt(ctx, id)
	}
	r, err := fleet.Panes{Fleet: d.Fleet}.Interrupt(ctx, fleet.InterruptRequest{Agent: id})
	switch {
	case err != nil:
		return "", err
	case !r.Ended:
		return fmt.Sprintf("%s is %s: there is nothing to end.", id, r.Was.State), nil
	}
	return fmt.Sprintf("%s: its turn has ended; the agent stays up (on the computer, `netsky down %[1]s` ends it).", id), nil
}

// Waits implements [phone.Desk].
func (d Desk) Waits(ctx context.Context, id agent.ID) string {
	if id.Host() != "" {
		return d.waitsAt(id)
	}
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
	list, err := d.Launcher.Inspect(ctx)
	if err != nil {
		return spawn.Status{}, err
	}
	return list.Find(id), nil
}
