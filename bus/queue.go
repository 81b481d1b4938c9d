package bus

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

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

	restTime       = time.Second      // an invalid file that has not changed for this long is judged
	unfinishedRest = 10 * time.Second // the same for one that may still be growing
)

// A letter is a file in inbox/ or claimed/ as far as it has been read.
type letter struct {
	candidate
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

// inOrder puts the owner's mail first.
func inOrder(a, b *letter) int {
	if (a.from.Local() == agent.Owner) == (b.from.Local() == agent.Owner) {
		return earlier(a.candidate, b.candidate)
	}
	if a.from.Local() == agent.Owner {
		return -1
	}
	return 1
}

// A candidate is a name in a listing.
type candidate struct {
	ns   int64 // its place in the order
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

// A queue is the mail that a receiver has not handed over yet.
type queue struct {
	*box
	poke      chan struct{} // asks the receiver for another look; one pending is enough
	buf       []byte        // for listing
	letters   []*letter     // what waits in inbox/, in order
	known     map[string]*letter
	again     []*letter // what a dead holder had claimed, in order
	lastClaim time.Time
	scanned   time.Time     // when the inbox was last listed
	took      time.Duration // how long that took
	stale     bool          // something has changed since
	more      bool          // the inbox holds more than the letters
}

func (q *queue) prod() { signal(q.poke) }

// scan lists the inbox and reads what is new, after first had what was found.
func (q *queue) scan(first func(found *batch, inbox int)) error {
	inbox, err := q.use(&q.inbox)
	if err != nil {
		return err
	}
	began := time.Now()
	found, later, err := q.list(inbox)
	if err != nil {
		return fmt.Errorf("list the inbox of %s: %w", q.id, err)
	}
	found.trim()
	if q.stale, q.more = later, found.more; later {
		q.prod()
	}
	first(&found, inbox)
	q.adopt(found, inbox)
	q.scanned = time.Now()
	q.took = q.scanned.Sub(began)
	q.sweep(inbox, q.bus.now())
	return nil
}

// list lists the inbox. A file that arrives meanwhile may or may not be listed, so if the
// system lists in parts, the later of two messages of one sender may be listed alone. Then
// the first listing limits how far the second can be trusted; later reports that there is
// more beyond that.
func (q *queue) list(inbox int) (found batch, later bool, err error) {
	parts, err := q.eachName(inbox, found.add)
	if parts <= 1 || err != nil {
		return found, false, err
	}
	newest := make(map[string]int64)
	_, err = q.eachName(inbox, func(c candidate) {
		if ns, from, ours := envelope.NameParts(c.name); ours {
			newest[from] = max(newest[from], ns)
		}
	})
	if err != nil {
		return found, false, err
	}
	found = batch{}
	_, err = q.eachName(inbox, func(c candidate) {
		if ns, from, ours := envelope.NameParts(c.name); ours && ns > newest[from] {
			later = true
			return
		}
		found.add(c)
	})
	return found, later, err
}

// eachName calls fn for what may be an envelope in the inbox.
func (q *queue) eachName(inbox int, fn func(candidate)) (parts int, err error) {
	if q.buf == nil {
		q.buf = make([]byte, 64<<10)
	}
	return mailbox.Dirents(inbox, q.buf, func(raw []byte) bool {
		if raw[0] == '.' { // most of them are envelopes being written
			return true
		}
		name := string(raw)
		if !envelope.IsFile(name) {
			return true
		}
		ns, err := int64(0), error(nil)
		if l := q.known[name]; l != nil {
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
func (q *queue) adopt(found batch, inbox int) {
	known := make(map[string]*letter, len(found.head)+len(found.tail))
	queue := make([]*letter, 0, len(found.head))
	cached := 0
	for i, c := range append(found.head, found.tail...) {
		l := q.known[c.name]
		if l == nil {
			l = &letter{candidate: c}
		}
		if !l.looked {
			q.look(l, inbox)
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
	q.letters, q.known = queue, known
	for name := range q.reported { // of files that are gone
		if envelope.IsFile(name) && known[name] == nil && !slices.ContainsFunc(q.again, func(l *letter) bool { return l.name == name }) {
			delete(q.reported, name)
		}
	}
}

// readable reads a letter again whose envelope is not in memory. An invalid letter is
// judged elsewhere if it is in the inbox, and here if it had been claimed, as nothing
// writes to it then.
func (q *queue) readable(l *letter) bool {
	if l.env != nil {
		return true
	}
	from := &q.inbox
	if l.claimed {
		from = &q.claimed
	}
	fd, err := q.use(from)
	if err != nil {
		q.trouble(l.name, "cannot read "+l.name, err)
		return false
	}
	q.look(l, fd)
	switch {
	case mailbox.Gone(l.sys):
		delete(q.known, l.name)
		return true
	case l.sys != nil:
		q.trouble(l.name, "cannot read "+l.name, l.sys)
		return false
	case l.bad != nil:
		return l.claimed && q.poisonFrom(fd, l.name, l.mark, l.bad) == nil
	}
	return true
}

// claim moves a letter from inbox/ to claimed/. If it is no longer the file that was read,
// claim puts it back and returns false.
func (q *queue) claim(l *letter) (bool, error) {
	from, to, err := q.both(&q.inbox, &q.claimed)
	if err != nil {
		return false, err
	}
	delete(q.known, l.name)
	name, err := move(from, l.name, to)
	if mailbox.Gone(err) {
		q.stale = true
		q.prod()
		return false, nil
	}
	if err != nil {
		return false, err
	}
	q.lastClaim = q.bus.now()
	st, err := mailbox.Lstat(to, name)
	if err != nil || mailbox.MarkOf(st) != l.mark {
		q.stale = true
		q.prod()
		if _, back := move(to, name, from); back != nil {
			// It is read again, like everything a dead holder had claimed.
			q.again = append(q.again, &letter{candidate: candidate{l.ns, name}, claimed: true})
		}
		return false, nil
	}
	l.name, l.claimed, l.ours = name, true, true
	return true, nil
}

// early returns for how long an invalid letter is still left alone, 0 if it may be judged.
// The file's time counts; if the clock contradicts it, our own observation does. A file
// that is open for writing is never judged.
func (l *letter) early(dir int, now time.Time) time.Duration {
	rest := restTime
	if _, odd := errors.AsType[mailbox.OddError](l.bad); odd {
		return 0
	} else if _, part := errors.AsType[unfinishedError](l.bad); part {
		rest = unfinishedRest
	} else if errors.Is(l.bad, mailbox.ErrGrowing) {
		return restTime
	}
	since := now.Sub(l.since)
	if l.mark.MTime != 0 {
		since = max(since, time.Duration(now.UnixNano()-l.mark.MTime))
	}
	if since < rest {
		return rest - since
	}
	if beingWritten(dir, l.name) {
		return lookAgain
	}
	return 0
}

// beingWritten reports whether a process has the file open for writing, as far as the
// system reveals that.
func beingWritten(dir int, name string) bool {
	fd, err := mailbox.Open(dir, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY|mailbox.NoAtime)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	return mailbox.HasWriter(fd)
}

// judge reads invalid files again and poisons those that will not become envelopes. It
// returns when some must be read again; 0 means never. The caller holds mu.
func (q *queue) judge() (wait time.Duration) {
	q.letters = slices.DeleteFunc(q.letters, func(l *letter) bool {
		if l.bad == nil && l.sys == nil {
			return false
		}
		left, settled := q.judgeOne(l)
		if settled {
			delete(q.known, l.name)
		} else if left > 0 && (wait == 0 || left < wait) {
			wait = left
		}
		return settled
	})
	return wait
}

// judgeOne returns for how long an invalid letter is left alone, or that it is gone.
func (q *queue) judgeOne(l *letter) (left time.Duration, settled bool) {
	inbox, err := q.use(&q.inbox)
	if err != nil {
		return lookAgain, false
	}
	now := q.bus.now()
	st, err := mailbox.Lstat(inbox, l.name)
	if err == nil && l.sys == nil && mailbox.MarkOf(st) == l.mark {
		if left = l.early(inbox, now); left > 0 {
			return left, false
		}
	}
	q.look(l, inbox)
	switch {
	case mailbox.Gone(l.sys):
		return 0, true
	case l.sys != nil:
		q.trouble(l.name, "cannot read "+l.name, l.sys)
		return lookAgain, false
	case l.bad == nil:
		return 0, false
	}
	if left = l.early(inbox, now); left > 0 {
		return left, false
	}
	if q.poisonFrom(inbox, l.name, l.mark, l.bad) == nil {
		return 0, true
	}
	return lookAgain, false
}
