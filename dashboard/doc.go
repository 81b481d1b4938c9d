// Package dashboard is the owner's pages and API: it shows the records and the panes in
// a browser, as they change, and accepts four things from it: the owner's messages, comments on
// the agents' work, which mail has been read, and, unless that is turned off, answers to requests
// for approval.
//
// New makes a Server from its Options, and Listen and Serve run it; it is an
// http.Handler without them, for tests, and Close ends it. Package access decides which
// requests reach it, and live draws panes as rows and sends the events.
//
// # What it promises
//
// No GET changes anything. POST /read marks mail as read, as `netsky inbox` does with
// what it has shown. POST /api/user-message sends a message: when it answers 202, the
// message is in the recipient's inbox and survives a loss of power; with any other
// answer it was not sent, except for 500, after which the same message may be sent
// again under its id. POST /user-message does the same for an HTML form: its 303
// corresponds to that 202. POST /api/approval-answer, and POST /approval for a form, answer
// a request for approval if the digest is that of its exact words; with any answer but 200
// and 303 nothing was answered, except for 500, after which that is unknown. POST
// /work/{agent}/comment, drop and send keep a comment, remove one, and send all that wait in one
// message: a form submitted twice has one effect.
//
// Pages are complete and work by reload alone. The script fetches the page again when
// an event reports a change, and replaces what differs; only panes are drawn from the
// events themselves. A page lists the versions of what it shows, so that the script
// ignores events that carry one of those.
//
// The contents of panes, names and messages are treated as hostile until escaped.
//
// # What it does not know
//
// How an agent is found to be idle, where a pane is, how a message is delivered, how an
// answer reaches an agent, what git says of an agent's work, and what turns cost: Agents, Panes,
// Bus, Desk, Work and Costs are passed in.
//
// # What a crash leaves
//
// Nothing of its own. A message that was sent under an id is recognised by the records
// when it is sent again.
package dashboard
