package fleet

import (
	"cmp"
	"context"
	"errors"
	"io"
	"reflect"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/fleet/plan"
	"netsky/internal/advice"
	"netsky/work/land"
)

// An Event is one line of the answer to a deed that is asked for over the control socket.
type Event struct {
	Step *Progress `json:"step,omitempty"`
	Warn *Failure  `json:"warn,omitempty"`
	// Ask is a question. The next line of the request's body answers it, as {"answer": "y"}; a body that
	// has ended answers none, and what depends on the answer is refused.
	Ask  string `json:"ask,omitempty"`
	Done *Done  `json:"done,omitempty"` // the last line
}

// A Failure says what went wrong, and what to do next.
type Failure struct {
	Error  string `json:"error"`
	Advice string `json:"advice,omitempty"`
}

// Done is how a deed ended.
type Done struct {
	Result any      `json:"result,omitempty"`
	Failed *Failure `json:"failed,omitempty"`
	Status int      `json:"status"` // the exit status of the verb: 0 done, 1 failed, 2 not allowed or wrong, 3 partly
}

// Progress is a step of a deed.
type Progress struct {
	Agent agent.ID    `json:"agent,omitempty"`
	Step  string      `json:"step,omitempty"`
	State agent.State `json:"state,omitempty"`
	Note  string      `json:"note,omitempty"`
	Error string      `json:"error,omitempty"`
	Line  string      `json:"line,omitempty"` // the step in words
	Data  []byte      `json:"data,omitempty"` // a part of what the deed brings, in base64
}

func progress(s Step) Progress {
	p := Progress{Agent: s.Agent, Step: string(s.Step), State: s.State, Note: s.Note, Line: s.Line, Data: s.Data}
	err := s.Err
	switch d := s.Down; {
	case s.Landed != nil:
		p.Agent, p.Step, p.Line, err = s.Landed.Agent, s.Landed.Landing.State, land.Says(s.Landed.Landing.Landing), s.Landed.Err
	case s.Output != "":
		p.Line = s.Output
	case d != nil:
		p.Agent, p.Step, p.Line, err = d.Agent, string(d.Step), DownLine(*d), d.Err
	case s.Daemon != nil:
		p.Step, err = "daemon", s.Daemon.Err
		p.Note = string(s.Daemon.Started)
	}
	if err != nil {
		p.Error = err.Error()
	}
	return p
}

// Status returns the exit status that stands for an error.
func Status(err error) int {
	var wish *plan.UsageError
	var some *PartlyError
	var ids *bus.AmbiguousError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &wish), errors.As(err, &ids), errors.Is(err, agent.ErrName), errors.Is(err, envelope.ErrInvalid), errors.Is(err, bus.ErrNotAllowed):
		return 2
	case errors.As(err, &some), errors.Is(err, land.ErrNotYet):
		return 3
	}
	return 1
}

// failed returns the error of which a daemon has told, with its exit status.
func failed(w *Failure, status int) error {
	err := advice.With(errors.New(w.Error), "%s", w.Advice)
	switch status {
	case 2:
		return &plan.UsageError{Err: err}
	case 3:
		return partly(err)
	}
	return err
}

// wire is how requests are read and events are written: durations as "1h30m", agents by any of their names. With
// wireAt, these may be on other hosts.
var (
	wire   = wireOf(agent.ParseAgent)
	wireAt = wireOf(agent.ParseAgentAddress)
)

func wireOf(parse func(string) (agent.ID, error)) json.Options {
	return json.JoinOptions(
		json.RejectUnknownMembers(true),
		json.WithMarshalers(json.MarshalToFunc(func(e *jsontext.Encoder, d time.Duration) error { return e.WriteToken(jsontext.String(d.String())) })),
		json.WithUnmarshalers(json.JoinUnmarshalers(
			json.UnmarshalFunc(func(data []byte, d *time.Duration) (err error) {
				var text string
				if err = json.Unmarshal(data, &text); err == nil {
					*d, err = time.ParseDuration(text)
				}
				return err
			}),
			json.UnmarshalFunc(func(data []byte, id *agent.ID) (err error) {
				var text string
				if err = json.Unmarshal(data, &text); err == nil && text != "" {
					*id, err = parse(text)
				}
				return err
			}),
		)),
	)
}

// A caller is the UI of one request: its events, and the answers in its body.
type caller struct {
	ctx     context.Context
	cancel  context.CancelFunc // ends the deed
	answers <-chan string      // closed when the body has ended

	mu  sync.Mutex // guards the fields below
	out *jsontext.Encoder
	err error // of a write, or the deed is over
}

func (c *caller) say(e Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		if c.err = json.MarshalEncode(c.out, e, wire); c.err != nil {
			c.cancel() // as when the connection is closed
		}
	}
	if e.Done != nil {
		c.err = cmp.Or(c.err, io.ErrClosedPipe) // what is said later has nowhere to go
	}
}

// done says how the deed ended.
func (c *caller) done(v any, err error) {
	if err != nil && v != nil && reflect.ValueOf(v).IsZero() { // nothing was done
		v = nil
	}
	c.say(Event{Done: &Done{Result: v, Failed: failure(err), Status: Status(err)}})
}

// Ask puts the question to whoever asked for the deed.
func (c *caller) Ask(question string) (string, error) {
	c.say(Event{Ask: question})
	select {
	case answer, ok := <-c.answers:
		if !ok {
			return "", ErrNobody
		}
		return answer, nil
	case <-c.ctx.Done():
		return "", c.ctx.Err()
	}
}

// Step reports progress.
func (c *caller) Step(s Step) {
	p := progress(s)
	c.say(Event{Step: &p})
}

// Warn reports what does not stop the deed.
func (c *caller) Warn(err error) { c.say(Event{Warn: failure(err)}) }

func failure(err error) *Failure {
	if err == nil {
		return nil
	}
	return &Failure{err.Error(), advice.Of(err)}
}
