// Package dashboard shows the records and the panes in a browser, as they
// change, and takes two things from it: a message of the owner's, and which of
// his mail he has read.
//
// Which thing is wanted:
//   - New makes a Server of its Options, and Listen and Serve run it;
//   - Handler is the same without a listener, for tests, and Close ends it;
//   - Token keeps the secret that a script must show, and Link makes the links by
//     which browsers sign in; Browsers, SignOut and Rotate are what becomes of them.
//
// # What it promises
//
// Every request is refused unless its Host is one of ours, no other user's
// process has sent it as far as the kernel tells, and it carries the token as a
// bearer or the cookie of a browser that is signed in; /healthz alone needs
// nothing and tells nothing. What another site's page could cause is refused
// by Origin and Sec-Fetch-Site. No GET changes anything.
//
// A browser signs in with a code that is good once, for minutes, and is given
// an id, a cookie, and a key: HMAC(token, id, address). The cookie is made with
// a secret of this Server's, so the next one does not know it; it is good for
// looking, as cookies go to every server of the same host. A stream, a socket and
// a write need the tab's pass too, which POST /session gives: the tab says id and
// a nonce; the Server proves by HMAC(key, nonce, challenge) that it knows the key;
// only then the tab proves the same, and has a new cookie and its pass. The
// answers to the tab are proved in the same way, and the script shows no other.
// So whoever listens in a dead Server's place is sent nothing that counts, and
// an open tab goes on with the next Server at that address. A browser that signs
// in by the form has no key: it may write where it is known whose connection
// it is.
//
// Beside signing in and out, POST /read marks mail as read, as `netsky inbox`
// does that has shown it. The other write is POST /api/user-message: when it
// answers 202, the message is in the recipient's inbox and survives a loss of
// power; with any other answer it was not sent,
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
// Browsers sign in anew or prove themselves to the next Server. Its files are the
// token and state/dashboard.json (who is signed in, the port of last time; no
// secret), and each is written whole or not at all.
package dashboard
