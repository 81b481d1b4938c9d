package bus

import (
	"time"

	"netsky/bus/disk"
	"netsky/bus/envelope"
)

// An unfinishedError is about a file that is the beginning of an envelope.
type unfinishedError struct{ error }

func (e unfinishedError) Unwrap() error { return e.error }

// readEnvelope reads and parses one file and gives the envelope its ID. What is
// wrong with it is named in full.
func (b *Bus) readEnvelope(dir int, name string, f form) (envelope.Envelope, disk.Mark, error) {
	data, m, err := disk.ReadFile(dir, name, b.maxBytes)
	if err != nil {
		return envelope.Envelope{}, m, err
	}
	e, err := f.parse(data)
	if err != nil {
		err = envelope.Join(f.faults(data))
		if envelope.Unfinished(data) {
			err = unfinishedError{err}
		}
		return envelope.Envelope{}, m, err
	}
	if e.ID == "" {
		e.ID = envelope.FileID(name, m.MTime, m.Ino)
	}
	return e, m, nil
}

// orderTime is the place of a file in its mailbox's order, in nanoseconds.
func orderTime(dir int, name string) (ns int64, err error) {
	if ns, _, ok := envelope.NameParts(name); ok {
		return ns, nil
	}
	st, err := disk.Lstat(dir, name)
	if err != nil {
		return 0, err
	}
	return st.Mtim.Nano(), nil
}

func timeOf(ns int64) time.Time { return time.Unix(0, ns).UTC() }
