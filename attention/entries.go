package attention

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"netsky/agent"
	"netsky/bus/envelope"
	"netsky/link"
	"netsky/store"
)

const (
	// MaxEntries is how many entries of its log a host tells.
	MaxEntries = 100
	maxEntry   = 500 // bytes of what one says
)

// TellEntries returns what the owner's host is told of the log here, the newest first.
func TellEntries(list []store.Log) ([]byte, error) {
	out := make([]store.Log, 0, len(list))
	for _, l := range list {
		l.Text, l.Fields = envelope.Line(l.Text, maxEntry), nil
		out = append(out, l)
	}
	return tell(out)
}

// ReadEntries returns the entries that a host has told and that come after from.Last, the oldest first, as they are recorded
// here: agent3@build1, and of a part like watchdog@build1, so that no one takes them for this host's. Of those between that
// were not told, an entry says how many they are.
func ReadEntries(from link.Host, told []byte, now time.Time) (out []store.Log) {
	h := Host{Name: from.Name, Behind: int64(from.Behind.Seconds())}
	var list []store.Log
	for _, raw := range readTold(told).List {
		var l store.Log
		if len(list) < MaxEntries && json.Unmarshal(raw, &l) == nil && l.ID > 0 {
			list = append(list, l)
		}
	}
	slices.SortFunc(list, func(a, b store.Log) int { return cmp.Compare(a.ID, b.ID) })
	if len(list) == 0 {
		return nil
	}
	after := from.Last
	if list[len(list)-1].ID < after { // its records were restored from a backup
		after = 0
	}
	if missing := list[0].ID - after - 1; after > 0 && missing > 0 {
		out = append(out, store.Log{
			ID: list[0].ID - 1, Key: entryKey(h.Name, "before", list[0].ID), Time: min(h.here(list[0].Time), store.At(now)), Level: store.LevelInfo, Part: "link",
			Text: fmt.Sprintf("up to %d more entries of the log are only on %[2]s: netsky --on %[2]s log", missing, h.Name),
		})
	}
	for _, l := range list {
		if l.ID > after {
			out = append(out, h.entry(l, now))
		}
	}
	return out
}

// entry returns an entry of the host's log as it is recorded here.
func (h Host) entry(l store.Log, now time.Time) store.Log {
	e := store.Log{ID: l.ID, Key: entryKey(h.Name, l.Key, l.ID), Time: min(h.here(l.Time), store.At(now)), Level: l.Level, Text: envelope.Plain(envelope.Line(l.Text, maxEntry))}
	if !slices.Contains([]string{store.LevelDebug, store.LevelInfo, store.LevelWarn, store.LevelError}, l.Level) {
		e.Level = store.LevelInfo
	}
	e.Part = strings.ReplaceAll(envelope.Cut(word(l.Part), 20), "@", " ") + "@" + h.Name
	switch id, err := agent.ParseAddress(string(l.Actor)); {
	case err != nil:
	case id.Host() == "":
		e.Actor = id.At(h.Name)
	default: // what it says of another host's is not that one's word
		e.Text = string(id) + ": " + e.Text
	}
	if about := envelope.Cut(word(l.About), 100); about != "" {
		e.About = about + "@" + h.Name
	}
	return e
}

// Elsewhere returns the host that an id of a record is on, "" for this one. An entry of the log of build1 is about ID@build1.
func Elsewhere(about string) (host string) {
	_, host, _ = strings.Cut(about, "@")
	if _, err := agent.ParseAddress(about); err == nil || !agent.IsHost(host) {
		return ""
	}
	return host
}

// entryKey is the key under which an entry is recorded here, so that it is once.
func entryKey(host, key string, id int64) string {
	return "told-" + envelope.Digest(host, key, strconv.FormatInt(id, 10))
}
