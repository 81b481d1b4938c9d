// Package dashboard shows the records and the panes in a browser, as they
// change, and takes two things from it: a message of the owner's, and which of
// his mail he has read.
//
// Which thing is wanted:
//   - New makes a Server of its Options, and Listen and Serve run it;
//   - Handler is the same without a listener, for tests, and Close ends it;
//   - Token keeps the secret that a browser or a script must show.
//
// # What it promises
//
// Every request is refused unless its Host is one of ours and it carries the
// token, as the cookie that /login gave or as a bearer; /healthz alone needs
// no token and tells nothing. What another site's page could cause is refused
// by Origin and Sec-Fetch-Site. No GET changes anything. POST /read marks mail as
// read, as `netsky inbox` does that has shown it. The other write is POST
// /api/user-message: when it answers 202, the message is in the recipient's
// inbox and survives a loss of power; with any other answer it was not sent,
// but for 500, after which the same message may be sent again under its id.
// POST /user-message is the same for the form of a page: its 303 is that 202.
//
// Pages come whole and work by reload alone. The script fetches the page anew
// when an event says that something has changed, and puts in place what
// differs; only terminals are drawn from the events themselves. A page names the
// versions of what it shows, so an event that brings one of those is no news.
//
// SSE and websocket carry the same events. An event says the latest state of
// its key, and a browser that does not read gets, when it reads again, the
// latest of each key and nothing in between; it holds up nobody else. Their
// ids are the ids of the logs: a browser that comes back with the last it saw
// is told what came since.
//
// Nothing is asked of the database, of tmux or of the agents while no browser
// looks, and of a pane only while a browser looks at that pane.
//
// # What it does not know
//
// It does not know how an agent is found to be idle, where a pane is, or how a
// message is delivered: it is given Agents, Panes and Send. What panes, names
// and messages hold is an attacker's until it is escaped.
//
// # What a crash leaves
//
// Nothing. It keeps no file but the token, which Token makes whole or not at
// all.
package dashboard
