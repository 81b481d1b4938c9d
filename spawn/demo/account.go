package demo

import (
	"context"
	"fmt"
	"strings"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/internal/proc"
	"netsky/store"
)

// collect waits until every job is answered, or the time is up, and then a moment
// longer, because a second answer would arrive late.
func (t *tour) collect(whole context.Context) error {
	ctx, cancel := context.WithTimeout(whole, answerWithin)
	defer cancel()
	for {
		if err := t.gather(); err != nil {
			return err
		}
		open := 0
		for _, j := range t.jobs {
			if len(j.answers) == 0 {
				open++
			}
		}
		if open == 0 {
			break
		}
		if proc.Sleep(ctx, 100*time.Millisecond) != nil {
			return whole.Err() // without one, the time is up and what is missing is counted
		}
	}
	proc.Sleep(ctx, time.Second)
	if whole.Err() != nil {
		return whole.Err()
	}
	return t.gather()
}

// gather counts the answers in the owner's mailbox on disk: what the agents did, not
// what a process remembers.
func (t *tour) gather() error {
	names, err := t.l.Bus.Mail(agent.Owner, true)
	if err != nil {
		return err
	}
	list, err := t.l.Bus.FindAll(agent.Owner, names)
	if err != nil {
		return err
	}
	for _, j := range t.jobs {
		j.answers = nil
	}
	for _, e := range list {
		if j, ok := t.jobs[e.Envelope.InReplyTo]; ok && e.Err == nil && e.Place != bus.Poison && e.Why == "" {
			j.answers = append(j.answers, e)
		}
	}
	return nil
}

func (t *tour) account(ctx context.Context) error {
	answered, lost, twice := 0, 0, 0
	if err := t.rest(ctx); err != nil {
		return err
	}
	t.say("\n6. Count the answers. The line below each job is its recorded history.\n")
	for i, id := range t.order {
		j := t.jobs[id]
		answer := "LOST"
		switch len(j.answers) {
		case 0:
			lost++
		case 1:
			answered++
			answer = envelope.Line(j.answers[0].Envelope.Text, 50)
		default:
			twice++
			answer = fmt.Sprintf("ANSWERED %d TIMES", len(j.answers))
		}
		t.say("  %2d  %-7s %-36s %s", i+1, j.to, j.text, answer)
		t.say("      %s", t.history(ctx, id))
	}
	t.say("\n%d sent, %d answered, %d lost, %d answered twice; %d processes killed", len(t.order), answered, lost, twice, t.killed)
	if lost > 0 || twice > 0 {
		return fmt.Errorf("the tour ended with %d lost and %d answered twice", lost, twice)
	}
	return nil
}

// history returns the recorded history of the message, in one line. It names no command
// to show it: the tour's home is removed at its end.
func (t *tour) history(ctx context.Context, id string) string {
	db, err := store.OpenRead(ctx, t.Dir)
	if err != nil {
		return err.Error()
	}
	defer db.Close()
	tl, err := db.Timeline(ctx, id)
	if err != nil {
		return err.Error()
	}
	var steps []string
	for _, e := range tl.Events {
		switch {
		case e.Ref != id: // another message of the conversation
		case e.Kind == "message":
			steps = append(steps, "sent")
		default:
			steps = append(steps, e.Kind)
		}
	}
	return strings.Join(steps, ", ")
}
