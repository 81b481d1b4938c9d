package courier

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"netsky/agent"
	"netsky/bus/envelope"
	"netsky/store"
)

// records are what a courier has put on record: its turns and what went wrong. What the
// database does not accept waits in the spool; others report that. Its methods may be called
// from any goroutine.
type records struct {
	o       *Options
	runtime string          // the name of the program's kind
	works   *sync.WaitGroup // what is written beside
}

// recordWithin limits the time for a record: Claude Code kills a server that has not ended
// half a second after it was asked to.
const recordWithin = 300 * time.Millisecond

func (r records) put(ctx context.Context, ops ...store.Op) {
	if r.o.Records == nil || len(ops) == 0 {
		return
	}
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordWithin)
	defer cancel()
	r.o.Records.Record(within, ops...)
}

// warn records a text about a message or a conversation. Of those with one key the first counts.
func (r records) warn(ctx context.Context, key, about, text string, at time.Time) {
	r.put(ctx, store.AddLog{
		Key: key, Part: r.runtime, Actor: r.o.Agent, Level: store.LevelWarn, About: about, Text: envelope.Line(text, 300), Time: store.At(at),
	})
}

// session records which conversation a start has, if an event says so.
func (r records) session(ctx context.Context, e agent.Event) {
	r.works.Go(func() { r.put(ctx, r.conversation(e)...) })
}

func (r records) conversation(e agent.Event) []store.Op {
	if e.Start == "" || e.Session == "" {
		return nil
	}
	return []store.Op{store.SessionState{Start: e.Start, Actor: r.o.Agent, Thread: e.Session, Time: store.At(time.UnixMilli(e.MS))}}
}

// turn records a turn's end, what it was about, and what it took.
func (r records) turn(ctx context.Context, e agent.Event, about string) {
	if r.o.Records == nil {
		return
	}
	log := store.AddLog{
		Key: fmt.Sprintf("turn-%s-%d", r.o.Agent, e.MS), Time: store.At(time.UnixMilli(e.MS)),
		Part: r.runtime, Actor: r.o.Agent, About: about, Text: "turn completed",
	}
	if about == "" {
		log.About = e.Session
	}
	switch {
	case e.Event == agent.EventStopFailed && e.Error == Interrupted:
		log.Text = "turn interrupted"
	case e.Event == agent.EventStopFailed:
		log.Level, log.Text = store.LevelWarn, envelope.Line("turn failed: "+failure(e), 200)
	}
	r.works.Go(func() {
		if u := r.usage(ctx, e); u != (agent.Usage{}) {
			log.Fields = map[string]any{
				"input": u.Input, "output": u.Output, "cached": u.CacheRead, "cache_write": u.CacheWrite,
				"context": u.ContextNow,
			}
			if u.Requests > 0 { // Codex does not say how many there were
				log.Fields["requests"] = u.Requests
			}
		}
		r.put(ctx, append(r.conversation(e), log)...)
	})
}

// usage returns what a turn used, in tokens. It may have to wait until a program has
// written that.
func (r records) usage(ctx context.Context, e agent.Event) agent.Usage {
	if m, ok := r.o.Runtime.(Meter); ok {
		return m.Usage(ctx, e)
	}
	if e.Usage != nil {
		return *e.Usage
	}
	return agent.Usage{}
}

// failure describes why a turn failed.
func failure(e agent.Event) string {
	if f := e.Fault; f != nil && f.Text != "" {
		return f.String()
	}
	return strings.Trim(e.Error+": "+e.Text, ": ")
}
