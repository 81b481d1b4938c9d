package spawn_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/home"
	"netsky/internal/testworld"
	"netsky/spawn"
)

// Which envelopes in agent0's mailbox count as the ack of a request.
func TestAcks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		ack   func(request string) envelope.Envelope
		acked bool
	}{
		{"during a turn", func(r string) envelope.Envelope {
			return envelope.Envelope{From: "agent3", Kind: envelope.KindShutdownAck, InReplyTo: r, Extra: envelope.CutOff()}
		}, true},
		{"the kind", func(r string) envelope.Envelope {
			return envelope.Envelope{From: "agent3", Kind: envelope.KindShutdownAck, InReplyTo: r, Text: "done"}
		}, true},
		{"in words", func(r string) envelope.Envelope {
			return envelope.Envelope{From: "agent3", InReplyTo: r, Text: "Shutdown ACK, all work is saved"}
		}, true},
		{"in words under the request's id", func(r string) envelope.Envelope {
			return envelope.Envelope{ID: r, From: "agent3", Text: "shutdown ack"}
		}, true},
		{"of another agent", func(r string) envelope.Envelope {
			return envelope.Envelope{From: "agent4", Kind: envelope.KindShutdownAck, InReplyTo: r}
		}, false},
		{"of another request", func(string) envelope.Envelope {
			return envelope.Envelope{From: "agent3", Kind: envelope.KindShutdownAck, InReplyTo: "shutdown-agent3-1"}
		}, false},
		{"of no request", func(string) envelope.Envelope {
			return envelope.Envelope{From: "agent3", Kind: envelope.KindShutdownAck}
		}, false},
		{"other words", func(r string) envelope.Envelope {
			return envelope.Envelope{From: "agent3", InReplyTo: r, Text: "I will not"}
		}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			within := 500 * time.Millisecond
			if c.acked {
				within = 20 * time.Second
			}
			w.upReady(stays(), "agent3")
			testworld.Must(t, w.bus.Make(agent.Root))
			w.send(envelope.Envelope{From: "agent3", To: agent.Root, Kind: envelope.KindShutdownAck, InReplyTo: "shutdown-agent3-0"}) // from before
			log, err := w.l.Down(w.ctx, spawn.DownOptions{AckWithin: within, Report: func(p spawn.DownProgress) {
				if p.Step == spawn.DownAsked {
					e := c.ack(w.request("agent3"))
					e.To, e.Time = agent.Root, time.Now()
					w.drop(e)
				}
			}})
			want := "asked timeout ended"
			if c.acked {
				want = "asked acked ended"
			}
			if c.name == "during a turn" {
				want = "asked unfinished ended"
			}
			if got := steps(log)["agent3"]; err != nil || got != want {
				t.Errorf("%s %v, want %s", got, err, want)
			}
		})
	}
}

// request is the id of the shutdown in an agent's inbox.
func (w *world) request(name string) string {
	w.Helper()
	list, err := w.bus.List(agent.ID(name), bus.Inbox, 0)
	if err != nil || len(list) != 1 || list[0].Envelope.Kind != envelope.KindShutdown || !list[0].Envelope.RequiresAck {
		w.Fatalf("%s: inbox %+v %v", name, list, err)
	}
	e := list[0].Envelope
	if e.From != agent.Root || !strings.HasPrefix(e.ID, "shutdown-"+name+"-") || e.Start != w.status(name).Start {
		w.Errorf("%s: asked by %+v", name, e)
	}
	return e.ID
}

// drop puts a file into agent0's inbox as anyone can.
func (w *world) drop(e envelope.Envelope) string {
	w.Helper()
	data := testworld.Got(e.MarshalJSON())(w)
	path := w.home.Path(home.Mailbox(agent.Root), "inbox", "byhand.json")
	testworld.Must(w, os.WriteFile(path+".x", data, 0o600))
	testworld.Must(w, os.Rename(path+".x", path))
	return path
}

// An ack counts wherever in agent0's mailbox it has got to.
func TestAckPlaces(t *testing.T) {
	t.Parallel()
	for _, place := range []bus.Place{bus.Inbox, bus.Claimed, bus.Delivered} {
		t.Run(string(place), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.upReady(stays(), "agent3")
			log, err := w.l.Down(w.ctx, spawn.DownOptions{AckWithin: 20 * time.Second, Report: func(p spawn.DownProgress) {
				if p.Step == spawn.DownAsked {
					path := w.drop(envelope.Envelope{
						From: "agent3", To: agent.Root, Kind: envelope.KindShutdownAck, InReplyTo: w.request("agent3"), Time: time.Now(),
					})
					if place != bus.Inbox {
						to := w.home.Path(home.Mailbox(agent.Root), string(place), "byhand.json")
						if err := os.Rename(path, to); err != nil {
							t.Error(err)
						}
					}
				}
			}})
			if got := steps(log)["agent3"]; err != nil || got != "asked acked ended" {
				t.Errorf("%s %v", got, err)
			}
		})
	}
}
