package bus

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"netsky/agent"
	"netsky/bus/envelope"
	"netsky/bus/mailbox"
)

// maxMending is how many files of one poison/ are watched for changes; others return by
// `channel poison retry` alone.
const maxMending = 1000

// A mending watches poisoned files: a file that a slow writer or a person changes later,
// and that is valid then, moves back to where it was found. It is not safe for concurrent
// use.
type mending struct {
	bus    *boxes
	box    agent.ID
	place  Place // only files found there
	listed bool
	files  map[string]mailbox.Mark // by name in poison/: the state last judged
}

func (m *mending) add(name string, judged mailbox.Mark) {
	if m.files == nil {
		m.files = make(map[string]mailbox.Mark)
	}
	if len(m.files) < maxMending {
		m.files[name] = judged
	}
}

// list finds files that were poisoned before this process started.
func (m *mending) list(poison int) {
	m.listed = true
	var names []string
	err := mailbox.Names(poison, func(name string) bool {
		if envelope.IsFile(name) {
			names = append(names, name)
		}
		return len(names) < maxMending
	})
	if err != nil {
		m.listed = false
	}
	for _, name := range names {
		if _, known := m.files[name]; known {
			continue
		}
		if o := readWhy(poison, name).Origin; Place(o.Place) == m.place {
			m.add(name, o.Mark)
		}
	}
}

// take moves the mended files from poison/ to the open directory to, reports each, and
// returns how many.
func (m *mending) take(poison, to int, report func(string, error)) (n int) {
	if !m.listed {
		m.list(poison)
	}
	for name, judged := range m.files {
		st, err := mailbox.Lstat(poison, name)
		if mailbox.Gone(err) {
			delete(m.files, name)
			continue
		}
		if err != nil || mailbox.MarkOf(st).Same(judged) {
			continue
		}
		_, now, err := m.bus.readEnvelope(poison, name, form{m.bus, m.box, m.place})
		switch {
		case errors.Is(err, envelope.ErrInvalid):
			m.files[name] = now
			continue
		case err != nil:
			continue // read again the next time
		}
		back, err := move(poison, name, to)
		delete(m.files, name)
		if mailbox.Gone(err) {
			continue
		}
		if err != nil {
			report(fmt.Sprintf("cannot move %s back to the %s of %s", name, m.place, m.box), err)
			continue
		}
		n++
		err = mailbox.Unlink(poison, envelope.WhyName(name))
		if err == unix.ENOENT {
			err = nil
		}
		report(fmt.Sprintf("%s is now a valid envelope: moved back to the %s of %s", back, m.place, m.box), err)
	}
	return n
}

// takeMended puts files back into the inbox that were found there, were poisoned, and are
// valid envelopes now.
func (q *queue) takeMended() {
	if q.mend.listed && len(q.mend.files) == 0 {
		return
	}
	poison, inbox, err := q.both(&q.poisons, &q.inbox)
	if err == nil && q.mend.take(poison, inbox, q.report) > 0 {
		q.stale = true
	}
}
