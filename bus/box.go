package bus

import (
	"errors"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"netsky/agent"
	"netsky/bus/envelope"
	"netsky/bus/mailbox"
)

// A box is the mailbox that a receiver holds: its directories, kept open, and the file seen. It reports each
// trouble once. Like all of a receiver's parts, it is used by one goroutine at a time.
type box struct {
	bus *boxes
	*filer
	id     agent.ID
	report func(what string, err error)

	inbox, claimed, delivered, poisons mailbox.Dir
	seen                               mailbox.SeenFile
	reported                           map[string]bool // troubles already reported, until they have passed
	mend                               mending
	astray                             map[string]envelope.Envelope // confirmed but not found in claimed/ when they were to be filed, by their names there
	swept                              time.Time
}

// use prepares a directory and reports if it had to be created again.
func (b *box) use(d *mailbox.Dir) (int, error) {
	fd, mended, err := d.Use()
	if mended != "" {
		b.report(b.bus.home.Path(d.Rel)+" "+mended, nil)
	}
	return fd, err
}

// both is use of two.
func (b *box) both(x, y *mailbox.Dir) (from, to int, err error) {
	if from, err = b.use(x); err == nil {
		to, err = b.use(y)
	}
	return from, to, err
}

// trouble reports an error once, until passed is called with the same name.
func (b *box) trouble(name, what string, err error) {
	if !b.reported[name] && len(b.reported) < 1000 {
		b.reported[name] = true
		b.report(what, err)
	}
}

// check is trouble if there is an error, and else passed.
func (b *box) check(name, what string, err error) (failed bool) {
	if err == nil {
		b.passed(name)
	} else {
		b.trouble(name, what, err)
	}
	return err != nil
}

func (b *box) passed(name string) { delete(b.reported, name) }

// file remembers an envelope's ID and moves it from claimed/ to delivered/; the reason goes beside it.
func (b *box) file(name string, w mailbox.Why, e envelope.Envelope) error {
	if err := b.seen.Add(b.bus.now(), e); err != nil {
		return err
	}
	return b.filed(name, w, e)
}

// filed moves a file whose ID is already remembered.
func (b *box) filed(name string, w mailbox.Why, e envelope.Envelope) error {
	from, err := b.use(&b.claimed)
	if err != nil {
		return err
	}
	return b.fileFrom(from, name, w, e)
}

func (b *box) fileFrom(from int, name string, w mailbox.Why, e envelope.Envelope) error {
	to, err := b.use(&b.delivered)
	if err != nil {
		return err
	}
	_, err = b.filer.file(from, name, to, w, b.report)
	if mailbox.Gone(err) {
		b.strays(name, e) // a person tidied up and it is remembered; or the whole mailbox is away
		return nil
	}
	return err
}

// maxAstray is how many are looked for; any others are offered again at the next start.
const maxAstray = 1000

func (b *box) strays(name string, e envelope.Envelope) {
	if b.astray == nil {
		b.astray = make(map[string]envelope.Envelope)
	}
	if len(b.astray) < maxAstray {
		e.Text = ""
		b.astray[name] = e
	}
}

// rememberAgain adds the envelope to seen if that is another file now and lacks it.
func (b *box) rememberAgain(e envelope.Envelope) error {
	now := b.bus.now()
	if b.seen.Gone() {
		if err := b.seen.Load(now); err != nil {
			return err
		}
	}
	if b.seen.Has(e) {
		return nil
	}
	return b.seen.Add(now, e)
}

// sweep removes what dead senders left half written, once an hour.
func (b *box) sweep(inbox int, now time.Time) {
	const tempAge = 36 * time.Hour
	if now.Sub(b.swept) < time.Hour && !b.swept.IsZero() {
		return
	}
	b.swept = now
	var old []string
	err := mailbox.Names(inbox, func(name string) bool {
		if name[0] == '.' && strings.HasSuffix(name, mailbox.TempSuffix) {
			old = append(old, name)
		}
		return len(old) < 10_000
	})
	for _, name := range old {
		st, looked := mailbox.Lstat(inbox, name)
		if looked == nil && now.Sub(timeOf(st.Mtim.Nano())) > tempAge && st.Mode&unix.S_IFMT == unix.S_IFREG {
			err = errors.Join(err, mailbox.Unlink(inbox, name))
		}
	}
	if err != nil {
		b.report("sweep the inbox of "+string(b.id), err)
	}
}

// look reads a letter if it is worth reading now.
func (b *box) look(l *letter, dir int) {
	now := b.bus.now()
	e, m, err := b.bus.readEnvelope(dir, l.name, form{b.bus, b.id, Inbox})
	if l.since.IsZero() || m != l.mark || errors.Is(err, mailbox.ErrGrowing) {
		l.since = now
	}
	l.looked, l.mark, l.env, l.bad, l.sys = true, m, nil, nil, nil
	switch {
	case err == nil:
		e.To = b.id
		l.env, l.from, l.kind, l.expires = &e, e.From, e.Kind, e.Expires
	case errors.Is(err, envelope.ErrInvalid), errors.Is(err, mailbox.ErrGrowing):
		l.bad = err
	default:
		l.sys = err
	}
}

func (b *box) poisonFrom(from int, name string, m mailbox.Mark, reason error) error {
	to, err := b.use(&b.poisons)
	if err == nil {
		var now string
		now, err = b.poison(from, name, to, reason, mailbox.Origin{Place: string(Inbox), Mark: m})
		if now != "" {
			b.passed(name)
			b.mend.add(now, m)
			b.report("poisoned "+name+": "+envelope.Plain(reason.Error()), err)
			return nil
		}
	}
	if mailbox.Gone(err) {
		return nil
	}
	b.trouble(name, "cannot poison "+name, err)
	return err
}
