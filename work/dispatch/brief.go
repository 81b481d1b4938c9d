package dispatch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/courier"
	"netsky/bus/envelope"
	"netsky/home"
	"netsky/store"
	"netsky/work/away"
	"netsky/work/git"
	"netsky/work/task"
	"netsky/work/tree"
)

// give sends the recorded brief to the task's worker, and records that it was sent. former is who
// had the task before, if that is known. A brief that was taken back before it was there to be
// withdrawn is withdrawn now.
func (c Crew) give(ctx context.Context, k store.Task, former agent.ID) (err error) {
	if c.Hold != nil {
		err = c.Hold(ctx)
	}
	if err == nil {
		_, _, err = c.Bus.SendOnce(ctx, envelope.Envelope{
			ID: k.Brief, From: k.Starter, To: k.Assignee, Kind: envelope.KindBrief, Via: "cli", Thread: k.ID,
			Text: envelope.SafeText(c.text(ctx, k, former)), Time: time.Now(),
		})
	}
	if err != nil && !errors.Is(err, bus.ErrUsed) { // it was sent before, in words of that moment
		return fmt.Errorf("%s: recorded, and not sent to %s yet: %w", k.ID, k.Assignee, err)
	}
	step()
	defer step()
	now, err := c.Book().Alter(ctx, k.ID, func(now *store.Task) ([]store.Op, error) {
		if now.Brief != k.Brief || now.Briefed != 0 || takenBack(*now, k.Brief) {
			return nil, nil
		}
		now.Briefed = store.At(time.Now())
		return []store.Op{store.AddLog{
			Key: k.Brief, Part: Part, Actor: k.Assignee, About: k.ID, Text: fmt.Sprintf("%s gave it to %s: %s", k.Starter, k.Assignee, envelope.Line(k.Title, 200)),
		}}, nil
	})
	if err == nil && takenBack(now, k.Brief) {
		err = changed(now)
		if note := c.withdraw(ctx, k.Brief, k.Assignee); note != "" {
			err = fmt.Errorf("%w; %s", err, note)
		}
	}
	return err
}

// takenBack reports whether somebody has taken the task from the worker that has this brief.
func takenBack(now store.Task, brief string) bool {
	switch now.Brief {
	case brief:
		return !expected(now) && now.ClosedBy != now.Assignee // which has closed it by its tools
	case "": // answered, unless it is to be started anew
		return now.State == store.TaskOpen
	}
	return true
}

// Part is the part of netsky that the records name for what happens to tasks.
const Part = "task"

// text returns what the worker is told.
func (c Crew) text(ctx context.Context, k store.Task, former agent.ID) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Task %s: %s\n", k.ID, k.Title)
	if k.Body != "" {
		fmt.Fprintf(&b, "\n%s\n", strings.TrimSpace(k.Body))
	}
	if k.Starts > 1 {
		b.WriteString("\n" + c.recovery(ctx, k, former) + "\n")
	}
	if needs, err := c.Book().Needs(ctx, k.ID); err == nil && len(needs) > 0 {
		b.WriteString("\nIt builds on these tasks:\n")
		for _, n := range needs {
			fmt.Fprintf(&b, "- %s %s (%s)", n.ID, n.Title, strings.ReplaceAll(n.Word(), "_", " "))
			if n.Proof != "" {
				fmt.Fprintf(&b, ": %s", envelope.Line(n.Proof, 300))
			}
			b.WriteString(c.builtOn(n, k.Assignee) + "\n")
		}
	}
	b.WriteString("\nWhen it is done, answer this message once. Your answer closes the task, so let it say what shows that it is done: " +
		"the command that you ran and what it printed, a file, a commit.")
	w, err := tree.Load(c.Home, k.Assignee)
	if err == nil {
		b.WriteString(" Commit your work first; what is not committed counts as not done.")
	}
	b.WriteString(" If it cannot be done, answer with an error that says why.")
	if err == nil && w.Away != nil {
		b.WriteString(" " + c.begins(ctx, w))
	}
	return b.String()
}

// builtOn tells a worker how it gets what was committed for a task that its own needs.
func (c Crew) builtOn(n store.Task, worker agent.ID) string {
	if n.Head == "" || n.Assignee == worker {
		return ""
	}
	if worker.Host() == "" {
		if w, err := tree.Load(c.Home, n.Assignee); err == nil {
			return fmt.Sprintf("; it is at %.12s on %s: if your branch lacks that, git merge %.12s", n.Head, w.Short(), n.Head)
		}
		return ""
	}
	w, err := tree.Load(c.Home, worker)
	switch {
	case err != nil || w.Away == nil:
		return ""
	case slices.Contains(w.Away.Needs, n.Head):
		return fmt.Sprintf("; it is at %.12s, which your repository has: if your branch lacks that, git merge %.12s", n.Head, n.Head)
	}
	return fmt.Sprintf("; it is at %.12s, which was not brought to your repository: if that lacks it and your work needs it, answer with an error that says so", n.Head)
}

// begins tells a worker on another host where its work begins, and how it gets from there.
func (c Crew) begins(ctx context.Context, w tree.Worktree) string {
	from := ""
	if origin := away.Origin(ctx, w); origin != "" {
		from = " of " + origin
	}
	text := fmt.Sprintf("It is about the repository%s that you work in, in %s, and begins at the commit %s", from, w.Away.Dir, w.From)
	if w.Base != "" {
		text += " of " + git.Branch(w.Base)
	}
	text += ", which is there as " + tree.BaseRef(w.Agent) + ": if your branch lacks it, merge that first."
	if w.Away.Branch != "" {
		text += fmt.Sprintf(" What you commit on your branch %s is fetched from there; you need not push it.", git.Branch(w.Away.Branch))
	}
	return text
}

// recovery tells a worker that the task was begun before.
func (c Crew) recovery(ctx context.Context, k store.Task, former agent.ID) string {
	if former == k.Assignee || former == "" && c.had(ctx, k) {
		return "You had this task before. See what you have already done, and go on from there."
	}
	if former == "" {
		return "It was given out before. See what there is already before you begin."
	}
	text := fmt.Sprintf("%s had it before and did not finish it.", former)
	if w, err := tree.Load(c.Home, former); err == nil && w.Away != nil && k.Assignee.Host() == "" {
		text += fmt.Sprintf(" What it had committed when its host was last asked is on %s.", w.Branch)
	} else if err == nil && w.Away == nil && k.Assignee.Host() == "" {
		text += fmt.Sprintf(" What it did is on the branch %s and, if not committed, in %s: read it there, change nothing there.", w.Short(), w.Dir)
	}
	return text + " See what there is already before you begin."
}

// had reports whether the worker is the one that was given the task the last time, too.
func (c Crew) had(ctx context.Context, k store.Task) bool {
	id := task.BriefID(k.ID, k.Starts-1)
	list, err := c.Bus.Received(ctx, k.Assignee, id)
	return err == nil && len(list) > 0 && list[0].Envelope.ID == id
}

// withdraw takes a brief back from a worker, and returns what is left to say about that.
func (c Crew) withdraw(ctx context.Context, brief string, from agent.ID) (note string) {
	n, err := c.Bus.Retract(ctx, from, func(e envelope.Envelope) bool { return e.ID == brief })
	if n > 0 || errors.Is(err, bus.ErrNoMailbox) {
		return ""
	}
	list, err := c.Bus.Received(ctx, from, brief)
	if err == nil && (len(list) == 0 || list[0].Envelope.ID != brief) {
		return ""
	}
	if err == nil && from.Host() != "" { // its host has it
		err = home.ErrLocked
	} else if err == nil {
		err = c.unclaim(ctx, brief, from, list[0].Place)
	}
	if errors.Is(err, home.ErrLocked) { // the worker is there to be told
		note = fmt.Sprintf("%s is told to leave it, as soon as it can be", from)
		_, err = c.Bus.Send(ctx, envelope.Envelope{From: c.By, To: from, Kind: envelope.KindCancel, InReplyTo: brief, Text: "cancel", Via: "cli", Time: time.Now()})
	}
	if err != nil {
		return fmt.Sprintf("it could not be taken back from %s: %v", from, err)
	}
	if note == "" && c.untold(ctx, brief, from) {
		note = fmt.Sprintf("%s has read it, can't be told to leave it, and may still be at it; `netsky down %s` ends it", from, from.N())
	}
	return note
}

// untold reports whether an agent has read a brief and not answered it, whose program reports no turns and
// has run since: it may be at it, and can't be told to leave it.
func (c Crew) untold(ctx context.Context, brief string, from agent.ID) bool {
	la, err := c.Home.LoadLaunch(from)
	if err != nil || !la.Silent {
		return false
	}
	list, err := c.Bus.Received(ctx, from, brief)
	if err != nil || len(list) == 0 || list[0].Envelope.ID != brief || list[0].Place != bus.Delivered || list[0].Reason != "" {
		return false
	}
	sent := list[0].Envelope.Time
	kept, err := c.Home.LoadKeeper(from)
	if err != nil || kept.EndedMS != 0 || kept.StartedMS > sent.UnixMilli() {
		return false
	}
	_, answered, err := c.Bus.FindAnswer(ctx, from, list[0].Envelope.From, brief, sent)
	return err == nil && !answered
}

// unclaim files a brief that a worker had taken before it ended, so that its next start neither gets
// it again nor owes an answer. The error matches home.ErrLocked if the worker is up.
func (c Crew) unclaim(ctx context.Context, brief string, from agent.ID, at bus.Place) error {
	if at == bus.Claimed {
		_, err := c.Bus.Drain(ctx, from, 1, func(e envelope.Envelope) error {
			if e.ID != brief {
				return bus.ErrLeave
			}
			return courier.Forget(c.Home, from, brief)
		})
		return err
	}
	lock, err := c.Home.Lock(home.ReceiverLock(from))
	if err != nil {
		return err
	}
	defer lock.Unlock()
	return courier.Forget(c.Home, from, brief)
}

// Edit changes a task, and takes it back from its worker if the change is to another state, unless the
// worker goes on or has changed it itself. If the error matches store.ErrSpooled, it is changed once the
// records can be written.
func (c Crew) Edit(ctx context.Context, id string, change task.Change) (e task.Edited, err error) {
	e.Before, e.Task, e.Changed, err = c.Book().Update(ctx, id, change)
	if err != nil && !errors.Is(err, store.ErrSpooled) {
		return e, err
	}
	if change.State != "" && e.Before.Brief != "" && e.Before.Assignee != c.By && e.Task.State != store.TaskInProgress {
		e.Note = c.withdraw(ctx, e.Before.Brief, e.Before.Assignee)
	}
	return e, err
}
