// Package live brings what changes to the browsers that follow: how the agents
// are, which approvals wait, new records, and the panes that a browser watches.
//
// A Broadcaster has the latest state of each key once, for all browsers;
// ServeEvents (SSE) and ServeSocket (websocket) carry the same events. All shared
// state is under its one mutex. Its goroutines run while at least one browser
// follows, and Close waits for them.
//
// # What it promises
//
// An event is the latest state of its key: a browser that does not read gets,
// when it reads again, the latest of each key and nothing in between, and holds
// up nobody else. The ids of events are the ids of the logs: a browser that comes
// back with the last it saw gets what came since.
//
// Nothing is asked of the database or of the agents while no browser follows, and
// of a pane only while a browser watches that pane.
//
// # What a crash leaves
//
// Nothing: it keeps no file. Browsers reconnect.
package live

import (
	"context"
)

// New makes a Broadcaster. It starts nothing before a browser follows.
func New(o Options) *Broadcaster {
	if o.MaxStreams == 0 {
		o.MaxStreams = defaultStreams
	}
	if o.Poll == 0 {
		o.Poll = defaultPoll
	}
	b := &Broadcaster{o: o, clients: map[*client]struct{}{}}
	b.sources = []func(context.Context, *look){b.followRecords, b.followAgents, b.followPanes}
	return b
}
