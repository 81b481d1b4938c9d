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
	tells []told
	// unsettled: read it again, for it is still being written, or its .why is.
	unsettled bool
	// ours: nothing is recorded of it, as it is one netsky's acknowledgement to another.
	ours bool
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
	if e.Err == nil && id.Host() != "" && bus.IsReport(e.Envelope) {
		return found{ours: true}, nil
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
	was, err := o.DB.Delivery(ctx, msg.ID, msg.From, target)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return found{}, err
	}
	attempts := attemptsOf(was, at)
	d := store.UpsertDelivery{Message: msg.ID, From: msg.From, Target: target, State: state, Attempts: attempts,
		Reason: reason, Queued: store.At(e.Time)}
	if m != (mark{}) {
		d.Time = store.At(time.Unix(0, m.ctime))
	}
	f.ops = []store.Op{msg, d}
	if was.Filed != state || was.Attempts != attempts { // else its host has been told
		f.tells = tellsOf(d)
	}
	return f, nil
}

// verdict interprets the place of a file. What is for another host has been delivered there when
// that host says so. It is not sure if a .why that may be about to be
// written could say otherwise.
func verdict(e bus.Entry, m mark) (state store.DeliveryState, reason string, sure bool) {
	moved, away := time.Unix(0, m.ctime), e.Mailbox.Host() != ""
	fresh := e.Why == "" && time.Since(moved) < settleTime
	switch {
	case e.Place == bus.Inbox, away && e.Place == bus.Claimed:
		return store.Queued, "", true
	case e.Place == bus.Claimed:
		return store.Claimed, "", true
	case e.Place == bus.Poison:
		return store.Poisoned, e.Fact(), !fresh
	}
	switch e.Reason {
	case mailbox.Expired:
		return store.Expired, e.Fact(), true
	case mailbox.Retracted:
		return store.Cancelled, e.Fact(), true
	}
	if state, reason = store.Delivered, e.Fact(); away {
		state, reason = store.SentOn, ""
	}
	late := !e.Envelope.Expires.IsZero() && !moved.Before(e.Envelope.Expires)
	return state, reason, !fresh || !late && !e.Envelope.Kind.Control()
}

// attemptsOf returns the number of the attempt that a file belongs to, of whose delivery that is on
// record. A file that is back where it was before, or out of poison/ again, starts a new one; records
// never go back by themselves.
func attemptsOf(was store.Delivery, at bus.Place) int {
	back := false
	switch was.Filed {
	case store.Poisoned, store.Cancelled:
		back = at == bus.Inbox || at == bus.Claimed
	case store.Claimed:
		back = at == bus.Inbox && was.Target.Host() == ""
	}
	if back {
		return was.Attempts + 1
	}
	return was.Attempts
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
