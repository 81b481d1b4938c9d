package daemon

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"netsky/agent"
	"netsky/dashboard/live"
	"netsky/home"
	"netsky/spawn"
	"netsky/tmux"
)

// screens shows the agents' panes to the dashboard through the hub's control client: a
// window is linked there while a browser looks at it.
type screens struct {
	tmux *tmux.Server
	home home.Dir
	log  func(what string, err error)

	mu     sync.Mutex // guards the fields below; held while windows are linked
	client *tmux.Client
	panes  map[agent.ID]tmux.Pane
	asked  time.Time             // when panes were last listed
	looks  map[agent.ID]*watched // panes that somebody looks at
	growth int                   // of the heap, as last set

	// Output is noticed even while mu is held and a tmux answer is awaited.
	hear  sync.Mutex        // guards heard
	heard map[string][]*eye // by pane
}

// A watched pane is a pane that browsers look at.
type watched struct {
	pane tmux.Pane
	eyes []*eye
}

// An eye is one call of Watch.
type eye struct {
	stirred func()
	gone    chan struct{}
}

var errNoHub = errors.New("tmux is not being watched at the moment")

// listAgain is how old a list of panes that lacks an agent may be.
const listAgain = time.Second

// attached sets the client to use; detach removes it when it has ended, and every watch
// must then start again.
func (s *screens) attached(c *tmux.Client) (detach func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.client, s.panes = c, nil
	c.Hear(s.stirred)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.client, s.panes = nil, nil
		for id := range s.looks {
			s.drop(id)
		}
	}
}

// drop ends all watches of an agent. The caller holds mu.
func (s *screens) drop(id agent.ID) {
	w := s.looks[id]
	for _, e := range w.eyes {
		close(e.gone)
	}
	w.eyes = nil
	s.listen(w)
	delete(s.looks, id)
	s.collect()
}

// collect sets how eagerly memory is collected when the first browser starts to look, or
// the last one stops. The caller holds mu.
func (s *screens) collect() {
	growth := heapGrowth
	if len(s.looks) > 0 {
		growth = heapLooking
	}
	if growth != s.growth {
		s.growth = growth
		debug.SetGCPercent(growth)
	}
}

// listen registers the watch's eyes, and no others, for output of its pane. The caller
// holds mu.
func (s *screens) listen(w *watched) {
	s.hear.Lock()
	defer s.hear.Unlock()
	if s.heard == nil {
		s.heard = make(map[string][]*eye)
	}
	if s.heard[w.pane.ID] = slices.Clone(w.eyes); len(w.eyes) == 0 {
		delete(s.heard, w.pane.ID)
	}
}

// stirred notifies those who look at a pane that it has output.
func (s *screens) stirred(pane []byte) {
	s.hear.Lock()
	eyes := s.heard[string(pane)]
	s.hear.Unlock()
	for _, e := range eyes {
		e.stirred()
	}
}

// changed handles sessions that started or ended: a window that only the hub still has is
// closed, and the list of panes may be stale.
func (s *screens) changed(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.panes = nil
	if s.client == nil || len(s.looks) == 0 {
		return
	}
	if _, err := s.client.Orphans(ctx); err != nil {
		s.log("windows of ended sessions", err)
	}
	for id, w := range s.looks {
		if now, err := s.find(ctx, id); err != nil || now.ID != w.pane.ID {
			s.drop(id)
			if err := s.client.Unfollow(ctx, w.pane.Window); err != nil {
				s.log("look away from "+string(id), err)
			}
		}
	}
}

// find returns the agent's pane. The caller holds mu.
func (s *screens) find(ctx context.Context, id agent.ID) (tmux.Pane, error) {
	if p, ok := s.panes[id]; ok {
		return p, nil
	}
	if s.panes == nil || time.Since(s.asked) > listAgain {
		list, err := s.tmux.Panes(ctx)
		if err != nil {
			return tmux.Pane{}, err
		}
		s.asked, s.panes = time.Now(), make(map[agent.ID]tmux.Pane)
		for _, p := range list {
			other, err := agent.Parse(p.Session)
			if err != nil || !other.IsAgent() || p.Tags[spawn.TagHome] != s.home.Root() {
				continue
			}
			// In a window that a person has split, the keeper's pane is the oldest.
			if have, ok := s.panes[other]; !ok || older(p.ID, have.ID) {
				s.panes[other] = p
			}
		}
	}
	p, ok := s.panes[id]
	if !ok {
		return tmux.Pane{}, fmt.Errorf("%s: no pane", id)
	}
	return p, nil
}

// older compares two pane ids, such as "%9" and "%10".
func older(a, b string) bool { return len(a) < len(b) || len(a) == len(b) && a < b }

// Screen returns the agent's pane as it is now.
func (s *screens) Screen(ctx context.Context, id agent.ID, history int) (live.Screen, error) {
	shot := s.shots(ctx, []agent.ID{id}, history)[0]
	return shot.Screen, shot.Err
}

// Screens returns several panes as they are now.
func (s *screens) Screens(ctx context.Context, ids []agent.ID) []live.Shot {
	return s.shots(ctx, ids, 0)
}

func (s *screens) shots(ctx context.Context, ids []agent.ID, history int) []live.Shot {
	list := make([]live.Shot, len(ids))
	panes, at := make([]string, 0, len(ids)), make([]int, 0, len(ids)) // those that are there, and where in list each belongs
	s.mu.Lock()
	c := s.client
	for i, id := range ids {
		p, err := s.find(ctx, id)
		if err == nil && c == nil {
			err = errNoHub
		}
		if list[i].Err = err; err == nil {
			panes, at = append(panes, p.ID), append(at, i)
		}
	}
	s.mu.Unlock()
	if len(panes) == 0 {
		return list
	}
	for n, sc := range c.Screens(ctx, panes, history) {
		i := at[n]
		if list[i].Err = sc.Err; errors.Is(sc.Err, tmux.ErrNotFound) {
			s.mu.Lock()
			delete(s.panes, ids[i])
			s.mu.Unlock()
		}
		list[i].Screen = live.Screen{
			Text: sc.Text, History: sc.History, Width: sc.Width, Height: sc.Height, CursorX: sc.Column, CursorY: sc.Row,
		}
		if !sc.Cursor {
			list[i].CursorY = -1
		}
	}
	return list
}

// Watch calls stirred whenever the pane may look different, until ctx ends.
func (s *screens) Watch(ctx context.Context, id agent.ID, stirred func()) (gone <-chan struct{}, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := ctx.Err(); err != nil { // ended while others were served
		return nil, err
	}
	if s.client == nil {
		return nil, errNoHub
	}
	p, err := s.find(ctx, id)
	if err != nil {
		return nil, err
	}
	w := s.looks[id]
	if w == nil {
		if err := s.client.Follow(ctx, p.Window); err != nil {
			return nil, err
		}
		w = &watched{pane: p}
		if s.looks == nil {
			s.looks = make(map[agent.ID]*watched)
		}
		s.looks[id] = w
		s.collect()
	}
	e := &eye{stirred: stirred, gone: make(chan struct{})}
	w.eyes = append(w.eyes, e)
	s.listen(w)
	context.AfterFunc(ctx, func() { s.leave(id, e) }) // at once, if ctx ended while the window was linked
	return e.gone, nil
}

// leave ends one watch; the last one of a pane unlinks its window.
func (s *screens) leave(id agent.ID, e *eye) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.looks[id]
	if w == nil {
		return
	}
	i := slices.Index(w.eyes, e)
	if i < 0 {
		return
	}
	w.eyes = slices.Delete(w.eyes, i, i+1)
	s.listen(w)
	close(e.gone)
	if len(w.eyes) > 0 {
		return
	}
	delete(s.looks, id)
	s.collect()
	if s.client == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), HungAfter)
	defer cancel()
	if err := s.client.Unfollow(ctx, w.pane.Window); err != nil && !errors.Is(err, tmux.ErrClosed) {
		s.log("look away from "+string(id), err)
	}
}
