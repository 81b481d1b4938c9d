package dispatch

import (
	"cmp"
	"context"
	"fmt"

	"netsky/agent"
	"netsky/bus/envelope"
	"netsky/store"
	"netsky/work/task"
)

// answered looks for the worker's answer to who has started the task, and obeys it. What others say of the
// brief, or it says to others, is no answer.
func (l look) answered(ctx context.Context, k store.Task) (bool, error) {
	list, err := l.db.Messages(ctx, store.MessageFilter{InReplyTo: k.Brief, From: k.Assignee, To: k.Starter})
	if err != nil {
		return false, err
	}
	var answer *store.Message
	for i, m := range list.Items { // the newest first: the first reply counts, else the first error
		if m.Kind == string(envelope.KindReply) || m.Kind == string(envelope.KindError) && (answer == nil || answer.Kind == m.Kind) {
			answer = &list.Items[i]
		}
	}
	if answer != nil && k.Assignee != k.Starter {
		return true, l.close(ctx, k, answer.From, answer.Kind == string(envelope.KindReply), answer.Text, answer.Time)
	}
	d, err := l.db.Deliveries(ctx, store.DeliveryFilter{Message: k.Brief, From: k.Starter, Target: k.Assignee})
	if err != nil || len(d.Items) == 0 {
		return false, err
	}
	switch one := d.Items[0]; one.State {
	case store.Failed, store.Poisoned, store.Cancelled, store.Expired:
		why := fmt.Sprintf("%s did not get it: %s", k.Assignee, cmp.Or(one.Reason, string(one.State)))
		if k.State == store.TaskInProgress {
			if err := l.tell(ctx, k, "not-delivered", "is blocked: "+why+again(k)); err != nil {
				return true, err
			}
		}
		return true, l.close(ctx, k, k.Assignee, false, why, one.Changed)
	}
	return false, nil
}

// again says how a blocked task is given out once more.
func again(k store.Task) string {
	return fmt.Sprintf("; `netsky task start %s` gives it out again", Short(k.ID))
}

// close records what the worker has answered. A task that was changed meanwhile, by the worker itself
// or another, stays as it is; an answer that comes then is kept as a note.
func (l look) close(ctx context.Context, k store.Task, by agent.ID, done bool, text string, at store.Time) error {
	delete(l.missing, k.Brief)
	c := l.as(by)
	head, unbrought := "", error(nil)
	if done && expected(k) {
		var still bool
		if still, unbrought = l.bring(ctx, k); still {
			return nil
		}
		if unbrought == nil {
			head = c.Book().Head(ctx, by)
		}
	}
	text = envelope.Shorten(text, task.MaxText)
	defer step()
	_, err := c.Book().Alter(ctx, k.ID, func(now *store.Task) ([]store.Op, error) {
		if now.Brief != k.Brief {
			return nil, nil
		}
		now.Brief, now.Briefed = "", 0
		note := store.AddNote{About: k.ID, Author: string(by), Text: text}
		switch open := expected(*now); {
		case !open && (!done || now.ClosedBy == by):
			return nil, nil
		case !open:
			return []store.Op{note}, nil
		case done:
			now.Proof = cmp.Or(now.Proof, text)
			task.Close(now, by, head, at)
			ops := []store.Op{logged(*now, k.Brief+"-done", fmt.Sprintf("claimed by %s", by))}
			if unbrought != nil {
				ops = append(ops, store.AddNote{About: k.ID, Author: "netsky", Text: "what it has committed was not brought here: " + unbrought.Error()})
			}
			return ops, nil
		}
		now.State, now.Starter = store.TaskBlocked, ""
		return []store.Op{note.Because(), logged(*now, k.Brief+"-blocked", fmt.Sprintf("blocked: %s", envelope.Line(text, 200)))}, nil
	})
	return err
}

// expected reports whether an answer to the task's brief says what becomes of it: while it is in
// progress, and after netsky, not a person or an agent, has blocked it for want of an answer.
func expected(k store.Task) bool {
	return k.State == store.TaskInProgress || unheard(k)
}

// unheard reports whether the task is blocked for want of an answer.
func unheard(k store.Task) bool { return k.State == store.TaskBlocked && k.Starter != "" }

// unanswered blocks the task of a worker that has ended its turn and sent no answer. Its brief and
// its starter stay: an answer that comes late counts. Who started it is told first, as by block.
func (l look) unanswered(ctx context.Context, k store.Task) error {
	why := fmt.Sprintf("%s ended its turn without an answer", k.Assignee)
	if err := l.tell(ctx, k, "unanswered", "is blocked: "+why+again(k)+", and an answer that still comes closes it"); err != nil {
		return err
	}
	step()
	defer step()
	_, err := l.as(k.Starter).Book().Alter(ctx, k.ID, func(now *store.Task) ([]store.Op, error) {
		if now.Brief != k.Brief || now.State != store.TaskInProgress {
			return nil, nil
		}
		now.State = store.TaskBlocked
		return []store.Op{
			store.AddNote{About: k.ID, Author: "netsky", Text: why}.Because(),
			logged(*now, k.Brief+"-unanswered", "blocked: "+why),
		}, nil
	})
	return err
}

// taken returns when the worker took the brief out of its mailbox, 0 if that is not on record.
func (l look) taken(ctx context.Context, k store.Task) (store.Time, error) {
	d, err := l.db.Deliveries(ctx, store.DeliveryFilter{Message: k.Brief, From: k.Starter, Target: k.Assignee})
	if err != nil || len(d.Items) == 0 {
		return 0, err
	}
	return d.Items[0].Delivered, nil
}
