package view_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/codex"
	"netsky/codex/appserver"
	"netsky/internal/testworld"
	"netsky/spawn/demo"
	"netsky/store"
)

// A wire is the app-server of one Codex: it answers what netsky asks, and sends what was
// recorded.
type wire struct {
	*stage
	asked chan struct{} // an approval is asked for
	known chan struct{} // closed when what came before the mark has been handled
	seen  chan struct{} // closed when the state has been reported

	mu    sync.Mutex // guards the fields below, and writing
	conn  *websocket.Conn
	input string // the message that a turn was started with
	turn  chan struct{}
}

const mark = "mark"

// Record receives netsky's records: the mark is the last thing that the app-server sends.
func (w *wire) Record(_ context.Context, ops ...store.Op) error {
	for _, r := range ops {
		if in, ok := r.(store.UpsertInput); ok && in.Message == mark {
			close(w.known)
		}
	}
	return nil
}

// codex lets a courier report the state of a Codex from whose app-server all this came.
func (s *stage) codex(ctx context.Context) {
	w := &wire{stage: s, asked: make(chan struct{}, 1), known: make(chan struct{}), seen: make(chan struct{}), turn: make(chan struct{})}
	ready := filepath.Join(s.dir(), "ready")
	program := testworld.Program(s.T, filepath.Join(s.dir(), "codex"),
		"#!/bin/sh\n[ \"$1\" = --version ] && echo codex-cli 0.169.0 && exit\n: >"+ready+"\nexec cat\n")
	s.must(os.WriteFile(filepath.Join(s.dir(), "auth.json"), []byte(`{"OPENAI_API_KEY":"sk-`+s.start+`"}`), 0o600))
	go func() { // netsky clears the socket before it starts the server
		if !testworld.Until(func() bool { _, err := os.Stat(ready); return err == nil }) {
			return
		}
		l, err := net.Listen("unix", appserver.SocketPath(s.home, s.id))
		if err != nil {
			s.Error(err)
			return
		}
		defer l.Close()
		server := &http.Server{Handler: w}
		go server.Serve(l)
		<-ctx.Done()
		server.Close()
	}()
	r, events, stop, err := codex.Resident(ctx, codex.ServeOptions{
		Agent: s.id, Start: s.start, Home: s.home, Bus: s.bus, Records: w, Program: program, Dir: s.dir(), Out: io.Discard, Headless: true,
		Env: []string{"PATH=/usr/bin:/bin", "HOME=" + s.dir(), "CODEX_HOME=" + s.dir()},
		Approve: func(ctx context.Context, _ appserver.Approval) (appserver.Decision, func(appserver.Taken)) {
			w.asked <- struct{}{}
			<-ctx.Done()
			return appserver.Leave, nil
		},
	})
	if err != nil {
		s.Errorf("%s: %v", s.o.Name, err)
		return
	}
	defer stop()
	defer close(w.seen)
	s.report(ctx, r, events, func() {
		if len(s.o.Wire) == 0 {
			return
		}
		if first := string(s.o.Wire[0]); first == `"login"` || first == `"lost"` {
			testworld.Until(func() bool { return r.State(ctx).State != agent.Starting })
			return
		}
		if !testworld.Until(func() bool { return r.State(ctx).State == agent.Idle }) {
			s.Errorf("%s: %s, want it idle", s.o.Name, r.State(ctx).State)
			return
		}
		w.play(ctx, func() bool { return r.State(ctx).State == agent.Waiting })
	})
}

// play sends what was recorded, then the mark.
func (w *wire) play(ctx context.Context, waits func() bool) {
	for _, m := range w.o.Wire {
		text := string(m)
		switch {
		case text == `"mail"`: // a message, for which netsky starts a turn
			w.must(w.bus.Make(agent.Owner))
			_, err := w.bus.Send(ctx, envelope.Envelope{From: agent.Owner, To: w.id, Text: "the task"})
			w.must(err)
			select {
			case <-w.turn:
			case <-ctx.Done():
				w.Errorf("%s: no turn was started", w.o.Name)
			}
			continue
		case strings.Contains(text, `"reset"`):
			text = strings.ReplaceAll(text, `"reset"`, fmt.Sprint(time.Now().Add(time.Hour).Unix()))
		}
		w.mu.Lock()
		text = strings.ReplaceAll(text, "$INPUT", w.input)
		err := w.conn.WriteMessage(websocket.TextMessage, []byte(text))
		w.mu.Unlock()
		w.must(err)
		if strings.Contains(text, `"id":900`) {
			<-w.asked
			testworld.Until(waits)
		}
		if strings.Contains(text, `"serverRequest/resolved"`) {
			testworld.Until(func() bool { return !waits() })
		}
	}
	w.mu.Lock()
	err := w.conn.WriteMessage(websocket.TextMessage, []byte(`{"method":"item/completed","params":{"threadId":"t","turnId":"mark","item":{"type":"userMessage","clientId":"`+mark+`"}}}`))
	w.mu.Unlock()
	w.must(err)
	select {
	case <-w.known:
	case <-ctx.Done():
		w.Errorf("%s: the events were not read", w.o.Name)
	}
}

// ServeHTTP answers what netsky asks.
func (w *wire) ServeHTTP(rw http.ResponseWriter, q *http.Request) {
	var up websocket.Upgrader
	conn, err := up.Upgrade(rw, q, nil)
	if err != nil {
		return
	}
	defer conn.Close()
	w.mu.Lock()
	w.conn = conn
	w.mu.Unlock()
	for {
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct {
				ClientUserMessageID string `json:"clientUserMessageId"`
				TurnID              string `json:"turnId"`
			}
		}
		if conn.ReadJSON(&m) != nil {
			return
		}
		answer := `{}`
		switch m.Method {
		case "initialize":
			answer = `{"userAgent":"netsky/0.169.0 (x)"}`
		case "thread/start", "thread/resume":
			answer = `{"thread":{"id":"t","status":{"type":"idle"}},"model":"gpt-6-sol"}`
		case "thread/turns/list":
			answer = `{"data":[]}`
		case "account/read":
			answer = `{"account":{"type":"apiKey"},"requiresOpenaiAuth":true}`
			if string(w.o.Wire[0]) == `"login"` {
				answer = `{"account":null,"requiresOpenaiAuth":true}`
			}
		case "turn/start":
			answer = `{"turn":{"id":"u"}}`
		}
		if m.ID == nil || m.Method == "" {
			continue
		}
		w.mu.Lock()
		conn.WriteMessage(websocket.TextMessage, fmt.Appendf(nil, `{"id":%s,"result":%s}`, m.ID, answer))
		w.mu.Unlock()
		switch m.Method {
		case "turn/start":
			w.mu.Lock()
			w.input = m.Params.ClientUserMessageID
			w.mu.Unlock()
			close(w.turn)
		case "turn/interrupt": // as netsky gives a turn up that the vendor can't serve, or ends: what was seen was before
			go func() {
				select {
				case <-w.seen:
				case <-q.Context().Done():
					return
				}
				w.mu.Lock()
				defer w.mu.Unlock()
				conn.WriteMessage(websocket.TextMessage, fmt.Appendf(nil,
					`{"method":"turn/completed","params":{"threadId":"t","turn":{"id":%q,"status":"interrupted"}}}`, m.Params.TurnID))
			}()
		}
	}
}

// demo lets a demo report its state after somebody has typed at its pane.
func (s *stage) demo(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	in, typed := io.Pipe()
	over := make(chan struct{})
	go func() {
		defer close(over)
		demo.Run(ctx, demo.Options{Home: s.home, Agent: s.id, Start: s.start, Bus: s.bus, In: in, Out: io.Discard})
	}()
	s.Cleanup(func() { cancel(); typed.Close(); <-over })
	text, mail := strings.CutPrefix(s.o.Typed, "mail:")
	if mail {
		s.must(s.bus.Make(agent.Owner))
		_, err := s.bus.Send(ctx, envelope.Envelope{From: agent.Owner, To: s.id, Text: text})
		s.must(err)
	} else {
		_, err := io.WriteString(typed, s.o.Typed+"\n")
		s.must(err)
	}
	for end := time.Now().Add(3 * time.Second); time.Now().Before(end); runtime.Gosched() {
		n, _ := s.bus.Count(agent.Owner, bus.Inbox)
		answered := n > 0 || !mail || s.o.Is != agent.Idle                                  // it is idle before it has read anything
		if r, err := s.home.LoadReport(s.id); err == nil && r.State == s.o.Is && answered { // at a wrong one, classify reports that
			return
		}
	}
}
