package bus

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"netsky/agent"
	"netsky/bus/envelope"
	"netsky/bus/mailbox"
)

const (
	headSize  = 2048            // letters kept in order; a longer inbox is taken in batches
	tailSize  = 64              // the newest are read too: a shutdown overtakes the batch
	cacheText = 64 << 10        // a longer text is read again when its turn comes
	cacheAll  = 4 << 20         // and so are all when there is this much
	lookAgain = time.Second     // when unreadable files, and those being written, are read again
	scanShare = 10              // at most a tenth of the time goes into listing a long inbox
	passEvery = 5 * time.Second // in case all hints are lost
)

// A letter is a file in inbox/ or claimed/ as far as it has been read.
type letter struct {
	name    string
	ns      int64 // its place in the order
	claimed bool
	ours    bool // claimed by this holder, not by a dead one
	expired bool

	looked  bool
	mark    mailbox.Mark
	env     *envelope.Envelope // nil if bad, unreadable, or dropped to save memory
	from    agent.ID
	kind    envelope.Kind
	expires time.Time
	bad     error     // why it is not an envelope
	sys     error     // why it could not be read
	since   time.Time // since when it has been invalid like this
}

func byTime(a, b *letter) int {
	return cmp.Or(cmp.Compare(a.ns, b.ns), strings.Compare(a.name, b.name))
}

// inOrder puts the owner's mail first.
func inOrder(a, b *letter) int {
	if x, y := a.from == agent.Owner, b.from == agent.Owner; x != y {
		if x {
			return -1
		}
		return 1
	}
	return byTime(a, b)
}

// A candidate is a name in a listing, before it becomes a letter.
type candidate struct {
	ns   int64
	name string
}

func earlier(a, b candidate) int {
	return cmp.Or(cmp.Compare(a.ns, b.ns), strings.Compare(a.name, b.name))
}

// A batch collects the earliest and the latest of any number of candidates.
type batch struct {
	head, tail []candidate
	more       bool // there were some in between
}

func (b *batch) add(c candidate) {
	if b.more && earlier(c, b.head[headSize-1]) > 0 && earlier(c, b.tail[0]) < 0 {
		return
	}
	if b.head = append(b.head, c); len(b.head) >= 3*headSize {
		b.trim()
	}
}

func (b *batch) trim() {
	slices.SortFunc(b.head, earlier)
	if len(b.head) <= headSize {
		return
	}
	rest := append(b.tail, b.head[headSize:]...)
	slices.SortFunc(rest, earlier)
	b.more = b.more || len(rest) > tailSize
	b.tail = slices.Clone(rest[max(0, len(rest)-tailSize):])
	b.head = b.head[:headSize]
}

// scan lists the inbox and reads what is new.
// The caller holds mu.
func (r *Receiver) scan() error {
	inbox, err := r.use(&r.inbox)
	if err != nil {
		return err
	}
	began := time.Now()
	found, later, err := r.list(inbox)
	if err != nil {
		return fmt.Errorf("list the inbox of %s: %w", r.id, err)
	}
	found.trim()
	if r.stale, r.more = later, found.more; later {
		r.prod()
	}
	r.grab(&found, inbox)
	r.adopt(found, inbox)
	r.scanned = time.Now()
	r.took = r.scanned.Sub(began)
	r.sweep(inbox, r.bus.now())
	return nil
}

// list lists the inbox. A file that arrives meanwhile may or may not be listed, so if the
// system lists in parts, the later of two messages of one sender may be listed alone. Then
// the first listing limits how far the second can be trusted; later reports that there is
// more beyond that.
func (r *Receiver) list(inbox int) (found batch, later bool, err error) {
	parts, err := r.eachName(inbox, found.add)
	if parts <= 1 || err != nil {
		return found, false, err
	}
	newest := make(map[string]int64)
	_, err = r.eachName(inbox, func(c candidate) {
		if ns, from, ours := envelope.NameParts(c.name); ours {
			newest[from] = max(newest[from], ns)
		}
	})
	if err != nil {
		return found, false, err
	}
	found = batch{}
	_, err = r.eachName(inbox, func(c candidate) {
		if ns, from, ours := envelope.NameParts(c.name); ours && ns > newest[from] {
			later = true
			return
		}
		found.add(c)
	})
	return found, later, err
}

// eachName calls fn for what may be an envelope in the inbox.
func (r *Receiver) eachName(inbox int, fn func(candidate)) (parts int, err error) {
	if r.buf == nil {
		r.buf = make([]byte, 64<<10)
	}
	return mailbox.Dirents(inbox, r.buf, func(raw []byte) bool {
		if raw[0] == '.' { // most of them are envelopes being written
			return true
		}
		name := string(raw)
		if !envelope.IsFile(name) {
			return true
		}
		ns, err := int64(0), error(nil)
		if l := r.known[name]; l != nil {
			ns = l.ns
		} else {
			ns, err = orderTime(inbox, name)
		}
		if err == nil { // else it is gone, or the next scan finds it
			fn(candidate{ns, name})
		}
		return true
	})
}

// adopt turns what was found into letters. Of the tail only control mail counts; the rest
// follows in another batch.
func (r *Receiver) adopt(found batch, inbox int) {
	known := make(map[string]*letter, len(found.head)+len(found.tail))
	queue := make([]*letter, 0, len(found.head))
	cached := 0
	for i, c := range append(found.head, found.tail...) {
		l := r.known[c.name]
		if l == nil {
			l = &letter{name: c.name, ns: c.ns}
		}
		if !l.looked {
			r.look(l, inbox)
		}
		if l.env != nil {
			if cached += len(l.env.Text) + 512; len(l.env.Text) > cacheText || cached > cacheAll {
				l.env = nil
			}
		}
		known[c.name] = l
		if i < len(found.head) || l.kind.Control() {
			queue = append(queue, l)
		}
	}
	slices.SortFunc(queue, inOrder)
	r.queue, r.known = queue, known
	for name := range r.reported { // of files that are gone
		if envelope.IsFile(name) && known[name] == nil && !slices.ContainsFunc(r.again, func(l *letter) bool { return l.name == name }) {
			delete(r.reported, name)
		}
	}
}

// look reads a letter if it is worth reading now.
func (r *Receiver) look(l *letter, dir int) {
	now := r.bus.now()
	e, m, err := r.bus.readEnvelope(dir, l.name, form{r.bus.boxes, r.id, Inbox})
	if l.since.IsZero() || m != l.mark || errors.Is(err, mailbox.ErrGrowing) {
		l.since = now
	}
	l.looked, l.mark, l.env, l.bad, l.sys = true, m, nil, nil, nil
	switch {
	case err == nil:
		e.To = r.id
		l.env, l.from, l.kind, l.expires = &e, e.From, e.Kind, e.Expires
	case errors.Is(err, envelope.ErrInvalid), errors.Is(err, mailbox.ErrGrowing):
		l.bad = err
	default:
		l.sys = err
	}
}

// judge reads invalid files again and poisons those that will not become envelopes. It
// returns when some must be read again; 0 means never. The caller holds mu.
func (r *Receiver) judge() (wait time.Duration) {
	keep := r.queue[:0]
	for _, l := range r.queue {
		if l.bad == nil && l.sys == nil {
			keep = append(keep, l)
			continue
		}
		left, settled := r.judgeOne(l)
		if settled {
			delete(r.known, l.name)
			continue
		}
		if left > 0 && (wait == 0 || left < wait) {
			wait = left
		}
		keep = append(keep, l)
	}
	clear(r.queue[len(keep):])
	r.queue = keep
	return wait
}

// judgeOne returns for how long an invalid letter is left alone, or that it is gone.
func (r *Receiver) judgeOne(l *letter) (left time.Duration, settled bool) {
	inbox, err := r.use(&r.inbox)
	if err != nil {
		return lookAgain, false
	}
	now := r.bus.now()
	st, err := mailbox.Lstat(inbox, l.name)
	if err == nil && l.sys == nil && mailbox.MarkOf(st) == l.mark {
		if left = l.early(inbox, now); left > 0 {
			return left, false
		}
	}
	r.look(l, inbox)
	switch {
	case mailbox.Gone(l.sys):
		return 0, true
	case l.sys != nil:
		r.trouble(l.name, "cannot read "+l.name, l.sys)
		return lookAgain, false
	case l.bad == nil:
		return 0, false
	}
	if left = l.early(inbox, now); left > 0 {
		return left, false
	}
	if r.poisonFrom(inbox, l.name, l.mark, l.bad) == nil {
		return 0, true
	}
	return lookAgain, false
}

func (r *Receiver) poisonFrom(from int, name string, m mailbox.Mark, reason error) error {
	to, err := r.use(&r.poisons)
	if err == nil {
		var now string
		now, err = r.bus.poison(from, name, to, reason, mailbox.Origin{Place: string(Inbox), Mark: m})
		if now != "" {
			r.passed(name)
			r.mend.add(now, m)
			r.o.Report("poisoned "+name+": "+envelope.Plain(reason.Error()), err)
			return nil
		}
	}
	if mailbox.Gone(err) {
		return nil
	}
	r.trouble(name, "cannot poison "+name, err)
	return err
}
