package link

import (
	"encoding/json"
	"maps"
	"strconv"
	"time"

	"netsky/bus/envelope"
)

// atField is the extra field of an envelope that expires which says when it was published, in
// milliseconds by the clock of its sender.
const atField = "link_at"

// dated returns the envelope with that field: clocks differ, so its receiver is told how long
// it counts.
func dated(e envelope.Envelope, now time.Time) envelope.Envelope {
	if e.Expires.IsZero() {
		return e
	}
	e.Extra = maps.Clone(e.Extra)
	if e.Extra == nil {
		e.Extra = make(map[string]json.RawMessage)
	}
	e.Extra[atField] = strconv.AppendInt(nil, now.UnixMilli(), 10)
	return e
}

// undated returns the envelope without the field. It expires by the clock of this host, which
// shows now, and showed at when the server took the envelope.
func undated(e envelope.Envelope, now, at time.Time) envelope.Envelope {
	raw, ok := e.Extra[atField]
	if !ok {
		return e
	}
	e.Extra = maps.Clone(e.Extra)
	delete(e.Extra, atField)
	sent, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil || e.Expires.IsZero() {
		return e
	}
	if at.After(now) {
		at = now
	}
	e.Expires = at.Add(e.Expires.Sub(time.UnixMilli(sent)))
	return e
}
