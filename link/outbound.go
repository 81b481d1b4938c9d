package link

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/home"
	"netsky/internal/proc"
	"netsky/link/wire"
)

const (
	window    = 256                    // messages that are published before the first is acknowledged
	ackTime   = 15 * time.Second       // for an acknowledgement
	fileEvery = 100 * time.Millisecond // what was acknowledged is filed that often
)

// A parcel is a message to publish.
type parcel struct {
	envelope.Envelope
	d     *bus.Delivery // nil if it was filed before
	file  filedMail     // where it was filed; of one that has d, zero
	tried bool          // the server may have it
}

// An outbound publishes what waits for other hosts, in order. The server takes a message only
// behind the one before it (Nats-Expected-Last-Sequence), so many may be on their way at once.
type outbound struct {
	*session
	stream string
	in     chan *bus.Delivery
	acked  chan []*bus.Delivery // that the server has, and are to be filed
	sent   sent

	last  uint64 // the sequence of the last message in the stream
	known bool   // last is
	has   bool   // the server has had what came last

	mu    sync.Mutex
	boxes map[agent.ID]bool // that are being read
	aside map[string]*aside // by host

	waits map[string]int // by host, as reported; of gather
}

func newOutbound(s *session) *outbound {
	was, _ := home.Load[sentState](s.Home, sentFile) // without it nothing is known to be lost
	return &outbound{
		session: s, sent: sent{v: was}, stream: wire.MailStream(s.self.Name),
		in: make(chan *bus.Delivery, window), acked: make(chan []*bus.Delivery, 4), boxes: make(map[agent.ID]bool), aside: make(map[string]*aside),
	}
}

func (o *outbound) run(ctx context.Context) error {
	var readers sync.WaitGroup
	defer readers.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	readers.Go(func() { o.gather(ctx, &readers) })
	readers.Go(func() { o.file(ctx) })
	again := o.nc.StatusChanged(nats.CONNECTED)
	defer o.nc.RemoveStatusListener(again)
	var batch []parcel // in the order in which they were sent
	for wait := firstWait; ; {
		if len(batch) == 0 && (o.known || !o.nc.IsConnected()) {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-again: // perhaps to a server that has lost something
				o.known = false
				continue
			case d := <-o.in:
				batch = append(batch, parcel{Envelope: d.Envelope(), d: d})
			case <-o.retry():
			}
		}
		var err error
		if !o.known {
			err = o.seek(ctx)
		}
		if batch = o.live(o.sort(o.fill(batch))); err == nil {
			batch, err = o.publish(ctx, batch)
		}
		if o.known && !o.behind() && o.sent.whole() { // it was taken, or counts no more
			o.trouble("filing what was sent", o.sent.save(o.Home))
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if o.setAside(err) {
			continue
		}
		o.trouble("mail out", err)
		if err == nil {
			wait = firstWait
			continue
		}
		var renewed bool
		if wait, renewed = rest(ctx, wait, again); renewed {
			o.known = false
		}
	}
}

// file files what the server has acknowledged, some of it at a time.
func (o *outbound) file(ctx context.Context) {
	var left []*bus.Delivery
	var due <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case list := <-o.acked:
			if left = append(left, list...); due == nil {
				due = time.After(fileEvery)
			}
			continue
		case <-due:
		}
		err := o.sent.save(o.Home)
		if err == nil {
			left, err = bus.ConfirmAll(left)
		}
		o.trouble("filing what was sent", quiet(ctx, err))
		if due = nil; len(left) > 0 {
			due = time.After(lookEvery)
		}
	}
}

// fill takes what waits besides.
func (o *outbound) fill(batch []parcel) []parcel {
	for len(batch) < window {
		select {
		case d := <-o.in:
			batch = append(batch, parcel{Envelope: d.Envelope(), d: d})
		default:
			return batch
		}
	}
	return batch
}

// gather starts a reader for each address on another host of the team.
func (o *outbound) gather(ctx context.Context, readers *sync.WaitGroup) {
	w, err := o.Bus.Watch(ctx, bus.Spot{Dir: home.Links})
	hint := (<-chan struct{})(nil)
	if err == nil {
		defer w.Close()
		hint = w.C
	}
	for {
		ids, err := o.Bus.All()
		o.trouble("mailboxes", err)
		for _, id := range ids {
			if _, is := o.team.Host(id.Host()); !is || !o.claim(id) {
				continue
			}
			readers.Go(func() {
				o.trouble("mail for "+string(id), o.read(ctx, id))
				o.mu.Lock()
				delete(o.boxes, id)
				o.mu.Unlock()
			})
		}
		o.count()
		if proc.SleepUntil(ctx, proc.Tick(lookEvery), hint) != nil {
			return
		}
	}
}

// count notes how much waits for each host.
func (o *outbound) count() {
	waiting, _ := o.Bus.Unsent() // what can't be counted is a trouble elsewhere
	for _, h := range o.team.Hosts {
		if h.Name != o.self.Name && o.waits[h.Name] != waiting[h.Name] {
			o.host(h.Name, func(r *HostReport) { r.Waiting = waiting[h.Name] })
		}
	}
	o.waits = waiting
}

// claim reports whether nobody reads that mailbox yet.
func (o *outbound) claim(id agent.ID) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.boxes[id] {
		return false
	}
	o.boxes[id] = true
	return true
}

// read passes on the mail of one mailbox, while there is a connection.
func (o *outbound) read(ctx context.Context, id agent.ID) error {
	r, err := o.Bus.Receive(ctx, id, bus.ReceiveOptions{Carry: true, Report: func(what string, err error) {
		o.Log.Info("link", "mail for", id, "what", what, "error", err)
	}})
	if err != nil {
		return quiet(ctx, err)
	}
	defer r.Close()
	o.trouble("mail for "+string(id), nil)
	again := o.nc.StatusChanged(nats.CONNECTED)
	defer o.nc.RemoveStatusListener(again)
	for {
		for wait := mostWait; !o.nc.IsConnected() || o.isAside(id.Host()); rest(ctx, wait, again) {
			if ctx.Err() != nil {
				return nil
			}
			if wait = mostWait; o.nc.IsConnected() {
				wait = fullWait
			}
		}
		d, err := r.Next(ctx)
		if err != nil {
			return quiet(ctx, err)
		}
		select {
		case <-ctx.Done():
			return nil
		case o.in <- d:
		}
	}
}

// quiet drops an error that comes of the end of ctx.
func quiet(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// live returns what has not expired. What the server may have, it is given once more: its receiver says what became of it.
func (o *outbound) live(batch []parcel) []parcel {
	return slices.DeleteFunc(batch, func(p parcel) bool {
		return !p.tried && p.Expired(o.Bus.Now()) && (p.d == nil || p.d.Expire() == nil)
	})
}

// seek asks where the stream ends, and sends again what the server has lost.
func (o *outbound) seek(ctx context.Context) error {
	info, err := o.end(ctx)
	if err != nil {
		return err
	}
	if o.sent.beyond(info, o.behind()) {
		if err = o.sent.save(o.Home); err == nil {
			err = o.resend(ctx, info)
		}
		if err != nil {
			o.known = false
			return fmt.Errorf("send again what the server has lost: %v", err) // %v: it keeps back what is for all hosts
		}
	}
	o.sent.begin(info.Created, o.last, o.behind())
	return o.sent.save(o.Home)
}

// end asks where the stream ends.
func (o *outbound) end(ctx context.Context) (*jetstream.StreamInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, ackTime)
	defer cancel()
	s, err := o.js.Stream(ctx, o.stream)
	if err != nil {
		return nil, err
	}
	info := s.CachedInfo()
	o.last, o.known = info.State.LastSeq, true
	return info, nil
}
