package bridge

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"netsky/agent"
	"netsky/attention"
	"netsky/bus/envelope"
	"netsky/fleet"
)

// This file is what a Desk does on other hosts of the team.

const (
	farTime = 30 * time.Second // that a text waits for another host
	farText = 600              // bytes of what that says
)

// within returns a context for a deed on another host, which may never end there.
func within(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, farTime, fmt.Errorf("it has not ended within %v", farTime))
}

// doAt has another host do a deed.
func (d Desk) doAt(ctx context.Context, host, deed string, request, result any) error {
	ctx, cancel := within(ctx)
	defer cancel()
	err := fleet.Host{Fleet: d.Fleet, Name: host}.Do(ctx, deed, request, result)
	if err != nil {
		return errors.New(envelope.Line(err.Error(), farText))
	}
	return nil
}

// answeredAt says what another host has done with an answer: with an error, that says whether anything was.
func (d Desk) answeredAt(ctx context.Context, n attention.Need, allow bool, v fleet.DecideResult, err error) (text string, _ error) {
	switch {
	case v.Dialog != nil:
		text, err = d.dialog(ctx, n, allow, v.Dialog, err)
	case err != nil:
		err = fmt.Errorf("%s: %w", n.Code, err)
	case v.Request != nil:
		text = answered(n, allow, v)
	default:
		text = n.Code + ": " + v.Budget
	}
	if err != nil {
		return "", errors.New(envelope.Line(err.Error(), farText))
	}
	return envelope.Line(text, farText), nil
}

// stopAt is Stop for an agent on another host.
func (d Desk) stopAt(ctx context.Context, id agent.ID) (string, error) {
	var r fleet.InterruptResult
	err := d.doAt(ctx, id.Host(), "interrupt", fleet.InterruptRequest{Agent: id.Local()}, &r)
	switch {
	case err != nil:
		return "", err
	case !r.Ended:
		return fmt.Sprintf("%s: no turn is running: there is nothing to end.", id), nil
	}
	return fmt.Sprintf("%s: its turn has ended; the agent stays up.", id), nil
}

// waitsAt is Waits for an agent on another host, by what that has told.
func (d Desk) waitsAt(id agent.ID) string {
	now := time.Now()
	list, _ := attention.Hosts(d.Home, now)
	i := slices.IndexFunc(list, func(h attention.Host) bool { return h.Name == id.Host() })
	if i < 0 {
		return ""
	}
	if asOf := list[i].AsOf(now); asOf != "" {
		return fmt.Sprintf("%s may be away (%s): your message waits until it is back.", id.Host(), asOf)
	}
	for _, a := range list[i].Agents {
		switch {
		case a.ID != id:
		case a.State == agent.Down, a.State == agent.Dead, a.State == agent.CrashLooping:
			return fmt.Sprintf("%s is %s: your message waits until it is up.", id, a.State)
		case a.State == agent.Blocked, a.State == agent.Hung, a.State == agent.Waiting:
			return fmt.Sprintf("%s is %s: your message waits.", id, a.State)
		}
	}
	return ""
}
