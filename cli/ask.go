package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/spawn"
)

func (a *app) askCommand() *cli.Command {
	return &cli.Command{
		Name:      "ask",
		Usage:     "send an agent a message and wait for its answer",
		ArgsUsage: "ADDR TEXT",
		Description: "The answer goes to stdout, what happens meanwhile to stderr. Without an answer in time the exit status is 3; the\n" +
			"message is not lost, and the answer will be in `netsky inbox`. So it is when the agent ends meanwhile. An agent\n" +
			"that is not up is not asked, unless --queue says that the message may wait for its next start.",
		Flags: []cli.Flag{
			&cli.DurationFlag{Name: "wait", Value: 10 * time.Minute, Usage: "wait for `TIME`, such as 90s or 1h"},
			&cli.StringFlag{Name: "file", Usage: "take the text from `FILE`; - is stdin"},
			&cli.BoolFlag{Name: "queue", Usage: "send it even if the agent is not up"},
			&cli.BoolFlag{Name: "json", Usage: "print the answer's envelope"},
		},
		Action: a.ask,
	}
}

func (a *app) ask(c *cli.Context) error {
	text, err := a.textArg(c, 1, "ask: wants an agent and one text, in quotes: netsky ask agent0 \"how is it going?\"")
	if err != nil {
		return err
	}
	to, err := agent.ParseAgent(c.Args().Get(0))
	if err != nil {
		return err
	}
	if c.Duration("wait") <= 0 {
		return usagef("ask: --wait %v: wants a time span above 0", c.Duration("wait"))
	}
	self, err := a.self()
	if err != nil {
		return err
	}
	if self == to {
		return usagef("ask: %s would ask itself", self)
	}
	if _, err := a.madeHome(); err != nil {
		return err
	}
	l, err := a.launcher()
	if err != nil {
		return err
	}
	ctx := c.Context
	list, err := l.Inspect(ctx)
	if err != nil {
		a.warn("%v", err)
	}
	up := list.Find(to).Alive()
	if !up && !c.Bool("queue") {
		return needUp{to, fmt.Errorf("%s: is %s: not sent (--queue sends it anyway)", to, list.Find(to).State)}
	}
	// The watch stands before the message is sent, so no answer slips between.
	w, err := l.Bus.Watch(ctx, mailSpots(self)...)
	if err != nil {
		return err
	}
	defer w.Close()
	sent := time.Now()
	r, err := l.Bus.Send(ctx, envelope.Envelope{From: self, To: to, Text: text, Via: "cli", RequiresAck: true, Time: sent})
	if err != nil {
		return fmt.Errorf("not sent: %w", err)
	}
	p := asking{a: a, l: l, to: to, id: r.ID, file: r.File, sent: sent, up: up}
	p.say("sent %s to %s", r.ID, to)
	return p.wait(ctx, self, w, c.Duration("wait"), c.Bool("json"))
}

// asking follows one question to its answer.
type asking struct {
	a      *app
	l      *spawn.Launcher
	to     agent.ID
	id     string
	file   string // its name in the agent's mailbox
	sent   time.Time
	state  agent.State
	detail string
	taken  bool
	up     bool      // it has been seen alive
	gone   time.Time // since when it is not, though it was; zero if it is
	code   string    // of its question that was told
	stuck  string    // what it waits for instead of working: ", as it is waiting (…)"
}

// mourning is how long an agent has to be gone before its answer is given up: one
// that is being started again is back sooner.
const mourning = 5 * time.Second

func (p *asking) say(format string, args ...any) {
	if _, ok := terminal(p.a.err); ok {
		p.a.warn(format, args...)
	}
}

func (p *asking) wait(ctx context.Context, self agent.ID, w *bus.Watch, limit time.Duration, asJSON bool) error {
	wctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	there, err := p.l.Bus.Watch(wctx, mailSpots(p.to)...) // where the message goes
	if err != nil {
		return err
	}
	defer there.Close()
	look := time.NewTicker(time.Second)
	defer look.Stop()
	for {
		select {
		case <-wctx.Done():
			if ctx.Err() != nil {
				return exitError{exitPartly, fmt.Errorf("interrupted; the message %s stays sent, its answer will be in `netsky inbox`", p.id)}
			}
			return exitError{exitPartly, fmt.Errorf("no answer from %s in %v%s; the message %s is %s; its answer will be in `netsky inbox`",
				p.to, limit, p.stuck, p.id, p.whereabouts())}
		case <-w.C:
			e, ok, err := p.l.Bus.FindAnswer(wctx, self, p.id, p.sent.Add(-time.Second))
			switch {
			case ok && err == nil:
				return p.print(ctx, self, e, asJSON)
			case err != nil && wctx.Err() == nil:
				return err
			}
		case <-there.C:
			p.arrived()
		case <-look.C:
			if err := p.progress(ctx); err != nil {
				return err
			}
		}
	}
}

// progress tells what has changed. Its error says that the agent has ended, and
// with it the hope for an answer.
func (p *asking) progress(ctx context.Context) error {
	p.arrived()
	list, err := p.l.Inspect(ctx)
	if err != nil {
		return nil
	}
	st := list.Find(p.to)
	untaken := st.Silent && !p.taken && st.Detail != "" && st.Alive()
	if st.State != p.state || untaken && st.Detail != p.detail {
		p.state, p.detail = st.State, st.Detail
		p.say("%s is %s%s", p.to, st.State, note(st.Detail))
	}
	p.stuck = ""
	if untaken || st.State == agent.Waiting || st.State == agent.Blocked || st.State == agent.Unknown {
		p.stuck = ", as it is " + how(st) + p.permission()
	}
	switch {
	case st.Alive():
		p.up, p.gone = true, time.Time{}
	case !p.up: // --queue: it may wait
	case p.gone.IsZero() || p.handled():
		p.gone = time.Now()
	case time.Since(p.gone) >= mourning:
		return exitError{exitPartly, needUp{p.to, fmt.Errorf("%s is %s and has not answered; the message %s is %s; what comes of it after its next start will be in `netsky inbox`",
			p.to, how(st), p.id, p.whereabouts())}}
	}
	return nil
}

// arrived says once that the agent has taken the message.
func (p *asking) arrived() {
	if !p.taken && p.whereabouts() == string(bus.Delivered) {
		p.taken = true
		p.say("%s has it", p.to)
	}
}

// permission names the command that answers the agent's question, once said as
// soon as it is asked.
func (p *asking) permission() string {
	if self, err := p.a.self(); err != nil || self != agent.Owner {
		return "" // an agent can't answer
	}
	list, err := p.l.Home.Approvals()
	i := slices.IndexFunc(list, func(q agent.Approval) bool { return q.Agent == p.to })
	if err != nil || i < 0 {
		return ""
	}
	q := list[i]
	if p.code != q.Code {
		p.code = q.Code
		p.a.warn("%s asks whether it may use %s: %s; `netsky approve %s` lets it, once, with --deny not", p.to, q.Tool, brief(q.Text, 200), q.Code)
	}
	return "; `netsky approve " + q.Code + "` lets it, with --deny not"
}

// handled reports whether somebody is ending or starting agents just now.
func (p *asking) handled() bool {
	_, ok := p.l.Home.LockHolder("up")
	return ok
}

// how is an agent's state with what it rests on.
func how(st spawn.Status) string {
	return fmt.Sprintf("%s (%s)", st.State, cmp.Or(st.Detail, st.Evidence))
}

func (p *asking) whereabouts() string {
	e, err := p.l.Bus.Find(p.to, p.file)
	if err != nil {
		return "not in its mailbox any more"
	}
	switch e.Place {
	case bus.Inbox:
		return "waiting in its inbox"
	case bus.Claimed:
		return "in its hands"
	}
	return string(e.Place)
}

func (p *asking) print(ctx context.Context, self agent.ID, e bus.Entry, asJSON bool) error {
	if asJSON {
		if err := p.a.writeJSON(e.Envelope); err != nil {
			return err
		}
	} else if e.Envelope.Kind != envelope.KindError {
		if p.a.print("%s", e.Envelope.Text); p.a.broken != nil {
			return p.a.broken // it stays new
		}
	}
	if self == agent.Owner {
		if err := p.a.markRead(p.l, e); err != nil {
			p.a.warn("%v", err)
		}
	}
	if e.Envelope.Kind == envelope.KindError {
		return fmt.Errorf("%s answered with an error: %w", p.to, errors.New(e.Envelope.Text))
	}
	return nil
}
