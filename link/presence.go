package link

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"netsky/home"
	"netsky/internal/proc"
	"netsky/link/team"
	"netsky/link/wire"
)

const (
	tellEvery = 2 * time.Second // at most, and only what has changed
	logEvery  = 5 * time.Second // the same for the log
	maxTold   = 240 << 10       // of one value; the bucket takes 256 KiB
)

// A teller keeps what this host tells of itself up to date.
type teller struct {
	*session
	state State
	last  map[string]telling // by key
	other time.Time          // when another home was last found to tell the state
}

// A telling is what was told last under a key.
type telling struct {
	sum [sha256.Size]byte
	at  time.Time
}

// tell keeps what this host tells of itself up to date.
func (s *session) tell(ctx context.Context) error {
	instance, err := team.Instance(s.Home)
	if err != nil {
		return err
	}
	t := teller{session: s, last: make(map[string]telling)}
	t.state = State{Name: s.self.Name, Instance: instance, Version: s.Version, Protocol: wire.Protocol}
	for {
		if s.nc.IsConnected() {
			err := t.tell(ctx)
			if errors.Is(err, errCopied) {
				return err
			}
			if ctx.Err() == nil {
				s.trouble("what this host tells", err)
			}
		}
		if err := proc.Sleep(ctx, proc.Tick(tellEvery)); err != nil {
			return err
		}
	}
}

func (t *teller) tell(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, ackTime)
	defer cancel()
	if t.Needs != nil {
		needs, err := t.Needs(ctx)
		if err == nil {
			err = t.put(ctx, wire.NeedsKey(t.self.Name), needs)
		}
		if err != nil {
			return err
		}
	}
	var err error
	if t.Agents != nil {
		if t.state.Agents, err = t.Agents(ctx); err != nil {
			return err
		}
	}
	data, err := json.Marshal(t.state)
	if err != nil {
		return err
	}
	if err := t.put(ctx, wire.StateKey(t.self.Name), data); err != nil {
		return err
	}
	key := wire.LogKey(t.self.Name)
	if t.Entries == nil || time.Since(t.last[key].at) < logEvery {
		return nil
	}
	if data, err = t.Entries(ctx); err != nil || data == nil {
		return err
	}
	return t.put(ctx, key, data)
}

// put tells a value if it has changed, or is due again.
func (t *teller) put(ctx context.Context, key string, data []byte) error {
	if len(data) > maxTold {
		return fmt.Errorf("%s: has %d bytes, and a host can tell %d", key, len(data), maxTold)
	}
	now := time.Now()
	next, was := telling{sha256.Sum256(data), now}, t.last[key]
	if was.sum == next.sum && now.Sub(was.at) < t.Renew {
		return nil
	}
	if key == wire.StateKey(t.self.Name) && !was.at.IsZero() {
		if err := t.alone(ctx); err != nil {
			return err
		}
	}
	if err := wire.PutState(ctx, t.js, t.key, key, idOf(key, now), data); err != nil {
		return err
	}
	t.last[key] = next
	return nil
}

// alone looks whether the state is still what this home has told: a copy of the home, which
// has the same name and key, replaces it. If both carry mail, one of them ends.
func (t *teller) alone(ctx context.Context) error {
	there, err := t.toldState(ctx)
	switch {
	case err != nil || there.Instance == "":
	case there.Instance != t.state.Instance:
		t.other = time.Now()
		t.trouble("this home", t.copied())
		if !there.Idle && t.state.Instance > there.Instance {
			return errCopied
		}
	case time.Since(t.other) > 2*t.answerTime():
		t.trouble("this home", nil)
	}
	return nil
}

// hear keeps what the other hosts tell, on a host with the role owner.
func (s *session) hear(ctx context.Context) error {
	if own, _ := s.team.Host(s.self.Name); own.Role != team.Owner {
		return nil
	}
	if err := s.forget(); err != nil {
		s.Log.Warn("link", "what hosts have told", err)
	}
	told := make(chan *nats.Msg, 4*team.MaxHosts)
	sub, err := s.nc.ChanSubscribe(wire.Told(wire.Hosts, ">"), told)
	if err != nil {
		return err
	}
	defer sub.Unsubscribe()
	again := s.nc.StatusChanged(nats.CONNECTED)
	defer s.nc.RemoveStatusListener(again)
	due, soon := time.NewTimer(0), time.NewTimer(lookEvery)
	defer due.Stop()
	defer soon.Stop()
	taken, waits := make(map[string]time.Time), make(map[string]*nats.Msg) // by key
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case m := <-told:
			// No host tells a key twice in a second; of one that does, the last counts.
			name, key := wire.StateOf(m)
			switch _, is := s.team.Host(name); {
			case !is || !slices.Contains(keysOf(name), key):
			case time.Since(taken[key]) < lookEvery:
				if len(waits) == 0 {
					soon.Reset(lookEvery)
				}
				waits[key] = m
			default:
				delete(waits, key) // it is older
				taken[key] = time.Now()
				s.take(ctx, m, true)
			}
			continue
		case <-soon.C:
			for key, m := range waits {
				taken[key] = time.Now()
				s.take(ctx, m, true)
			}
			clear(waits)
			continue
		case <-again: // what was told meanwhile is asked for
		case <-due.C:
		}
		err := s.askAll(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		s.trouble("what the hosts tell", err)
		due.Reset(s.Renew)
		if err != nil {
			due.Reset(mostWait)
		}
	}
}

// askAll takes what every host has told last.
func (s *session) askAll(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, ackTime)
	defer cancel()
	states, err := wire.States(ctx, s.js)
	if err != nil {
		return err
	}
	for _, h := range s.team.Hosts {
		for _, key := range keysOf(h.Name) {
			m, err := wire.GetState(ctx, states, key)
			switch {
			case errors.Is(err, jetstream.ErrMsgNotFound):
			case err != nil:
				return err
			default:
				s.take(ctx, m, false)
			}
		}
	}
	return nil
}

// keysOf are the keys that a host tells.
func keysOf(host string) []string {
	return []string{wire.StateKey(host), wire.NeedsKey(host), wire.LogKey(host)}
}

// take keeps what another host has told, just now or some time ago. What it has not signed
// is not shown.
func (s *session) take(ctx context.Context, m *nats.Msg, justNow bool) {
	name, key := wire.StateOf(m)
	from, is := s.team.Host(name)
	if !is || name == s.self.Name {
		return
	}
	s.trouble("what "+name+" tells", s.keepHeard(ctx, from, key, m, justNow))
}

func (s *session) keepHeard(ctx context.Context, from team.Host, key string, m *nats.Msg, justNow bool) error {
	if err := wire.VerifyState(from.Key, m); err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	file := heardFile(from.Name)
	h, err := home.Load[Host](s.Home, file)
	if err != nil {
		h = Host{} // a damaged file is written anew
	}
	id := m.Header.Get(nats.MsgIdHdr)
	if h.IDs[key] == id {
		return nil // nothing new, and no sign of life
	}
	if justNow || h.Seen.IsZero() {
		h.Behind = time.Since(toldAt(id)).Round(time.Second)
	}
	h.Name, h.Seen = from.Name, now()
	h.IDs = maps.Clone(h.IDs)
	if h.IDs == nil {
		h.IDs = make(map[string]string)
	}
	h.IDs[key] = id
	switch key {
	case wire.StateKey(from.Name):
		agents := h.State.Agents
		h.State = State{}
		if err := json.Unmarshal(m.Data, &h.State); err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		if h.State.Idle { // of a copy, which says nothing of the agents of the home that carries mail
			h.State.Agents = agents
		}
	case wire.NeedsKey(from.Name):
		if h.Needs = jsontext.Value(m.Data); !h.Needs.IsValid() {
			return fmt.Errorf("%s: is no JSON", key)
		}
	case wire.LogKey(from.Name):
		if s.TakeEntries == nil {
			return nil
		}
		if h.Last, err = s.TakeEntries(ctx, h, m.Data); err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
	default:
		return nil // a later netsky's
	}
	return s.Home.Save(file, h, false)
}

// idOf is the id of what is told at a time, by the teller's clock; toldAt returns that.
func idOf(key string, at time.Time) string { return fmt.Sprintf("%s %d", key, at.UnixNano()) }

func toldAt(id string) time.Time {
	_, at, _ := strings.Cut(id, " ")
	ns, err := strconv.ParseInt(at, 10, 64)
	if err != nil {
		return time.Now()
	}
	return time.Unix(0, ns)
}

// forget removes what hosts have told that are in the team no more.
func (s *session) forget() error {
	dir, err := s.Home.OpenDir(Heard, false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(0)
	for _, name := range names {
		host, _ := strings.CutSuffix(name, ".json")
		if _, is := s.team.Host(host); !is {
			err = errors.Join(err, s.Home.Remove(Heard+"/"+name))
		}
	}
	return err
}
