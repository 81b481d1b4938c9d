package cli

import (
	"errors"
	"time"

	"github.com/urfave/cli/v2"

	"netsky/bus/envelope"
	"netsky/fleet"
	"netsky/home"
)

// mailVerbs sends messages and waits for what becomes of them.
type mailVerbs struct{ *app }

func (a mailVerbs) channelCommand() *cli.Command {
	return &cli.Command{
		Name:  "channel",
		Usage: "use the mailboxes by hand: send, print, list, repair",
		Subcommands: []*cli.Command{
			a.sendCommand(), inboxVerbs(a).drainCommand(), inboxVerbs(a).lsCommand(),
			{Name: "route", Usage: "deliver what is in the agents' outboxes, once", Action: a.route},
			inboxVerbs(a).poisonCommand(),
		},
		Action: a.needsSub,
	}
}

func (a mailVerbs) sendCommand() *cli.Command {
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

func (a mailVerbs) send(c *cli.Context) error {
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
	until := c.String("wait")
	for _, d := range []string{"timeout", "expires"} {
		if (d == "expires" && c.IsSet(d) || d == "timeout" && until != "") && c.Duration(d) <= 0 {
			return usagef("%s: --%s %v: must be above 0", verb, d, c.Duration(d))
		}
	}
	if until != "" && until != "delivered" && until != "answered" {
		return usagef("%s: --wait %q: must be delivered or answered", verb, until)
	}
	f, err := a.fleet()
	if err != nil {
		return err
	}
	m := fleet.Mail{Fleet: f}
	r, err := m.Send(c.Context, fleet.SendRequest{
		To: c.Args().First(), Text: text, Kind: string(kind), InReplyTo: c.String("in-reply-to"), Thread: c.String("thread"), ID: c.String("id"),
		RequiresAck: c.Bool("requires-ack"), Expires: c.Duration("expires"),
	})
	if err != nil {
		return err
	}
	if c.Bool("json") {
		err = a.writeJSON(map[string]any{"id": r.ID, "to": r.To, "file": r.File})
	} else {
		a.print("%s", r.ID)
	}
	if err != nil || until == "" {
		return err
	}
	w, err := m.Await(c.Context, fleet.AwaitRequest{SendResult: r, Until: until, Timeout: c.Duration("timeout")})
	if w.Text != "" {
		a.print("%s", w.Text)
	}
	return err
}

func (a mailVerbs) route(c *cli.Context) error {
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
