package demo

import (
	"context"
	"fmt"
	"slices"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/internal/proc"
)

// An exchange is a message of the tour and its answers.
type exchange struct {
	bus.Entry
	answers []bus.Entry
}

// gather reads the tour's messages in the agents' mailboxes, and their answers in the owner's: what is on
// disk, not what a process remembers.
func (t *tour) gather() (list []exchange, err error) {
	read := func(id agent.ID) (mail []bus.Entry, err error) {
		names, err := t.bus.Mail(id, true)
		if err == nil {
			mail, err = t.bus.FindAll(id, names)
		}
		return slices.DeleteFunc(mail, func(e bus.Entry) bool { return e.Err != nil || e.Place == bus.Poison || e.Why != "" }), err
	}
	answers, err := read(agent.Owner)
	if err != nil {
		return nil, err
	}
	for _, id := range []agent.ID{agent.Root, agent.Clone(1), agent.Clone(2)} {
		mail, err := read(id)
		if err != nil {
			return nil, err
		}
		for _, e := range mail {
			if e.Envelope.From != agent.Owner || e.Envelope.Via != "cli" {
				continue
			}
			one := exchange{Entry: e}
			for _, a := range answers {
				if a.Envelope.InReplyTo == e.Envelope.ID {
					one.answers = append(one.answers, a)
				}
			}
			list = append(list, one)
		}
	}
	slices.SortStableFunc(list, func(a, b exchange) int { return a.Time.Compare(b.Time) })
	return list, nil
}

// collect waits until every message is answered, or the time is up.
func (t *tour) collect(ctx context.Context) error {
	for end := time.Now().Add(answerWithin); time.Now().Before(end); {
		list, err := t.gather()
		if err != nil {
			return err
		}
		if len(list) >= t.sent && !slices.ContainsFunc(list, func(m exchange) bool { return len(m.answers) == 0 }) {
			return nil
		}
		if err := proc.Sleep(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
	return nil // what is missing is counted
}

func (t *tour) account(ctx context.Context) error {
	if err := t.collect(ctx); err != nil {
		return err
	}
	// A second answer would arrive late.
	if err := proc.Sleep(ctx, time.Second); err != nil {
		return err
	}
	list, err := t.gather()
	if err != nil {
		return err
	}
	answered, twice := 0, 0
	for _, m := range list {
		answer := "LOST"
		switch len(m.answers) {
		case 0:
		case 1:
			answered++
			answer = envelope.Line(m.answers[0].Envelope.Text, 38)
		default:
			twice++
			answer = fmt.Sprintf("ANSWERED %d TIMES", len(m.answers))
		}
		t.say("%-7s %-30s  %s", m.Envelope.To, m.Envelope.Text, answer)
	}
	lost := t.sent - answered - twice
	t.say("\n%d sent, %d answered, %d lost, %d answered twice; %d processes killed", t.sent, answered, lost, twice, t.killed)
	if lost != 0 || twice > 0 {
		return fmt.Errorf("the tour ended with %d lost and %d answered twice", lost, twice)
	}
	return nil
}
