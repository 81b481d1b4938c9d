package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/bus/owner"
	"netsky/cli/console"
	"netsky/spawn"
)

func (a *app) inboxCommand() *cli.Command {
	return &cli.Command{
		Name:  "inbox",
		Args:  true,
		Usage: "your mail",
		Description: "Prints what you have not been shown yet, the oldest first. What was printed is remembered; it stays on file for\n" +
			"a week, and --all shows it again.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "follow", Aliases: []string{"f"}, Usage: "go on printing what comes, until Ctrl-C"},
			&cli.BoolFlag{Name: "all", Usage: "what was shown already, too"},
			&cli.IntFlag{Name: "n", Usage: "only the newest `N`; what is older stays new", DefaultText: "all"},
			&cli.BoolFlag{Name: "sent", Usage: "what you sent, and what became of it; takes --json and --cursor alone"},
			&cli.StringFlag{Name: "cursor", Usage: "with --sent the page that the `CURSOR` of an earlier --json names: what is older"},
			&cli.BoolFlag{Name: "json", Usage: "print one JSON object; with --follow one a message"},
			&cli.BoolFlag{Name: "pause", Usage: "wait for a key before ending", Hidden: true},
		},
		Action: a.inbox,
	}
}

// askFirst is how long --follow lets a waiting `ask` print its answer, which is
// then no new mail any more.
const askFirst = 500 * time.Millisecond

func (a *app) inbox(c *cli.Context) error {
	if c.NArg() > 0 {
		return usagef("inbox: takes no arguments; `netsky channel ls %s` lists an agent's mail", c.Args().First())
	}
	if id, err := a.self(); err != nil || id != agent.Owner {
		return usagef("inbox: is the owner's; an agent reads its mail by `netsky channel drain`")
	}
	switch {
	case c.Bool("sent") && (c.Bool("follow") || c.Bool("all")):
		return usagef("inbox: --sent takes neither --follow nor --all")
	case c.Bool("sent"):
		return a.inboxSent(c)
	case c.IsSet("cursor"):
		return usagef("inbox: --cursor is for --sent")
	}
	newest := c.Int("n")
	switch {
	case c.IsSet("n") && newest < 1:
		return usagef("inbox: -n %d: wants 1 or more", newest)
	case newest > 0 && c.Bool("follow"):
		return usagef("inbox: -n goes without --follow, which prints all that is new")
	}
	if _, err := a.madeHome(); err != nil {
		return err
	}
	l, err := a.launcher()
	if err != nil {
		return err
	}
	if c.Bool("json") && !c.Bool("follow") {
		return a.inboxJSON(c.Context, l, c.Bool("all"), newest)
	}
	ctx := c.Context
	var more <-chan struct{}
	if c.Bool("follow") {
		w, err := l.Bus.Watch(ctx, bus.Spots(agent.Owner)...)
		if err != nil {
			return err
		}
		defer w.Close()
		more = w.C
	}
	var pages *console.Pager
	if c.Bool("pause") {
		pages = console.NewPager(a.in, a.out)
	}
	out := a.reader()
	show := func(e bus.Entry) (taken bool, err error) {
		text := mailText(e)
		if c.Bool("json") {
			line, err := json.Marshal(e.Envelope)
			if err != nil {
				return false, err
			}
			text = string(line) + "\n"
		} else if !pages.Room(2 + strings.Count(e.Envelope.Text, "\n")) {
			return false, console.ErrClosed
		}
		return out.Show(ctx, text)
	}
	shown := 0
	for all := c.Bool("all"); ; all = false {
		n, err := a.showMail(ctx, l, all, newest, show)
		if errors.Is(err, console.ErrClosed) {
			return nil // what was not shown stays new
		}
		if err != nil {
			return err
		}
		shown += n
		if !c.Bool("follow") {
			break
		}
		select {
		case <-ctx.Done():
			return nil
		case <-more:
		}
		select { // an answer that `ask` waits for is its to print
		case <-ctx.Done():
			return nil
		case <-time.After(askFirst):
		}
	}
	if shown == 0 {
		a.print("no new mail; `netsky inbox --all` shows the old")
	}
	pages.Wait("(Enter, Esc or q closes)")
	return nil
}

// inboxJSON writes the mail as one object, and remembers it as read only then.
func (a *app) inboxJSON(ctx context.Context, l *spawn.Launcher, all bool, newest int) error {
	list, names, err := owner.Letters(l.Bus, all)
	if err != nil {
		return err
	}
	list = a.newest(list, newest)
	messages := make([]envelope.Envelope, len(list))
	for i, m := range list {
		messages[i] = m.Envelope
		names = append(names, m.Names()...)
	}
	text, err := json.MarshalIndent(map[string]any{"messages": messages}, "", "  ")
	if err != nil {
		return err
	}
	switch taken, err := a.reader().Show(ctx, string(text)+"\n"); {
	case left(err), errors.Is(err, console.ErrNotTaken):
		a.notShown("has gone", len(messages), all)
		return nil
	case err != nil:
		return err
	case !taken:
		a.notShown("has not taken all", len(messages), all)
		return nil
	}
	r, err := owner.NewShowing(l.Home, l.Bus)
	if err != nil {
		return err
	}
	if err := r.Mark(names...); err != nil {
		return err
	}
	return r.File()
}

// newest are the last n messages, all if n is 0; the others are counted.
func (a *app) newest(list []owner.Letter, n int) []owner.Letter {
	older := len(list) - n
	if n == 0 || older <= 0 {
		return list
	}
	a.warn("older ones not shown: %d", older)
	return list[older:]
}

// showMail shows the mail one by one; what was taken is remembered as read. The
// error is errClosed if the reader has gone.
func (a *app) showMail(ctx context.Context, l *spawn.Launcher, all bool, newest int, show func(bus.Entry) (taken bool, err error)) (n int, err error) {
	list, copies, err := owner.Letters(l.Bus, all)
	if err != nil || len(list)+len(copies) == 0 {
		return 0, err
	}
	r, err := owner.NewShowing(l.Home, l.Bus)
	if err != nil {
		return 0, err
	}
	defer func() {
		if ferr := r.File(); errors.Is(err, console.ErrClosed) {
			err = cmp.Or(ferr, err)
		} else {
			err = errors.Join(err, ferr)
		}
	}()
	if err := r.Mark(copies...); err != nil {
		return 0, err
	}
	list = a.newest(list, newest)
	var written []string // and not known to be taken
	first := 0           // of the messages that are not
	defer func() {
		if len(list) > first && (left(err) || errors.Is(err, console.ErrNotTaken)) {
			a.notShown("has gone", len(list)-first, all)
			err = console.ErrClosed
		} else if err == nil && first < n {
			a.notShown("has not taken all", n-first, all)
		}
	}()
	for i, m := range list {
		if ctx.Err() != nil {
			return n, nil
		}
		taken, err := show(m.Entry)
		if err != nil {
			if ctx.Err() != nil {
				err = nil
			}
			return n, err
		}
		n++
		written = append(written, m.Names()...)
		if !taken {
			continue
		}
		first = i + 1
		if err := r.Mark(written...); err != nil { // it is on the screen, whatever comes now
			return n, err
		}
		written = nil
	}
	return n, nil
}

// notShown says what the reader of stdout has not read.
func (a *app) notShown(why string, n int, all bool) {
	stay := "; they stay new"
	if all {
		stay = ""
	}
	a.warn("stdout: its reader %s; messages not read: %d%s", why, n, stay)
}

// reader is who reads stdout, if that can be known.
func (a *app) reader() *console.Reader {
	_, person := console.Width(a.err)
	return console.NewReader(a.stdout(), a.out, person)
}

func mailText(e bus.Entry) string {
	v := e.Envelope
	kind := ""
	if v.Kind != envelope.KindMessage {
		kind = "  " + string(v.Kind)
	}
	about := ""
	if v.InReplyTo != "" {
		about = "  to " + v.InReplyTo
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s%s%s  (%s)\n", v.Time.Local().Format("2006-01-02 15:04:05"), v.From, kind, about, v.ID)
	for l := range strings.SplitSeq(v.Text, "\n") {
		fmt.Fprintf(&b, "    %s\n", l)
	}
	if e.Why != "" {
		fmt.Fprintf(&b, "    (%s)\n", e.Why)
	}
	return envelope.Plain(b.String())
}

// unread counts the owner's envelopes that were not shown yet, by name alone.
func (a *app) unread(l *spawn.Launcher) (int, error) {
	names, err := l.Bus.Unread()
	return len(names), err
}

// markRead remembers an envelope as shown, and files it.
func (a *app) markRead(l *spawn.Launcher, e bus.Entry) error {
	r, err := owner.NewShowing(l.Home, l.Bus)
	if err == nil {
		err = r.Mark(e.Name)
	}
	if err != nil {
		return err
	}
	return r.File()
}
