package dashboard

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"sync"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/dashboard/access"
	"netsky/store"
)

// A Said is the answer to POST /api/user-message: the message's id, and the page with
// its timeline.
type Said struct {
	ID    string   `json:"id"`
	To    agent.ID `json:"to"`
	State string   `json:"state"` // "queued"
	URL   string   `json:"url"`
}

// say sends the owner's message. A message sent twice with the same id of the caller's
// is delivered once.
func (s *Server) say(w http.ResponseWriter, r *http.Request) {
	status, e, err := s.readMessage(r)
	if err != nil {
		access.Refuse(w, r, status, err.Error())
		return
	}
	id, err := s.post(r.Context(), e)
	if err != nil {
		status, detail := notSent(e.To, err)
		if status == http.StatusInternalServerError {
			s.o.Log.Warn("say", "error", err)
		}
		access.Refuse(w, r, status, detail)
		return
	}
	url := "/api/messages/" + id
	w.Header().Set("Location", url)
	access.JSON(w, r, http.StatusAccepted, Said{ID: id, To: e.To, State: "queued", URL: url})
}

// post sends the message and returns its id.
func (s *Server) post(ctx context.Context, e envelope.Envelope) (string, error) {
	return s.sent.once(e, func() (string, error) {
		if said, err := s.recorded(ctx, e); said || err != nil {
			return e.ID, err
		}
		receipt, err := s.o.Bus.Send(ctx, e)
		if err == nil {
			s.o.Log.Info("say", "id", receipt.ID, "to", e.To)
		}
		return receipt.ID, err
	})
}

// recorded reports whether the message is recorded already, sent through an earlier
// server of this home. If the records are unavailable it reports false; the bus drops a
// second copy.
func (s *Server) recorded(ctx context.Context, e envelope.Envelope) (bool, error) {
	db, err := s.records()
	if err != nil || e.ID == "" {
		return false, nil
	}
	l, err := db.Messages(ctx, store.MessageFilter{ID: e.ID, From: e.From, Page: store.Page{Limit: 1}})
	if err != nil || len(l.Items) == 0 {
		return false, nil
	}
	if m := l.Items[0]; m.To != e.To || m.Text != e.Text {
		return false, errReused
	}
	return true, nil
}

// notSent returns the answer for a message that could not be sent.
func notSent(to agent.ID, err error) (status int, detail string) {
	switch {
	case errors.Is(err, errReused):
		status = http.StatusConflict
	case errors.Is(err, envelope.ErrInvalid), errors.Is(err, bus.ErrNotAllowed):
		status = http.StatusBadRequest
	case errors.Is(err, bus.ErrNoMailbox):
		return http.StatusNotFound, "not sent: " + string(to) + " has never been started; `netsky up` starts agents"
	case errors.Is(err, bus.ErrBrake):
		status = http.StatusTooManyRequests
	default:
		return http.StatusInternalServerError, "possibly not sent: " + err.Error()
	}
	return status, "not sent: " + err.Error()
}

// readMessage returns the message in a request, or the status of the refusal.
func (s *Server) readMessage(r *http.Request) (int, envelope.Envelope, error) {
	data, status, err := jsonBody(r)
	if err != nil {
		return status, envelope.Envelope{}, err
	}
	f, err := access.Fields(data, "to", "text", "id", "in_reply_to")
	if err != nil {
		return http.StatusBadRequest, envelope.Envelope{}, err
	}
	return s.ownersMessage(r.Context(), said{f["id"], f["to"], f["text"], f["in_reply_to"]})
}

// jsonBody returns the body of a request in JSON, or the status of the refusal.
func jsonBody(r *http.Request) ([]byte, int, error) {
	kind, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if charset := params["charset"]; err != nil || kind != "application/json" || charset != "" && charset != "utf-8" && charset != "UTF-8" {
		return nil, http.StatusUnsupportedMediaType, errors.New("the body must be application/json")
	}
	data, err := io.ReadAll(r.Body)
	if tooLarge := new(http.MaxBytesError); errors.As(err, &tooLarge) {
		return nil, http.StatusRequestEntityTooLarge, errors.New("the body is larger than 65536 bytes")
	}
	if err != nil {
		return nil, http.StatusBadRequest, errors.New("the body is incomplete")
	}
	return data, 0, nil
}

// said is the owner's message as submitted.
type said struct{ id, to, text, inReplyTo string }

// ownersMessage makes the envelope for an agent, or returns the status of the refusal.
// As with `netsky reply`, answering an agent's message sends a reply, and answering its
// reply the next message of that thread: agents don't answer replies.
func (s *Server) ownersMessage(ctx context.Context, m said) (int, envelope.Envelope, error) {
	e := envelope.Envelope{ID: m.id, From: agent.Owner, Text: m.text, Via: "web", InReplyTo: m.inReplyTo}
	var err error
	if e.To, err = agent.ParseAddress(m.to); err != nil || !e.To.IsAgent() {
		return http.StatusBadRequest, e, errors.New("to: " + access.Quote(m.to) + " is not an agent")
	}
	if strings.TrimSpace(m.text) == "" {
		return http.StatusBadRequest, e, errors.New("text: empty")
	}
	if m.inReplyTo == "" {
		return 0, e, nil
	}
	db, err := s.records()
	if err != nil {
		return http.StatusServiceUnavailable, e, fmt.Errorf("not sent: %w", err)
	}
	l, err := db.Messages(ctx, store.MessageFilter{ID: m.inReplyTo, From: e.To, To: agent.Owner, Page: store.Page{Limit: 1}})
	if err != nil {
		return http.StatusServiceUnavailable, e, fmt.Errorf("not sent: %w", err)
	}
	if len(l.Items) == 0 {
		return http.StatusBadRequest, e, fmt.Errorf("in_reply_to: %s sent you no message %s", e.To, access.Quote(m.inReplyTo))
	}
	q := l.Items[0]
	e.Thread = q.Thread
	if envelope.Kind(q.Kind).Answerable() {
		e.Kind, e.Hops = envelope.KindReply, q.Hops+1
	}
	return 0, e, nil
}

// errReused reports an id that another message had.
var errReused = errors.New("id: already used by another message")

// maxSent is how many ids are remembered.
const maxSent = 1024

// sent remembers the last messages that had an id of their caller's, so that a second
// request with the same id sends nothing.
type sent struct {
	now   func() time.Time
	mu    sync.Mutex // guards the fields below
	ids   []string   // oldest first
	known map[string]*saying
}

type saying struct {
	mu   sync.Mutex // held while it is being sent
	done bool
	to   agent.ID
	text string
	at   time.Time
}

func newSent(now func() time.Time) *sent { return &sent{now: now, known: map[string]*saying{}} }

// once sends the message, unless it has been sent. Concurrent requests with one id wait
// for each other. A failed one may be tried again.
func (s *sent) once(e envelope.Envelope, send func() (string, error)) (string, error) {
	if e.ID == "" {
		return send()
	}
	one := s.saying(e.ID)
	one.mu.Lock()
	defer one.mu.Unlock()
	if one.done {
		if one.to != e.To || one.text != e.Text {
			return e.ID, errReused
		}
		return e.ID, nil
	}
	id, err := send()
	if err == nil {
		one.done, one.to, one.text, one.at = true, e.To, e.Text, s.now()
	}
	return id, err
}

func (s *sent) saying(id string) *saying {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.known[id]
	if one == nil {
		if len(s.ids) == maxSent {
			delete(s.known, s.ids[0])
			s.ids = s.ids[1:]
		}
		one = &saying{}
		s.ids, s.known[id] = append(s.ids, id), one
	}
	return one
}

// last returns the message with an id that was sent last, or its zero value.
func (s *sent) last() store.Message {
	s.mu.Lock()
	id := ""
	if n := len(s.ids); n > 0 {
		id = s.ids[n-1]
	}
	s.mu.Unlock()
	m, _ := s.find(id)
	return m
}

// find returns the message with that id, if it was sent and is remembered.
func (s *sent) find(id string) (store.Message, bool) {
	s.mu.Lock()
	one := s.known[id]
	s.mu.Unlock()
	if one == nil {
		return store.Message{}, false
	}
	one.mu.Lock()
	defer one.mu.Unlock()
	return store.Message{ID: id, From: agent.Owner, To: one.to, Text: one.text, Via: "web", Time: store.At(one.at)}, one.done
}

// unrecorded returns the owner's last messages that have been sent and are not recorded
// yet.
func (s *sent) unrecorded(known []letter) []letter {
	last := s.last()
	if last.ID == "" {
		return nil
	}
	for _, l := range known {
		if l.ID == last.ID {
			return nil
		}
	}
	if len(known) > 0 && known[0].Time > last.Time {
		return nil // it was recorded, and newer ones followed
	}
	return []letter{{Message: last, State: store.Queued}}
}
