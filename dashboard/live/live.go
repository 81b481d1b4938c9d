// Package live sends changes to the browsers that follow: the agents' states, which
// approvals wait, new records, and the panes that a browser watches.
//
// A Broadcaster keeps the latest value of each key once, for all browsers; ServeEvents
// (SSE) and ServeSocket (websocket) carry the same events. All shared state is under
// its one mutex. Its goroutines run while at least one browser follows, and Close waits
// for them.
//
// # What it promises
//
// An event is the latest value of its key: a browser that stops reading and continues
// later gets the latest value of each key and nothing in between, and delays nobody
// else. The ids of events are the ids of the logs: a browser that reconnects with the
// last id it saw gets what it missed.
//
// The database and the agents are read only while a browser follows, and a pane only
// while a browser watches that pane.
//
// # What a crash leaves
//
// Nothing: it keeps no file. Browsers reconnect.
package live

import (
	"cmp"
	"context"
)

// New returns a Broadcaster. It starts nothing before a browser follows.
func New(o Options) *Broadcaster {
	o.MaxStreams, o.Poll = cmp.Or(o.MaxStreams, defaultStreams), cmp.Or(o.Poll, defaultPoll)
	o.WriteWait = cmp.Or(o.WriteWait, defaultWait)
	b := &Broadcaster{o: o, clients: map[*client]struct{}{}}
	b.sources = []func(context.Context, *look){b.followRecords, b.followAgents, b.followPanes}
	return b
}
