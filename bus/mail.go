package bus

import (
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"netsky/agent"
	"netsky/bus/envelope"
	"netsky/bus/mailbox"
	"netsky/home"
)

// Mail lists the names of an address's messages, oldest first: waiting, in hand or
// delivered, each file once. What was filed unread, a duplicate or expired, is included
// only if unread is set. It opens no envelope.
func (b *boxes) Mail(id agent.ID, unread bool) (names []string, err error) {
	var list []candidate
	had := make(map[string]bool)
	for _, p := range places[:3] {
		fd, err := b.openPlace(id, p)
		if err != nil {
			return nil, err
		}
		found, whys, err := mailIn(fd)
		unix.Close(fd)
		if err != nil {
			return nil, fmt.Errorf("list %s of %s: %w", p, id, err)
		}
		for _, c := range found {
			if !had[c.name] && (unread || p != Delivered || !whys[envelope.WhyName(c.name)]) {
				list = append(list, c)
			}
			had[c.name] = true
		}
	}
	slices.SortFunc(list, earlier)
	names = make([]string, len(list))
	for i, c := range list {
		names[i] = c.name
	}
	return names, nil
}

// mailIn lists the envelopes of a directory, and the reasons beside them.
func mailIn(fd int) (list []candidate, whys map[string]bool, err error) {
	whys = make(map[string]bool)
	err = mailbox.Names(fd, func(name string) bool {
		switch {
		case envelope.IsFile(name):
			if ns, err := orderTime(fd, name); err == nil {
				list = append(list, candidate{ns, name})
			}
		case len(name) > len(envelope.WhySuffix) && name[len(name)-len(envelope.WhySuffix):] == envelope.WhySuffix:
			whys[name] = true
		}
		return true
	})
	return list, whys, err
}

// Find reads the file of that name in a mailbox, wherever its receiver has put it; the
// error matches fs.ErrNotExist if it is in no place.
func (b *boxes) Find(id agent.ID, name string) (Entry, error) {
	list, err := b.FindAll(id, []string{name})
	if err != nil {
		return Entry{}, err
	}
	if len(list) == 0 {
		return Entry{}, fmt.Errorf("%s: not in the mailbox of %s: %w", envelope.Plain(name), id, unix.ENOENT)
	}
	return list[0], nil
}

// FindAll calls Find for many names and omits files that are in no place.
func (b *boxes) FindAll(id agent.ID, names []string) (list []Entry, err error) {
	type open struct {
		place Place
		fd    int
	}
	var dirs []open
	defer func() {
		for _, d := range dirs {
			unix.Close(d.fd)
		}
	}()
	for _, p := range places[:4] {
		fd, err := b.openPlace(id, p)
		if err != nil {
			return nil, err
		}
		dirs = append(dirs, open{p, fd})
	}
	for _, name := range names {
		if !envelope.IsFileName(name) {
			return list, fmt.Errorf("%s: not an envelope's file name", envelope.Plain(name))
		}
		found := false
		for try := 0; try < 3 && !found; try++ { // it may be put back while we look
			for _, d := range dirs {
				if e, err := b.entry(d.fd, id, d.place, name); err == nil {
					list, found = append(list, e), true
					break
				}
			}
		}
	}
	return list, nil
}

// File files envelopes of an inbox as delivered, by file name, for a caller that has read
// them there. It takes the mailbox's lock while it runs; the error matches agent.ErrLocked
// if a receiver has it, which will file them itself. Names no longer in the inbox are
// skipped. It returns how many it filed; a crash leaves the others to the next receiver.
func (b *Bus) File(id agent.ID, names []string) (n int, err error) {
	r, err := b.hold(id, home.Passing, ReceiveOptions{})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, r.release()) }()
	close(r.done) // no goroutine runs
	r.mu.Lock()
	defer r.mu.Unlock()
	list, err := r.claimNamed(names)
	if len(list) == 0 {
		return 0, err
	}
	var fresh []envelope.Envelope
	whys := make([]mailbox.Why, len(list))
	now, batch := r.bus.now(), make(map[mailbox.Key]bool)
	for i, l := range list {
		known := r.seen.Has(*l.env)
		for _, k := range mailbox.KeysOf(*l.env) {
			known = known || batch[k]
			batch[k] = true
		}
		if known && l.ours {
			whys[i] = deliveredBefore(*l.env)
		} else if !known {
			fresh = append(fresh, *l.env)
		}
	}
	if len(fresh) > 0 {
		if err := r.seen.Add(now, fresh...); err != nil {
			return 0, err
		}
	}
	for i, l := range list {
		if failed := r.filed(l.name, whys[i], *l.env); failed != nil {
			err = errors.Join(err, failed)
			continue
		}
		n++
	}
	return n, err
}

// claimNamed claims the named files of the inbox, and finds those that a dead holder had
// claimed. The caller holds mu.
func (r *Receiver) claimNamed(names []string) (list []*letter, err error) {
	dead := make(map[string]*letter)
	for _, l := range r.again {
		if l.env != nil {
			dead[l.name] = l
		}
	}
	for _, name := range names {
		if !envelope.IsFileName(name) {
			continue
		}
		if l := dead[name]; l != nil {
			list = append(list, l)
			continue
		}
		inbox, failed := r.use(&r.inbox)
		if failed != nil {
			return list, errors.Join(err, failed)
		}
		l := &letter{name: name}
		if r.look(l, inbox); l.env == nil || l.kind.Control() {
			continue
		}
		switch claimed, failed := r.claim(l); {
		case failed != nil:
			err = errors.Join(err, failed)
		case claimed:
			list = append(list, l)
		}
	}
	return list, err
}
