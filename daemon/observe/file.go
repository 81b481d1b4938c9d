package observe

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/bus/mailbox"
	"netsky/store"
)

// found is what was read from one file.
type found struct {
	ops   []store.Op
	whose uint64 // hash of the message and its sender
	bytes int    // of text
	// unsettled: read it again, for it is still being written, or its .why is.
	unsettled bool
}

// read turns one file into records. A missing file yields none.
func (o *Observer) read(ctx context.Context, id agent.ID, at bus.Place, name string, m mark) (found, error) {
	e, err := o.Bus.Read(id, at, name)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, bus.ErrNoMailbox) {
		return found{}, nil
	}
	if err != nil {
		return found{}, err
	}
	if e.Err != nil && at != bus.Poison {
		return found{unsettled: true}, nil // the bus has not judged it yet
	}
	msg := message(e)
	f := found{whose: o.hash(msg.ID, string(msg.From)), bytes: len(msg.Text)}
	if at == bus.Outbox || at == bus.Sent {
		f.ops = []store.Op{msg} // the delivery is recorded from the recipient's mailbox
		return f, nil
	}
	state, reason, sure := verdict(e, m)
	if !sure {
		f.unsettled = true
		return f, nil
	}
	target := id
	if at == bus.Poison && e.Err == nil && msg.From == id && msg.To != "" {
		target = msg.To // it was in the outbox
	}
	attempts, err := o.attempts(ctx, msg, target, at)
	if err != nil {
		return found{}, err
	}
	d := store.UpsertDelivery{Message: msg.ID, From: msg.From, Target: target, State: state, Attempts: attempts,
		Reason: reason, Queued: store.At(e.Time)}
	if m != (mark{}) {
		d.Time = store.At(time.Unix(0, m.ctime))
	}
	f.ops = []store.Op{msg, d}
	return f, nil
}

// verdict interprets the place of a file. It is not sure if a .why that may be about to be
// written could say otherwise.
func verdict(e bus.Entry, m mark) (state store.DeliveryState, reason string, sure bool) {
	moved := time.Unix(0, m.ctime)
	fresh := e.Why == "" && time.Since(moved) < settleTime
	switch e.Place {
	case bus.Inbox:
		return store.Queued, "", true
	case bus.Claimed:
		return store.Claimed, "", true
	case bus.Poison:
		return store.Poisoned, e.Fact(), !fresh
	}
	switch e.Reason {
	case mailbox.Expired:
		return store.Expired, e.Fact(), true
	case mailbox.Retracted:
		return store.Cancelled, e.Fact(), true
	}
	late := !e.Envelope.Expires.IsZero() && !moved.Before(e.Envelope.Expires)
	return store.Delivered, e.Fact(), !fresh || !late && !e.Envelope.Kind.Control()
}

// attempts returns the number of the attempt that a state belongs to. A file that is back
// where it was before, or out of poison/ again, starts a new one; records never go back by
// themselves.
func (o *Observer) attempts(ctx context.Context, m store.UpsertMessage, target agent.ID, at bus.Place) (int, error) {
	d, err := o.DB.Delivery(ctx, m.ID, m.From, target)
	if errors.Is(err, store.ErrNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	back := false
	switch d.Filed {
	case store.Poisoned, store.Cancelled:
		back = at == bus.Inbox || at == bus.Claimed
	case store.Claimed:
		back = at == bus.Inbox
	}
	if back {
		return d.Attempts + 1, nil
	}
	return d.Attempts, nil
}

// message returns the record of an envelope. An invalid one gets an ID from its place, so
// that the records can name it.
func message(e bus.Entry) store.UpsertMessage {
	if e.Err != nil {
		sum := sha256.Sum256([]byte(string(e.Mailbox) + "/" + e.Name))
		return store.UpsertMessage{ID: "x-" + hex.EncodeToString(sum[:16]), To: e.Mailbox, Time: store.At(e.Time),
			Metadata: map[string]json.RawMessage{store.MetaFile: quoted(e.Name), "error": quoted(e.Err.Error())}}
	}
	v := e.Envelope
	if name := envelope.GivenName(e.Name); name != "" {
		// A person knows the message by its file's name.
		v.Extra = maps.Clone(v.Extra)
		if v.Extra == nil {
			v.Extra = make(map[string]json.RawMessage)
		}
		v.Extra[store.MetaFile] = quoted(name)
	}
	return store.UpsertMessage{
		ID: v.ID, From: v.From, To: v.To, Kind: string(v.Kind), Text: v.Text, Time: store.At(v.Time),
		InReplyTo: v.InReplyTo, Thread: v.Thread, Hops: v.Hops, Via: v.Via, IdempotencyKey: v.IdempotencyKey,
		RequiresAck: v.RequiresAck, Expires: store.At(v.Expires), Start: v.Start,
		Attachments: v.Attachments, Metadata: v.Extra,
	}
}

func quoted(s string) json.RawMessage {
	data, err := json.Marshal(envelope.Plain(s))
	if err != nil {
		panic(err) // a string always encodes as JSON
	}
	return data
}
