package cli

import (
	"context"
	"slices"
	"strings"
	"time"

	"netsky/agent"
	"netsky/attention"
	"netsky/attention/approve"
	"netsky/cli/view"
	"netsky/fleet"
	"netsky/home"
	"netsky/internal/advice"
	"netsky/spawn"
)

// decide gives the owner's answer.
func (a ownerVerbs) decide(ctx context.Context, r fleet.DecideRequest) error {
	f, err := a.fleet()
	if err != nil {
		return err
	}
	r.By = fleet.ByTerminal
	v, err := fleet.Answers{Fleet: f}.Decide(ctx, r)
	verdict := approve.Verdict(!r.Deny)
	switch d := v.Dialog; {
	case v.Budget != "":
		a.print("%s", v.Budget)
	case d != nil:
		for _, id := range d.Given {
			a.print("%s: %s: %s: %s", verdict, id, d.Dialog.Name, d.Dialog.Text)
		}
		for _, id := range d.Differs {
			a.warn("%s: waits at a different dialog, which was not answered", id)
		}
		if len(d.Others) > 0 {
			a.warn("%s: waiting at the same dialog; `netsky approve %s --all-same` answers all", attention.Names(d.Others), d.Others[0])
		}
	case v.Request != nil && err == nil:
		a.print("%s: %s: %s", verdict, v.Request.Agent, requestLines(*v.Request))
	}
	return err
}

// requestsOf returns the codes of what an agent asks.
func (a ownerVerbs) requestsOf(l *spawn.Launcher, id agent.ID) (codes []string, err error) {
	if id.Host() != "" {
		list, err := attention.Hosts(l.Home, time.Now())
		for _, n := range attention.List(attention.Sources{Hosts: list}) {
			if n.There != nil && len(n.There.Options) > 0 && slices.Contains(n.Agents, id) {
				codes = append(codes, n.Code)
			}
		}
		return codes, err
	}
	list, err := home.Approvals(l.Home).List()
	for _, p := range list {
		if p.Agent == id {
			codes = append(codes, p.Code)
		}
	}
	return codes, err
}

// requestOf returns the code of an agent's only request, once the owner has seen it and agreed to answer it.
// Any other word is returned as it is: an agent without a request may wait at a dialog.
func (a ownerVerbs) requestOf(ctx context.Context, word string, allow bool) (code string, err error) {
	id, err := agent.ParseArgAddress(word)
	if err != nil || !id.IsAgent() {
		return word, nil
	}
	l, err := a.launcher()
	if err != nil {
		return "", err
	}
	codes, err := a.requestsOf(l, id)
	switch n := len(codes); {
	case err != nil:
		return "", err
	case n == 0 && id.Host() != "":
		return "", advice.With(usagef("approve: %s: asks for nothing that can be answered from here", id), "`netsky needs` lists what needs you")
	case n == 0:
		return word, nil
	case n == 1:
		code = codes[0]
	default:
		return "", advice.With(usagef("approve: %s asks for %d things: %s", id, len(codes), strings.Join(codes, ", ")),
			"`netsky needs CODE` shows one, `netsky approve CODE…` allows one or several")
	}
	n, ok := fleet.Answers{Fleet: a.fleetOf(l)}.Need(ctx, code)
	if !ok {
		return "", usagef("approve: %s: its request was settled just now", id)
	}
	a.print("%s", strings.Join(n.Whole(time.Now()), "\n"))
	question := "Allow it?"
	if !allow {
		question = "Deny it?"
	}
	if _, tty := view.Width(a.in); !tty {
		return "", advice.With(usagef("approve: %s: not a terminal, where you would be asked", id), "`netsky approve %s` answers it", code)
	}
	if ok, err := setupVerbs(a).confirm("approve", question); err != nil || !ok {
		return "", exitError{exitFailed, errTold}
	}
	return code, nil
}
