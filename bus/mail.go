package bus

import (
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"netsky/agent"
	"netsky/bus/envelope"
	"netsky/bus/mailbox"
)

// Mail lists the names of an address's messages, oldest first: waiting, in hand or
// delivered, each file once. What was filed unread, a duplicate or expired, is included
// only if unread is set. It opens no envelope.
func (b *boxes) Mail(id agent.ID, unread bool) ([]string, error) {
	list, err := b.candidates(id, unread)
	if err != nil {
		return nil, err
	}
	return oldestFirst(list), nil
}

// candidates is Mail without the order, so that a caller needn't sort what it leaves out.
func (b *boxes) candidates(id agent.ID, unread bool) (list []candidate, err error) {
	moved := make(map[string]bool) // those that may have been moved on while we look
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
			if !moved[c.name] && (unread || p != Delivered || !whys[envelope.WhyName(c.name)]) {
				list = append(list, c)
			}
			if p != Delivered {
				moved[c.name] = true
			}
		}
	}
	return list, nil
}

// oldestFirst returns the names of the candidates, which it sorts, oldest first.
func oldestFirst(list []candidate) []string {
	slices.SortFunc(list, earlier)
	names := make([]string, len(list))
	for i, c := range list {
		names[i] = c.name
	}
	return names
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
