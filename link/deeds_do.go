package link

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/nats-io/nats.go"

	"netsky/link/team"
	"netsky/link/wire"
)

// A doer does what other hosts ask for, while there is a session.
type doer struct {
	*session
	ctx     context.Context
	running sync.WaitGroup

	mu     sync.Mutex           // guards the fields below
	jobs   map[string]*job      // by number
	doing  map[string]int       // deeds that run, by the host that asked
	told   map[string]bool      // refusals that were logged
	looked map[string]time.Time // when each host has last asked for a screen
	closed bool                 // nothing more begins
}

// following is how soon after a look at a screen the next one is part of the same, of which one is logged.
const following = time.Minute

// close ends all, and returns when it has ended.
func (w *doer) close() {
	w.mu.Lock()
	w.closed = true
	for number := range w.jobs {
		w.forget(number)
	}
	w.mu.Unlock()
	w.running.Wait()
}

// A job is one number that was handed out, and the deed that was asked for with it.
type job struct {
	from   string
	issued time.Time
	end    context.CancelFunc // nil: no deed has come
	idle   *time.Timer        // ends and forgets it
	spool  *spool
}

// take takes one message. What no host of the team has signed gets no answer.
func (w *doer) take(m *nats.Msg) {
	from := m.Subject[strings.LastIndexByte(m.Subject, '.')+1:]
	h, ok := w.team.Host(from)
	var err error
	if !ok {
		err = errors.New("is no host of the team")
	} else if !team.IsInbox(m.Reply) { // which is not signed
		err = errors.New("the answer would not go to a host")
	} else {
		err = wire.Verify(h.Key, m)
	}
	if newer, ok := errors.AsType[wire.NewerError](err); ok {
		w.answer(m, from, answer{Refused: newer.Error()})
		return
	}
	var a ask
	if err == nil {
		err = json.Unmarshal(m.Data, &a)
	}
	if err != nil {
		w.refused(from, err.Error())
		return
	}
	switch {
	case h.Role != team.Owner:
		why := fmt.Sprintf("%s has the role %s, and only hosts with the role %s may ask for deeds", from, h.Role, team.Owner)
		w.refused(from, why)
		w.answer(m, from, answer{Refused: why})
	case a.Op == opHello:
		w.answer(m, from, w.number(from))
	case a.Op == opDo:
		w.answer(m, from, w.begin(from, a))
	case a.Op == opNext:
		w.next(m, from, a)
	case a.Op == opEnd:
		w.mu.Lock()
		if j := w.jobs[a.Number]; j != nil && j.from == from {
			w.forget(a.Number)
		}
		w.mu.Unlock()
		w.answer(m, from, answer{})
	default:
		w.answer(m, from, answer{Refused: "this netsky does not know what is asked; update it"})
	}
}

// refused logs a refusal, once.
func (w *doer) refused(from, why string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if key := from + why; !w.told[key] && len(w.told) < 100 {
		w.told[key] = true
		w.Log.Warn("link", "refused a deed for", from, "why", why)
	}
}

// answer replies to a message.
func (w *doer) answer(m *nats.Msg, to string, v answer) {
	body, err := json.Marshal(v)
	reply := &nats.Msg{Subject: answerSubject(w.self.Name, to), Data: body}
	if err == nil {
		err = wire.Sign(w.key, reply, m.Header.Get(nats.MsgIdHdr))
	}
	if err == nil {
		err = m.RespondMsg(reply)
	}
	if err != nil {
		w.Log.Info("link", "no answer to", to, "error", err)
	}
}

// number hands out a number, which is good for one deed. Of too many, the oldest without a
// deed is forgotten, or else the oldest of one that has ended.
func (w *doer) number(from string) answer {
	w.mu.Lock()
	defer w.mu.Unlock()
	n, oldest := 0, ""
	for number, j := range w.jobs {
		if j.from == from {
			n++
			if old := w.jobs[oldest]; (j.end == nil || j.spool.over()) && (old == nil || j.before(old)) {
				oldest = number
			}
		}
	}
	if n >= maxJobs { // maxDoing of them are running
		w.forget(oldest)
	}
	number := rand.Text()
	w.jobs[number] = &job{from: from, issued: w.Deeds.clock(), spool: newSpool(), idle: time.AfterFunc(w.Deeds.waits()*3/2, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.forget(number)
	})}
	return answer{Number: number}
}

// before reports whether a job is forgotten before another one.
func (j *job) before(k *job) bool {
	if (j.end == nil) != (k.end == nil) {
		return j.end == nil
	}
	return j.issued.Before(k.issued)
}

// forget ends a job. w.mu is held.
func (w *doer) forget(number string) {
	if j := w.jobs[number]; j != nil {
		j.idle.Stop()
		if j.end != nil {
			j.end()
		}
		delete(w.jobs, number)
	}
}

// age is how long ago a number was handed out: by the clock that nobody sets, and by the
// other, which goes on while the machine sleeps.
func (w *doer) age(j *job) time.Duration {
	now := w.Deeds.clock()
	return max(now.Sub(j.issued), now.Round(0).Sub(j.issued.Round(0)))
}

// begin begins a deed, once.
func (w *doer) begin(from string, a ask) answer {
	w.mu.Lock()
	defer w.mu.Unlock()
	j := w.jobs[a.Number]
	switch {
	case j == nil || j.from != from:
		return answer{Refused: "it did not hand out that number, or not any more: the request is an old one"}
	case j.end != nil:
		return answer{}
	}
	age, limit := w.age(j), freshFor
	if within := time.Duration(a.WithinMS) * time.Millisecond; a.WithinMS > 0 {
		limit = min(limit, within)
	}
	why := ""
	switch {
	case age > limit:
		why = fmt.Sprintf("the request took %v to arrive, and counts for %v", age.Round(time.Millisecond), limit)
	case w.doing[from] >= maxDoing:
		why = fmt.Sprintf("it is doing %d deeds for %s, which is the most at a time", maxDoing, from)
	case w.Deeds.Do == nil:
		why = "it does no deeds for other hosts"
	case w.closed:
		why = "its link is ending"
	}
	if why != "" {
		w.forget(a.Number)
		w.Log.Info("link", "refused a deed for", from, "deed", a.Deed, "why", why)
		return answer{Refused: why}
	}
	ctx, end := context.WithCancel(w.ctx)
	if a.WithinMS > 0 {
		ctx, end = context.WithTimeout(w.ctx, time.Duration(a.WithinMS)*time.Millisecond-age)
	}
	j.end = end
	w.doing[from]++
	follows := a.Deed == "peek" && w.Deeds.clock().Sub(w.looked[from]) < following
	if a.Deed == "peek" {
		w.looked[from] = w.Deeds.clock()
	}
	if !follows {
		w.Log.Info("link", "deed", a.Deed, "for", from)
	}
	w.running.Go(func() {
		defer func() {
			cut := w.ctx.Err() != nil // the link ends here, and with it the deed
			end()
			j.spool.finish(cut)
			w.mu.Lock()
			w.doing[from]--
			w.mu.Unlock()
		}()
		w.Deeds.Do(ctx, from, a.Deed, a.Request, speaker{ctx, j.spool})
	})
	return answer{}
}

// next answers with what a deed says next, once it does.
func (w *doer) next(m *nats.Msg, from string, a ask) {
	w.mu.Lock()
	defer w.mu.Unlock()
	j := w.jobs[a.Number]
	switch {
	case w.closed, j == nil, j.from != from:
		w.answer(m, from, answer{Lost: true})
		return
	case j.end == nil: // its request comes too late from now on
		w.forget(a.Number)
		w.answer(m, from, answer{Refused: "the request has not arrived"})
		return
	}
	j.idle.Reset(w.Deeds.waits() * 3 / 2)
	w.running.Go(func() {
		ctx, cancel := context.WithTimeout(w.ctx, pollFor)
		defer cancel()
		w.answer(m, from, j.spool.from(ctx, a.At))
	})
}

// A spool keeps what a deed says until whoever asked for it has it.
type spool struct {
	mu      sync.Mutex    // guards the fields below
	start   int64         // of data, in all that was said
	data    []byte        // that is not known to have arrived
	ended   bool          // nothing follows
	cut     bool          // what was said is not all
	asked   int           // calls of from
	changed chan struct{} // closed when any of these change
}

func newSpool() *spool { return &spool{changed: make(chan struct{})} }

// touch wakes who waits. s.mu is held.
func (s *spool) touch() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// wait waits for a change. s.mu is held, and is free meanwhile.
func (s *spool) wait(ctx context.Context) {
	changed := s.changed
	s.mu.Unlock()
	defer s.mu.Lock()
	select {
	case <-changed:
	case <-ctx.Done():
	}
}

func (s *spool) over() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ended
}

func (s *spool) finish(cut bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended, s.cut = true, cut
	s.touch()
}

// from returns what was said behind the first bytes, or that nothing follows. It ends an
// earlier call.
func (s *spool) from(ctx context.Context, at int64) (v answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at < s.start || at > s.start+int64(len(s.data)) {
		return answer{Lost: true}
	}
	s.data, s.start = s.data[at-s.start:], at
	s.asked++
	s.touch()
	for me := s.asked; len(s.data) == 0 && !s.ended && ctx.Err() == nil && s.asked == me; {
		s.wait(ctx)
	}
	if s.start == at {
		v.Said = append(v.Said, s.data[:min(len(s.data), maxPart)]...)
		if v.End = s.ended && len(v.Said) == len(s.data); v.End && s.cut {
			v.End, v.Lost = false, true
		}
	}
	return v
}

// A speaker is what a deed says it to, until ctx ends.
type speaker struct {
	ctx context.Context
	*spool
}

// Write waits while too much has not arrived.
func (s speaker) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.data) > maxUnread && s.ctx.Err() == nil {
		s.wait(s.ctx)
	}
	if len(s.data) > maxUnread || s.ended {
		return 0, io.ErrClosedPipe
	}
	s.data = append(s.data, p...)
	s.touch()
	return len(p), nil
}
