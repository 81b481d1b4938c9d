package view_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"netsky/agent"
	"netsky/bus/courier"
	"netsky/claude"
	"netsky/cost/breaker"
	"netsky/home"
	"netsky/internal/proc"
	"netsky/internal/testworld"
)

// A still is a pane that shows one screen.
type still string

func (p still) Screen(context.Context) (string, error) { return string(p), nil }
func (p still) Keys(context.Context, ...string) error  { return nil }
func (p still) Paste(context.Context, string) error    { return nil }

// claude lets a courier report the state of a Claude Code that shows all this.
func (s *stage) claude(ctx context.Context) {
	o, self := s.o, proc.Self()
	entry := ""
	switch r := string(o.Registry); r {
	case "", `"none"`:
	case `"torn"`:
		entry = fmt.Sprintf(`{"pid":%d,"procSt`, self.PID)
	case `"foreign"`:
		entry = fmt.Sprintf(`{"pid":%d,"procStart":"1","sessionId":"s","status":"idle"}`, self.PID)
	default:
		fields := s.json(json.RawMessage(fmt.Sprintf(`{"pid":%d,"procStart":"%d","sessionId":"s","cwd":"/srv/dev/w","version":"2.1.329",%s`,
			self.PID, self.Start, strings.TrimPrefix(r, "{"))))
		entry = string(fields)
	}
	if entry != "" {
		sessions := filepath.Join(s.dir(), "sessions")
		s.must(os.MkdirAll(sessions, 0o700))
		s.must(os.WriteFile(filepath.Join(sessions, strconv.Itoa(self.PID)+".json"), []byte(entry), 0o600))
	}
	transcript := filepath.Join(s.dir(), "conversation.jsonl")
	if o.Transcript != nil {
		s.must(os.WriteFile(transcript, []byte(strings.Join(o.Transcript, "\n")+"\n"), 0o600))
	}
	if o.Events != nil {
		var list []agent.Event
		s.must(json.Unmarshal(s.json(o.Events), &list))
		for _, e := range list {
			if o.Transcript != nil {
				e.Transcript = transcript
			}
			s.must(home.Events(s.home).Append(s.id, e))
		}
	}
	if o.Torn != "" {
		f, err := s.home.OpenAppend(home.EventsDir + "/" + string(s.id) + ".jsonl")
		s.must(err)
		_, err = f.WriteString(o.Torn)
		s.must(err)
		f.Close()
	}
	session := &claude.Session{Home: s.home, Agent: s.id, Start: s.start, PID: self.PID, ConfigDir: s.dir(), Pane: still(s.screen())}
	defer session.Close()
	if o.Breaker != nil {
		var f agent.Fault
		s.must(json.Unmarshal(s.json(o.Breaker), &f))
		name, _ := session.Account()
		_, _, err := breaker.Of(s.home, name).Trip(ctx, "agent9999", f)
		s.must(err)
	}
	if o.group != "claude-faults" && o.Breaker == nil {
		// A courier adds what it knows of the account, which is nothing. It would take the
		// kernel 10 ms for each, to end its watches.
		r := session.State(ctx)
		r.Start, r.SinceMS = s.start, time.Now().UnixMilli()
		s.must(s.home.SaveReport(s.id, r))
		return
	}
	events, err := courier.Events(ctx, s.home, s.bus, s.id)
	if err != nil {
		s.Error(err)
		return
	}
	defer events.Close()
	s.report(ctx, session.Courier(), events)
}

// report lets a courier report the program's state.
func (s *stage) report(ctx context.Context, r courier.Runtime, events courier.Source, before ...func()) {
	ctx, cancel := context.WithCancel(ctx)
	mail := courier.New(courier.Options{Agent: s.id, Start: s.start, Home: s.home, Bus: s.bus, Runtime: r, Events: events})
	over := make(chan struct{})
	go func() {
		defer close(over)
		mail.Run(ctx)
	}()
	defer func() { cancel(); <-over }()
	for _, f := range before {
		f()
	}
	testworld.Until(func() bool {
		if !mail.Look(ctx) {
			s.Errorf("%s, %s: nobody reports its state", s.o.group, s.o.Name)
			return true
		}
		// A turn's failure reaches the breaker a moment later.
		r, err := s.home.LoadReport(s.id)
		return s.o.Is != agent.Blocked || s.o.Unknown != "" || err != nil || r.State == agent.Blocked
	})
}
