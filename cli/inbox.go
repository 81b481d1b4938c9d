package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/cli/view"
	"netsky/home"
	"netsky/internal/proc"
	"netsky/spawn"
)

// inboxVerbs reads mailboxes.
type inboxVerbs struct{ *app }

func (a inboxVerbs) inboxCommand() *cli.Command {
	return &cli.Command{
		Name:  "inbox",
		Args:  true,
		Usage: "print your mail",
		Description: "Prints the messages that you have not been shown yet, oldest first. They then count as read; they are kept for a\n" +
			"week, and --all prints them again. A notice about what has settled by itself before you read it says so.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "follow", Aliases: []string{"f"}, Usage: "keep printing new mail, until Ctrl-C"},
			&cli.BoolFlag{Name: "all", Usage: "also print what you have read"},
			&cli.IntFlag{Name: "n", Usage: "print only the newest `N`; older ones stay unread", DefaultText: "all"},
			&cli.BoolFlag{Name: "sent", Usage: "list what you sent and what became of it; goes only with -n, --json and --cursor"},
			&cli.StringFlag{Name: "cursor", Usage: "with --sent: list older ones, from the `CURSOR` of an earlier --json"},
			&cli.BoolFlag{Name: "json", Usage: "print one JSON object; with --follow one per message"},
			&cli.BoolFlag{Name: "pause", Usage: "wait for a key before ending", Hidden: true},
		},
		Action: a.inbox,
	}
}

const noMail = "no new mail; `netsky inbox --all` prints what you have read"

// askFirst is how long --follow leaves an answer to a waiting `ask`, which marks it as
// read.
const askFirst = 500 * time.Millisecond

func (a inboxVerbs) inbox(c *cli.Context) error {
	if err := inboxUsage(c); err != nil {
		return err
	}
	if err := a.may("inbox"); err != nil {
		return err
	}
	if c.Bool("sent") {
		return a.inboxSent(c)
	}
	h, err := a.home()
	if err != nil {
		return err
	}
	if _, err := os.Lstat(h.Path(home.Channels)); errors.Is(err, fs.ErrNotExist) && !c.Bool("follow") { // no home to read
		if c.Bool("json") {
			return a.writeJSON(map[string]any{"messages": []envelope.Envelope{}})
		}
		a.print(noMail)
		return nil
	}
	if _, err := a.madeHome(); err != nil {
		return err
	}
	l, err := a.launcher()
	switch {
	case err != nil:
		return err
	case c.Bool("json") && !c.Bool("follow"):
		return a.inboxJSON(c.Context, l, c.Bool("all"), c.Int("n"))
	}
	return a.inboxText(c, l)
}

func inboxUsage(c *cli.Context) error {
	switch {
	case c.NArg() > 0:
		return usagef("inbox: takes no arguments; `netsky channel ls %s` lists an agent's mail", c.Args().First())
	case c.Bool("sent") && (c.Bool("follow") || c.Bool("all")):
		return usagef("inbox: --sent takes neither --follow nor --all")
	case c.Bool("sent"):
		return nil
	case c.IsSet("n") && c.Int("n") < 1:
		return usagef("inbox: -n %d: must be 1 or more", c.Int("n"))
	case c.IsSet("n") && c.Bool("follow"):
		return usagef("inbox: -n does not go with --follow, which prints everything new")
	}
	return nil
}

// inboxText prints the mail, and with --follow what comes.
func (a inboxVerbs) inboxText(c *cli.Context, l *spawn.Launcher) error {
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
	var pages *view.Pager
	most := mostAtOnce
	if c.Bool("pause") {
		pages, most = view.NewPager(a.in, a.out), 1
	}
	printer := mailPrinter{Reader: a.reader(), most: most, text: func(e bus.Entry) (string, error) {
		if c.Bool("json") {
			line, err := json.Marshal(e.Envelope)
			return string(line) + "\n", err
		}
		if !pages.Room(2 + strings.Count(e.Envelope.Text, "\n")) {
			return "", view.ErrClosed
		}
		return view.Mail(e), nil
	}}
	shown := 0
	for all := c.Bool("all"); ; all = false {
		n, err := a.showMail(ctx, l, all, c.Int("n"), printer)
		if errors.Is(err, view.ErrClosed) {
			return nil // what was not printed stays new
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
		if proc.Sleep(ctx, askFirst) != nil { // an `ask` that waits for it prints it
			return nil
		}
	}
	if shown == 0 {
		a.print(noMail)
	}
	pages.Wait("(Enter, Esc or q closes)")
	return nil
}

// inboxJSON writes the mail as one object, and only then marks it as read.
func (a inboxVerbs) inboxJSON(ctx context.Context, l *spawn.Launcher, all bool, newest int) error {
	list, names, err := bus.Letters(l.Bus, all)
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
	case left(err), errors.Is(err, view.ErrNotTaken):
		a.notShown("has gone", len(messages), all)
		return nil
	case err != nil:
		return err
	case !taken:
		a.notShown("has not taken all", len(messages), all)
		return nil
	}
	r, err := bus.NewShowing(l.Home, l.Bus)
	if err != nil {
		return err
	}
	if err := r.Mark(names...); err != nil {
		return err
	}
	return r.File()
}

// newest returns the last n messages, all if n is 0, and prints how many are left out.
func (a inboxVerbs) newest(list []bus.Letter, n int) []bus.Letter {
	older := len(list) - n
	if n == 0 || older <= 0 {
		return list
	}
	a.warn("older ones not shown: %d", older)
	return list[older:]
}

// mostAtOnce is how many messages are printed before the reader is waited for.
const mostAtOnce = 256

// A mailPrinter prints messages.
type mailPrinter struct {
	*view.Reader
	text func(bus.Entry) (string, error)
	most int // messages at once
}

// showMail prints the mail and marks what was taken as read: one message at first, and more
// at once as long as the reader takes all. The error is view.ErrClosed if the reader has
// gone.
func (a inboxVerbs) showMail(ctx context.Context, l *spawn.Launcher, all bool, newest int, out mailPrinter) (n int, err error) {
	list, copies, err := bus.Letters(l.Bus, all)
	if err != nil || len(list)+len(copies) == 0 {
		return 0, err
	}
	r, err := bus.NewShowing(l.Home, l.Bus)
	if err != nil {
		return 0, err
	}
	defer func() {
		if ferr := r.File(); errors.Is(err, view.ErrClosed) {
			err = cmp.Or(ferr, err)
		} else {
			err = errors.Join(err, ferr)
		}
	}()
	if err := r.Mark(copies...); err != nil {
		return 0, err
	}
	list = a.newest(list, newest)
	first := 0 // the first message not known to be taken
	defer func() {
		if len(list) > first && (left(err) || errors.Is(err, view.ErrNotTaken)) {
			a.notShown("has gone", len(list)-first, all)
			err = view.ErrClosed
		} else if err == nil && first < n {
			a.notShown("has not taken all", n-first, all)
		}
	}()
	ends, begin := []int64{}, out.Printed() // where each message printed ends, in bytes
	for size := 1; n < len(list) && ctx.Err() == nil; {
		text, err := out.batch(list[n:min(n+size, len(list))])
		if err != nil {
			return n, err
		}
		for _, t := range text {
			begin += int64(len(t))
			ends = append(ends, begin)
		}
		taken, err := out.Show(ctx, strings.Join(text, ""))
		var names []string
		for ; first < len(ends) && (taken || ends[first] <= out.Taken()); first++ {
			names = append(names, list[first].Names()...)
		}
		if merr := r.Mark(names...); merr != nil { // it was printed, even if ctx ends now
			return n, errors.Join(err, merr)
		}
		if err != nil {
			if ctx.Err() != nil {
				err = nil
			}
			return n, err
		}
		if n = len(ends); taken {
			size = min(2*size, out.most)
		}
	}
	return n, nil
}

// batch returns the texts of the first messages, all if they are short.
func (p mailPrinter) batch(list []bus.Letter) (texts []string, err error) {
	size := 0
	for _, m := range list {
		text, err := p.text(m.Entry)
		if err != nil {
			return nil, err
		}
		if texts, size = append(texts, text), size+len(text); size > 32<<10 {
			break
		}
	}
	return texts, nil
}

// notShown prints how many messages the reader of stdout has not read.
func (a inboxVerbs) notShown(why string, n int, all bool) {
	stay := "; they stay new"
	if all {
		stay = ""
	}
	a.warn("stdout: its reader %s; messages not read: %d%s", why, n, stay)
}

// reader returns the Reader for stdout.
func (a inboxVerbs) reader() *view.Reader {
	_, person := view.Width(a.err)
	return view.NewReader(a.stdout(), a.out, person)
}

// unread counts the owner's messages that were not shown yet, and those of them that have
// been settled by themselves.
func (a inboxVerbs) unread(l *spawn.Launcher) (unread, settled int, err error) {
	names, was, err := l.Bus.ToShow()
	for _, name := range names {
		if was[name] {
			settled++
		}
	}
	return len(names) - settled, settled, err
}

// markRead marks a message as read, and files it.
func (a inboxVerbs) markRead(l *spawn.Launcher, e bus.Entry) error {
	r, err := bus.NewShowing(l.Home, l.Bus)
	if err == nil {
		err = r.Mark(e.Name)
	}
	if err != nil {
		return err
	}
	return r.File()
}
