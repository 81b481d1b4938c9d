package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/home"
	"netsky/internal/proc"
)

// A message is a message that the drill has sent, or tried to.
type message struct {
	id       string
	from, to agent.ID
	text     string
	tries    int
	acked    bool // `channel send` exited with 0
}

// A ledger is the mail of a drill: what it has sent, and what the mailboxes hold.
type ledger struct {
	pause sync.RWMutex // held for reading while mail is sent

	mu   sync.Mutex // guards what follows
	sent []*message
	next int

	boxes map[agent.ID]*box // the engine's goroutine alone
}

// A box is a mailbox as last read. Files of the bus do not change, so each is read once.
type box struct {
	known map[string]envelope.Envelope
	now   map[bus.Place][]string
}

// Send sends a text to an agent as the owner, on record: it must be delivered and answered.
func (d *Drill) Send(ctx context.Context, to agent.ID, text string) error {
	return d.send(ctx, d.ledger.write(d.Seed, agent.Owner, to, text))
}

// write enters a message that is about to be sent.
func (l *ledger) write(seed uint64, from, to agent.ID, text string) *message {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.next++
	m := &message{id: fmt.Sprintf("drill-%d-%d", seed, l.next), from: from, to: to, text: text}
	l.sent = append(l.sent, m)
	return m
}

// send tries to send a message until it is acknowledged. Each try is the same message, by
// its id.
func (d *Drill) send(ctx context.Context, m *message) error {
	for {
		cmd := d.Command(ctx, "channel", "send", string(m.to), "--id", m.id, "--kind", "brief", m.text)
		if m.from != agent.Owner {
			cmd.Env = append(slices.Clone(cmd.Env), "AGENT_N="+m.from.N())
		}
		d.ledger.pause.RLock()
		out, err := cmd.CombinedOutput()
		d.ledger.pause.RUnlock()
		d.ledger.mu.Lock()
		m.tries++
		m.acked = err == nil
		d.ledger.mu.Unlock()
		if err == nil {
			return nil
		}
		if d.Trace != nil {
			fmt.Fprintf(d.Trace, "%s send %s %s>%s: %v: %s\n", time.Now().Format(time.TimeOnly), m.id, m.from, m.to, err, out)
		}
		if proc.Sleep(ctx, 500*time.Millisecond) != nil {
			return fmt.Errorf("%s to %s: %w: %s", m.id, m.to, err, out)
		}
	}
}

// correspondents are the agents that get mail.
func (d *Drill) correspondents() []agent.ID {
	return slices.DeleteFunc(slices.Clone(d.Agents), func(id agent.ID) bool { return id == agent.Infinity })
}

// traffic sends mail until ctx ends: from the owner and between the agents, mostly short
// jobs, some that take a moment, some that an agent hands on.
func (d *Drill) traffic(ctx context.Context) {
	rng := rand.New(rand.NewPCG(d.Seed, 2))
	list := d.correspondents()
	var sending sync.WaitGroup
	defer sending.Wait()
	tick := time.NewTicker(d.Every)
	defer tick.Stop()
	atOnce := make(chan struct{}, 4)
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		from, to := agent.Owner, list[rng.IntN(len(list))]
		text := fmt.Sprintf("drill job %d", n)
		if slices.Contains(d.Demos, to) {
			switch rng.IntN(6) {
			case 0:
				text = "/busy 300ms"
			case 1:
				if other := list[rng.IntN(len(list))]; other != to {
					text = fmt.Sprintf("/delegate %s drill job %d", other, n)
				}
			}
		}
		if sender := list[rng.IntN(len(list))]; rng.IntN(3) == 0 && sender != to && slices.Contains(d.Demos, sender) {
			from = sender // its answer goes to that agent
		}
		select {
		case atOnce <- struct{}{}:
		default:
			continue // the last ones still wait, for the disk perhaps
		}
		m := d.ledger.write(d.Seed, from, to, text)
		sending.Go(func() {
			defer func() { <-atOnce }()
			_ = d.send(ctx, m) // one that is never acknowledged may arrive once, or not
		})
	}
}

// probe asks every agent something and waits for the answers.
func (d *Drill) probe(ctx context.Context) error {
	var wait []*message
	for _, id := range d.correspondents() {
		m := d.ledger.write(d.Seed, agent.Owner, id, "drill: are you there?")
		if err := d.send(ctx, m); err != nil {
			return err
		}
		wait = append(wait, m)
	}
	for {
		if err := d.ledger.read(d.Home, agent.Owner); err != nil {
			return err
		}
		answers := d.ledger.answers(agent.Owner)
		wait = slices.DeleteFunc(wait, func(m *message) bool { return len(answers[m.id]) > 0 })
		if len(wait) == 0 {
			return nil
		}
		if proc.Sleep(ctx, 100*time.Millisecond) != nil {
			return fmt.Errorf("%s does not answer %s", wait[0].to, wait[0].id)
		}
	}
}

// places are where a mailbox holds envelopes that have come in, or could not.
var places = []bus.Place{bus.Inbox, bus.Claimed, bus.Delivered, bus.Poison, bus.Outbox}

// read reads what is new in a mailbox.
func (l *ledger) read(h home.Dir, id agent.ID) error {
	b := l.boxes[id]
	if b == nil {
		b = &box{known: make(map[string]envelope.Envelope)}
		l.boxes[id] = b
	}
	b.now = make(map[bus.Place][]string)
	for _, place := range places { // in the order in which a file moves: one that moves meanwhile is seen twice, not never
		dir := filepath.Join(h.Path(home.Mailbox(id)), string(place))
		list, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		for _, f := range list {
			name := f.Name()
			if strings.HasPrefix(name, ".") || !strings.HasSuffix(name, ".json") {
				continue
			}
			if _, ok := b.known[name]; !ok {
				data, err := os.ReadFile(filepath.Join(dir, name))
				if errors.Is(err, fs.ErrNotExist) {
					continue // it has just moved on
				}
				var e envelope.Envelope
				if err = errors.Join(err, json.Unmarshal(data, &e)); err != nil {
					if place == bus.Poison {
						b.now[place] = append(b.now[place], name)
						continue
					}
					return fmt.Errorf("%s: %w", filepath.Join(dir, name), err)
				}
				b.known[name] = e
			}
			b.now[place] = append(b.now[place], name)
		}
	}
	return nil
}

// answers returns the answers in a mailbox, by what they answer.
func (l *ledger) answers(id agent.ID) map[string][]envelope.Envelope {
	list := make(map[string][]envelope.Envelope)
	seen := make(map[string]bool)
	for _, place := range []bus.Place{bus.Inbox, bus.Claimed, bus.Delivered} {
		for _, name := range l.boxes[id].now[place] {
			e := l.boxes[id].known[name]
			if !seen[name] && (e.Kind == envelope.KindReply || e.Kind == envelope.KindError) {
				seen[name] = true
				list[e.InReplyTo] = append(list[e.InReplyTo], e)
			}
		}
	}
	return list
}
