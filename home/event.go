package home

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"golang.org/x/sys/unix"

	"netsky/agent"
)

// maxEvent is the maximum length of a line, in bytes; a model's text fits.
const maxEvent = 1 << 20

// rotateEvents is the size at which Rotate begins a new file, in bytes.
const rotateEvents = 4 << 20

// asideSuffix ends the name of a rotated file.
const asideSuffix = ".1"

// Events are what other processes observed of the agents: a file each.
type Events Dir

// Append appends to the agent's events. It sets MS if that is 0. The line is not
// fsynced.
func (h Events) Append(id agent.ID, e agent.Event) error {
	if e.MS == 0 {
		e.MS = time.Now().UnixMilli()
	}
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	if len(line) >= maxEvent {
		return fmt.Errorf("event of %s: %d bytes exceed the limit of %d", id, len(line), maxEvent)
	}
	f, err := Dir(h).OpenAppend(EventsFile(id))
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("event of %s: %w", id, err)
	}
	return nil
}

// Rotate renames a file of events that has grown past 4 MiB, replacing the one
// rotated before. Only the holder of the agent's mailbox calls it. A reader with an
// EventTail misses nothing.
func (h Events) Rotate(id agent.ID) error {
	dir, err := Dir(h).OpenDir(EventsDir, true)
	if err != nil {
		return err
	}
	defer dir.Close()
	name := string(id) + ".jsonl"
	var st unix.Stat_t
	err = unix.Fstatat(int(dir.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW)
	if errors.Is(err, fs.ErrNotExist) || err == nil && st.Size < rotateEvents {
		return nil
	}
	if err == nil {
		err = unix.Renameat(int(dir.Fd()), name, int(dir.Fd()), name+asideSuffix)
	}
	if err != nil {
		return fmt.Errorf("rotate the events of %s: %w", id, err)
	}
	return nil
}

// InTurn is the id of the first message in the turn that a start of an agent is at, as its
// events tell; "" if that is not known.
func (h Events) InTurn(id agent.ID, start string) (message string) {
	tail := h.Tail(id)
	defer tail.Close()
	_ = tail.Read(func(e agent.Event) { // what can't be read is not known
		if e.Start != start {
			return
		}
		switch e.Event {
		case agent.EventPrompt:
			if message = ""; len(e.IDs) > 0 {
				message = e.IDs[0]
			}
		case agent.EventStop, agent.EventStopFailed:
			message = ""
		}
	})
	return message
}
