package link

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/link/wire"
)

// publish publishes a batch, files what the server has acknowledged, and returns the rest. There is an error
// if something else is wrong than that the server had some of it already.
//
// What the server has, as a daemon was killed before that was filed, takes no sequence, so all that is behind it
// is refused. Then one is published at a time, up to the first that the server does not have.
func (o *outbound) publish(ctx context.Context, batch []parcel) (left []parcel, err error) {
	var rest []parcel
	if o.has && len(batch) > 0 {
		batch, rest = batch[:1:1], batch[1:]
	}
	defer func() { left = append(left, rest...) }()
	batch, msgs, after, unready := o.messages(ctx, batch)
	rest = append(after, rest...)
	acks := make([]jetstream.PubAckFuture, 0, len(batch))
	var stopped error // before all were given to the server
	for i, m := range msgs {
		f, err := o.js.PublishMsgAsync(m, jetstream.WithExpectLastSequence(o.last+uint64(i)))
		if err != nil {
			o.known, stopped = false, err
			break
		}
		acks, batch[i].tried = append(acks, f), true
	}
	whole := ctx
	ctx, cancel := context.WithTimeout(ctx, ackTime)
	defer cancel()
	var done []*bus.Delivery
	for i, p := range batch {
		if i >= len(acks) {
			left = append(left, p)
			continue
		}
		ack, aerr := acknowledged(ctx, acks[i])
		if aerr != nil {
			o.known = false
			left = append(left, p)
			err = cmp.Or(err, p.refused(aerr))
			continue
		}
		o.last, o.has = max(o.last, ack.Sequence), ack.Duplicate
		o.taken(p)
		if p.d != nil { // while what was lost is sent again, it is on record that it was lost
			o.sent.set(o.last)
			done = append(done, p.d)
		}
		if !bus.IsReport(p.Envelope) {
			o.host(p.To.Host(), func(h *HostReport) { h.Sent, h.LastSent = h.Sent+1, now() })
		}
	}
	if len(done) > 0 {
		select {
		case o.acked <- done:
		case <-whole.Done():
		}
	}
	switch {
	case len(left) == 0 || len(left) < len(batch) && outOfSequence(err):
		return left, unready
	case err == nil:
		err = cmp.Or(stopped, errors.New("the server has not taken all"))
	}
	return left, err
}

// outOfSequence reports whether the server refused what was not behind the last that it has.
func outOfSequence(err error) bool {
	e, is := errors.AsType[*jetstream.APIError](err)
	return is && e.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence
}

func acknowledged(ctx context.Context, f jetstream.PubAckFuture) (*jetstream.PubAck, error) {
	select {
	case ack := <-f.Ok():
		return ack, nil
	case err := <-f.Err():
		return nil, err
	case <-ctx.Done():
		return nil, fmt.Errorf("the server has not answered within %v", ackTime)
	}
}

// maxBody returns the largest message without its headers, in bytes. A server that the user runs may take less.
func (o *outbound) maxBody() int {
	return int(min(wire.MaxMessage, cmp.Or(o.nc.MaxPayload(), wire.MaxMessage))) - 4<<10
}

// messages returns what is published of a batch, without what is too large for the server, whose senders are told.
// With an error, the rest of the batch is left.
func (o *outbound) messages(ctx context.Context, batch []parcel) (fit []parcel, msgs []*nats.Msg, left []parcel, err error) {
	for i, p := range batch {
		m, err := o.message(ctx, p)
		if most := o.maxBody(); err == nil && len(m.Data) > most && p.d != nil {
			if err = p.d.Poison(fmt.Sprintf("too large for another host: %d bytes, at most %d cross", len(m.Data), most)); err == nil {
				continue
			}
		}
		if err != nil {
			return fit, msgs, slices.Clone(batch[i:]), err
		}
		fit, msgs = append(fit, p), append(msgs, m)
	}
	return fit, msgs, nil, nil
}

// message returns what is published of an envelope, whose files it puts first.
func (o *outbound) message(ctx context.Context, p parcel) (*nats.Msg, error) {
	e, err := o.put(ctx, p.Envelope)
	if err != nil {
		return nil, err
	}
	data, err := dated(e, o.Bus.Now()).MarshalJSON()
	if err != nil {
		return nil, err
	}
	m := &nats.Msg{Subject: wire.MailSubject(o.self.Name, e.To.Host()), Data: data, Header: nats.Header{}}
	if p.d == nil {
		m.Header.Set(againHeader, "1")
	}
	return m, wire.Sign(o.key, m, envelope.Digest(o.key.Public(), string(e.From), string(e.To), e.ID))
}
