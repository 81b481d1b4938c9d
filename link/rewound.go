package link

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sys/unix"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/home"
)

// sentFile holds what the server had acknowledged.
const sentFile = "state/link/sent.json"

// sent is the last message of this host's that the server has acknowledged. A server that
// has less was restored from an earlier copy, or is another, and has lost what came after it.
// It is on disk before what it is about is filed.
type sent struct {
	disk  sync.Mutex // held while it is written
	mu    sync.Mutex // guards the fields below
	dirty bool
	v     sentState
}

type sentState struct {
	Created time.Time `json:"created"` // of the stream
	Last    uint64    `json:"last"`
	Lost    bool      `json:"lost,omitzero"` // the server has lost some, and does not have it all again
}

func (s *sent) set(last uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dirty = s.dirty || s.v.Last != last
	s.v.Last = last
}

// begin notes the stream that there is, and whether some of what the server has lost is still to be sent again.
func (s *sent) begin(created time.Time, last uint64, lost bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.v, s.dirty = sentState{Created: created, Last: last, Lost: lost}, true
}

// whole notes that nothing which the server has lost is to be sent again any more, and reports whether something was.
func (s *sent) whole() (was bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	was = s.v.Lost
	s.v.Lost, s.dirty = false, s.dirty || was
	return was
}

// beyond reports whether the server had acknowledged more than it has, and notes that; not again while it is
// being sent what it had lost before.
func (s *sent) beyond(info *jetstream.StreamInfo, again bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.v.Created.IsZero() || (again || !s.v.Lost) && s.v.Created.Equal(info.Created) && s.v.Last <= info.State.LastSeq {
		return false
	}
	s.dirty, s.v.Lost = s.dirty || !s.v.Lost, true
	return true
}

// save writes it, if it has changed.
func (s *sent) save(h home.Dir) error {
	s.disk.Lock()
	defer s.disk.Unlock()
	s.mu.Lock()
	v, dirty := s.v, s.dirty
	s.dirty = false
	s.mu.Unlock()
	if !dirty {
		return nil
	}
	err := h.Save(sentFile, v, true)
	if err != nil {
		s.mu.Lock()
		s.dirty = true
		s.mu.Unlock()
	}
	return err
}

// resend publishes everything again that was filed and is still remembered: what has arrived
// has no second effect. What is for a host for which the server keeps no more stays behind.
func (o *outbound) resend(ctx context.Context, info *jetstream.StreamInfo) (err error) {
	list, err := o.filed()
	if err != nil {
		return err
	}
	o.forget()
	defer func() {
		if err != nil {
			o.known = false
			o.forget()
		}
	}()
	o.Log.Warn("link", "the server has an earlier state, of", info.State.LastTime, "sent again", len(list))
	for len(list) > 0 {
		batch, at := []parcel(nil), list[:min(len(list), window)]
		list = list[len(at):]
		for _, f := range at {
			if p, ok := o.filedParcel(f); ok {
				batch = append(batch, p)
			}
		}
		for batch = o.leave("", batch); len(batch) > 0; {
			left, err := o.publish(ctx, batch)
			switch full, is := errors.AsType[fullError](err); {
			case is:
				o.setAside(err)
				left = o.leave(full.host, left)
			case err != nil && len(left) == len(batch):
				return err
			}
			if batch = left; !o.known { // what it has of an earlier try is in no sequence
				if _, err := o.end(ctx); err != nil {
					return err
				}
			}
		}
	}
	_, _, err = o.Bus.SendOnce(ctx, envelope.Envelope{
		ID: fmt.Sprintf("link-rewound-%d-%d", info.Created.Unix(), info.State.LastSeq), From: agent.Infinity, To: agent.Owner, Kind: envelope.KindNotice, Via: "code",
		Text: "The link's server has lost mail that it had taken, as if it was restored from an earlier copy. What this host had sent was sent again; what had arrived has no second effect.",
	})
	if err != nil && !errors.Is(err, bus.ErrUsed) {
		o.Log.Warn("link", "the owner is not told", err)
	}
	return nil
}

type filedMail struct {
	ns   int64
	box  agent.ID
	name string
}

const (
	// resendFor is for how long after it was filed a message is sent again: its receiver knows it as long.
	resendFor = bus.ServerKeeps - time.Hour
	// apart is how far the clocks of two hosts may be from each other.
	apart = 2 * time.Hour
)

// filed lists what was sent to the hosts that have the names of its receivers today, in order.
func (o *outbound) filed() (list []filedMail, err error) {
	ids, err := o.Bus.All()
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		to, is := o.team.Host(id.Host())
		if !is {
			continue
		}
		names, err := o.Bus.Names(id, bus.Delivered)
		if err != nil && !errors.Is(err, bus.ErrNoMailbox) && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		for _, name := range names {
			ns, _, _ := envelope.NameParts(name)
			var st unix.Stat_t
			if unix.Lstat(o.Home.Path(home.Mailbox(id)+"/"+string(bus.Delivered)+"/"+name), &st) != nil {
				continue // it was removed
			}
			if at := time.Unix(st.Ctim.Unix()); at.Before(to.Added.Add(-apart)) || time.Since(at) > resendFor {
				continue
			}
			list = append(list, filedMail{ns, id, name})
		}
	}
	slices.SortStableFunc(list, func(a, b filedMail) int { return cmp.Compare(a.ns, b.ns) })
	return list, nil
}
