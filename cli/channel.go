package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/home"
	"netsky/internal/words"
)

func (a *app) channelCommand() *cli.Command {
	return &cli.Command{
		Name:  "channel",
		Usage: "use the mailboxes by hand: send, print, list, repair",
		Subcommands: []*cli.Command{
			a.sendCommand(), a.drainCommand(), a.lsCommand(),
			{Name: "route", Usage: "deliver what is in the agents' outboxes, once", Action: a.route},
			a.poisonCommand(),
		},
		Action: a.needsSub,
	}
}

func (a *app) sendCommand() *cli.Command {
	return &cli.Command{
		Name:      "send",
		Usage:     "send a message and print its id",
		ArgsUsage: "ADDR TEXT",
		Description: "The sender is the agent in whose pane this runs, else the owner. Once the id is printed, the message survives a power\n" +
			"cut. Clones may send the owner only replies, errors and requests for approval, and agentinfinity only replies and\n" +
			"errors.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "file", Usage: "read the text from `FILE` instead; - is stdin"},
			&cli.StringFlag{Name: "kind", Usage: "send it as `KIND`: brief (a task), reply or error (an answer), handoff (notes for the next run) (default: a plain message)"},
			&cli.StringFlag{Name: "in-reply-to", Usage: "send it as an answer to the message `ID` from ADDR"},
			&cli.StringFlag{Name: "thread", Usage: "label it with the thread `NAME`; answers carry the same (default: that of the message it answers)"},
			&cli.StringFlag{Name: "id", Usage: "use `ID` as its id: sending the same text again under it has no effect, another one is refused (default: a new id)"},
			&cli.BoolFlag{Name: "requires-ack", Usage: "ask the agent to answer"},
			&cli.DurationFlag{Name: "expires", Usage: "if the agent has not taken it within `TIME`, such as 90s or 1h, file it unread and report that to you (of an agent that is down: once it is up)"},
			&cli.StringFlag{Name: "wait", Usage: "after sending, wait until it is `STATE`: delivered (the agent has it) or answered"},
			&cli.DurationFlag{Name: "timeout", Value: 10 * time.Minute, Usage: "with --wait: wait up to `TIME`, such as 90s or 1h; then exit with status 3"},
			&cli.BoolFlag{Name: "json", Usage: "print one JSON object"},
		},
		Action: a.send,
	}
}

// textArg returns the verb's text: its argument i, or the file. A blank text is refused:
// it would settle a question that nobody has answered.
func (a *app) textArg(c *cli.Context, i int, usage string) (string, error) {
	text, err := a.givenText(c, i, usage)
	if err == nil && words.Blank(text) {
		return "", usagef("%s: the text is empty", verbOf(c))
	}
	return text, err
}

// givenText returns the verb's text as it was given, blank or not.
func (a *app) givenText(c *cli.Context, i int, usage string) (string, error) {
	file := c.String("file")
	switch {
	case file == "" && c.NArg() == i+1:
		return c.Args().Get(i), nil
	case file == "" || c.NArg() != i:
		for _, f := range c.Command.Flags {
			if slices.Contains(f.Names(), "file") {
				usage += "; or --file instead of the text"
			}
		}
		return "", usagef("%s", usage)
	}
	return a.textFile("--file", file)
}

// textFile reads a text from a file that an option names, or from standard input for "-".
func (a *app) textFile(option, file string) (string, error) {
	const limit = 16 << 20 // bounds memory; the bus's own limit is far lower
	var in io.Reader = a.in
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return "", fmt.Errorf("%s %s: %w", option, file, errors.Unwrap(err))
		}
		defer f.Close()
		in = f
	}
	data, err := io.ReadAll(io.LimitReader(in, limit+1))
	if err == nil && len(data) > limit {
		err = usagef("%s: larger than %d bytes", file, limit)
	}
	return string(data), err
}

func (a *app) send(c *cli.Context) error {
	verb := verbOf(c)
	usage := verb + ": needs an address and one text, in quotes"
	kind, take := envelope.Kind(c.String("kind")), a.textArg
	if c.String("in-reply-to") == "" && (kind == envelope.KindReply || kind == envelope.KindError) {
		return usagef("%s: --kind %s: needs --in-reply-to, the id of what it answers", verb, kind)
	}
	if kind.Control() {
		take = a.givenText // some of them need no text
	}
	text, err := take(c, 1, usage)
	if err != nil {
		return err
	}
	to, err := agent.ParseArg(c.Args().First())
	if err != nil {
		return err
	}
	self, err := a.self()
	if err != nil {
		return err
	}
	until := c.String("wait")
	if until != "" && until != "delivered" && until != "answered" {
		return usagef("%s: --wait %q: must be delivered or answered", verb, until)
	}
	if until != "" && c.Duration("timeout") <= 0 {
		return usagef("%s: --timeout %v: must be above 0", verb, c.Duration("timeout"))
	}
	if _, err := a.madeHome(); err != nil {
		return err
	}
	b, err := a.bus()
	if err != nil {
		return err
	}
	e := envelope.Envelope{
		ID: c.String("id"), From: self, To: to, Kind: kind, Text: text, Via: "cli", Time: time.Now(),
		InReplyTo: c.String("in-reply-to"), Thread: c.String("thread"), RequiresAck: c.Bool("requires-ack"),
	}
	if c.IsSet("expires") {
		d := c.Duration("expires")
		if d <= 0 {
			return usagef("%s: --expires %v: must be above 0", verb, d)
		}
		e.Expires = e.Time.Add(d)
	}
	if e.Kind.Control() && self != agent.Owner {
		return usagef("%s: kind %q: agents can't send it", verb, e.Kind)
	}
	if e.InReplyTo != "" {
		q, err := bus.FindOne(c.Context, b, self, e.InReplyTo, to)
		switch {
		case err == nil:
			e.InReplyTo, e.Hops = q.ID, q.Hops+1
			if e.Thread == "" {
				e.Thread = q.Thread
			}
		case errors.Is(err, bus.ErrNoMessage): // another address may have received it
			a.warn("--in-reply-to %s: no message with this id from %s is in the mailbox of %s; sending it anyway", e.InReplyTo, to, self)
		default:
			return fmt.Errorf("not sent: --in-reply-to: %w", err)
		}
	}
	if !e.Kind.Known() {
		a.warn("--kind %s: not a kind netsky knows; the agent gets it as a plain message", e.Kind)
	}
	ctx := c.Context
	r, again, err := b.SendOnce(ctx, e)
	if errors.Is(err, bus.ErrUsed) {
		return exitError{exitUsage, err}
	}
	if err != nil {
		return fmt.Errorf("not sent: %w", err)
	}
	if again {
		a.warn("%s was used already: %s has that message; nothing was sent again", r.ID, to)
		e.Time = time.Time{} // its answer may be older
	}
	if c.Bool("json") {
		err = a.writeJSON(map[string]any{"id": r.ID, "to": to, "file": r.File})
	} else {
		a.print("%s", r.ID)
	}
	if err == nil && self == agent.Owner && to.IsAgent() && !again {
		a.tellDown(to)
	}
	if err != nil || until == "" {
		return err
	}
	if again && until == "delivered" {
		a.print("delivered")
		return nil
	}
	return a.waitFor(ctx, b, self, to, r, until, e.Time, c.Duration("timeout"))
}

// tellDown says so if the agent is down, as the owner wants it to be: nobody reads its mail.
func (a *app) tellDown(to agent.ID) {
	h, err := a.home()
	if err != nil {
		return
	}
	if d, err := home.Desired(h).Load(string(to)); err == nil && !d.Up {
		a.warn("%s is down: the message waits in its inbox until `netsky up %[1]s`", to)
	}
}

// waitFor waits until the message is delivered, or answered.
func (a *app) waitFor(ctx context.Context, b *bus.Bus, self, to agent.ID, r bus.Receipt, until string, sent time.Time, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	where, arrived := to, func() (bool, error) { return a.delivered(b, to, r) }
	if until == "answered" {
		where, arrived = self, func() (bool, error) { return a.answered(ctx, b, to, self, r, sent) }
	}
	w, err := b.Watch(ctx, bus.Spots(where)...)
	if err != nil {
		return err
	}
	defer w.Close()
	for {
		select {
		case <-ctx.Done():
			return exitError{exitPartly, fmt.Errorf("%s: sent, but not %s within %v", r.ID, until, limit)}
		case <-w.C:
		}
		if done, err := arrived(); done || err != nil && ctx.Err() == nil {
			return err
		}
	}
}

func (a *app) answered(ctx context.Context, b *bus.Bus, by, self agent.ID, r bus.Receipt, sent time.Time) (bool, error) {
	e, ok, err := b.FindAnswer(ctx, by, self, r.ID, sent)
	if ok {
		a.print("answered by %s: %s", e.Envelope.From, e.Envelope.ID)
	}
	return ok, err
}

func (a *app) delivered(b *bus.Bus, to agent.ID, r bus.Receipt) (bool, error) {
	e, err := b.Find(to, r.File)
	switch {
	case err != nil:
		return false, err
	case e.Place == bus.Poison:
		return true, fmt.Errorf("%s: poisoned: %s", r.ID, e.Why)
	case e.Place == bus.Delivered && e.Why != "":
		return true, fmt.Errorf("%s: filed unread: %s", r.ID, e.Why)
	case e.Place == bus.Delivered:
		a.print("delivered")
		return true, nil
	}
	return false, nil
}

// mailboxArg returns the address named, else the caller's own.
func (a *app) mailboxArg(c *cli.Context) (agent.ID, error) {
	if c.NArg() == 0 {
		return a.self()
	}
	arg, err := one(c, "at most one address")
	if err != nil {
		return "", err
	}
	return agent.ParseArg(arg)
}

func (a *app) route(c *cli.Context) error {
	if c.NArg() > 0 {
		return usagef("channel route: takes no arguments")
	}
	b, err := a.bus()
	if err != nil {
		return err
	}
	err = b.Route(c.Context)
	if errors.Is(err, home.ErrLocked) {
		a.warn("the daemon, or another `channel route`, delivers from the outboxes already: there is nothing to do")
		return nil
	}
	return err
}
