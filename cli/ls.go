package cli

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/internal/words"
)

func (a inboxVerbs) lsCommand() *cli.Command {
	return &cli.Command{
		Name:      "ls",
		Usage:     "list what is in the mailboxes",
		ArgsUsage: "[ADDR]",
		Flags: []cli.Flag{
			&cli.IntFlag{Name: "n", Value: 20, Usage: "with ADDR: list at most the newest `N` of each directory"},
			&cli.BoolFlag{Name: "json", Usage: "print one JSON object"},
		},
		Action: a.ls,
	}
}

type boxView struct {
	Mailbox agent.ID          `json:"mailbox"`
	Counts  map[bus.Place]int `json:"counts"`
	Entries []entryView       `json:"entries,omitempty"`
}

type entryView struct {
	Place    bus.Place          `json:"place"`
	File     string             `json:"file"`
	Why      string             `json:"why,omitempty"`
	Error    string             `json:"error,omitempty"`
	Envelope *envelope.Envelope `json:"envelope,omitempty"`
}

func (a inboxVerbs) ls(c *cli.Context) error {
	b, err := a.bus()
	if err != nil {
		return err
	}
	ids, err := b.All()
	if err != nil {
		return err
	}
	single := c.NArg() > 0
	if !single && c.IsSet("n") {
		return usagef("channel ls: -n needs an address")
	}
	if single {
		id, err := a.mailboxArg(c)
		if err != nil {
			return err
		}
		if !b.Exists(id) {
			return fmt.Errorf("%s: %w", id, bus.ErrNoMailbox)
		}
		ids = []agent.ID{id}
	}
	var boxes []boxView
	for _, id := range ids {
		v, err := a.box(b, id, single, c.Int("n"))
		if err != nil {
			return err
		}
		boxes = append(boxes, v)
	}
	if c.Bool("json") {
		return a.writeJSON(map[string]any{"mailboxes": append([]boxView{}, boxes...)})
	}
	for _, v := range boxes {
		if !single {
			a.print("%-14s %4d waiting %3d in progress %6d delivered %3d poisoned %3d in outbox", v.Mailbox,
				v.Counts[bus.Inbox], v.Counts[bus.Claimed], v.Counts[bus.Delivered], v.Counts[bus.Poison], v.Counts[bus.Outbox])
			continue
		}
		for _, e := range v.Entries {
			a.printEntry(e)
		}
	}
	return nil
}

func (a inboxVerbs) box(b *bus.Bus, id agent.ID, entries bool, n int) (boxView, error) {
	v := boxView{Mailbox: id, Counts: make(map[bus.Place]int)}
	for _, p := range bus.Places() {
		count, err := b.Count(id, p)
		if err != nil {
			return v, err
		}
		v.Counts[p] = count
		if !entries {
			continue
		}
		list, err := b.List(id, p, n)
		if err != nil {
			return v, err
		}
		for _, e := range list {
			o := entryView{Place: p, File: e.Name, Why: e.Why}
			if e.Err != nil {
				o.Error = e.Err.Error()
			} else {
				env := e.Envelope
				o.Envelope = &env
			}
			v.Entries = append(v.Entries, o)
		}
	}
	return v, nil
}

func (a inboxVerbs) printEntry(e entryView) {
	if e.Envelope == nil {
		a.print("%-9s %s  %s", e.Place, e.File, words.FirstLine(e.Error))
		return
	}
	v := e.Envelope
	kind := string(v.Kind)
	if kind == "" {
		kind = "message"
	}
	a.print("%-9s %s  %-14s %-12s %s  %s", e.Place, v.Time.Local().Format("01-02 15:04:05"), v.From, kind, v.ID, words.Brief(v.Text, 60))
	if e.Why != "" {
		a.print("          %s", words.FirstLine(e.Why))
	}
}
