// Package telegram carries messages between the bridge and the owner's phone through a bot,
// by Telegram's Bot API and long polling.
//
// It promises:
//
//   - A message that Telegram has is returned at least once. Telegram forgets an update when
//     the next one is asked for, which is when Next is called with the cursor that came with
//     it: what was not recorded before a crash is returned again, under the same GUID.
//   - The first run returns nothing from before it. So does the first one with another bot.
//   - An update that is malformed is left out with a note; it does not keep back the others.
//   - Send says "sent" only of a message that Telegram has given an id, and offers another try
//     only where Telegram cannot have got the first one.
//   - The bot's token is in no error and no note, in whatever form a server repeats it, although
//     it is part of every address that is asked.
//   - No answer takes more than a bounded time, or more than 8 MiB of memory.
//
// Handles are users' numeric ids: a user can change their name, and another can take it. The
// id of a private chat is that of its user. Edits are not asked for, as an order is what was
// delivered. Reactions carry no id; theirs is made of all that Telegram says of them. A press
// has no date.
//
// It cannot find out whether a message that it lost sight of was sent, and shows no history:
// the API has neither. A bot cannot write to a user who never wrote to it. Telegram keeps
// updates for a day. Whether Telegram reports reactions in private chats was not seen by us.
//
// It starts nothing that outlives a call, and leaves nothing behind in a crash.
package telegram

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf16"

	"netsky/internal/advice"
	"netsky/internal/execx"
	"netsky/internal/proc"
	"netsky/phone/chat"
)

// Options say which bot it is.
type Options struct {
	// TokenFile holds the bot's token. Nobody but its owner may be able to read it. It is read
	// at each call, so that another token counts at once.
	TokenFile string
	// API is where the Bot API is; empty is Telegram's. Without encryption it is spoken to this
	// machine and to private addresses only.
	API string
	// Refuse says why a file must not be sent; nil refuses none.
	Refuse func(path string) error
	// Now is the clock that a first run is dated by; nil is the system's.
	Now func() time.Time
	// Poll is how long Next waits for a message; 0 is 25 s.
	Poll time.Duration
}

const (
	official    = "https://api.telegram.org"
	defaultPoll = 25 * time.Second
	maxRest     = 30 * time.Second // how long one Next waits where Telegram asks for it
	maxDrain    = 200              // how many times a first run asks before it returns
	perCall     = 80               // updates; with those of reactions fewer messages than chat.MaxBatch
)

// A Transport is one bot.
type Transport struct {
	o    Options
	api  string // without a slash at its end
	host string // for words
	http *http.Client

	// Only Next uses what follows.
	rest  time.Time       // it asks nothing before
	tails map[string]tail // by chat, the last message, if more of it follows
}

// New returns a transport. It asks nothing yet: a wrong token shows when it is used.
func New(o Options) (*Transport, error) {
	if o.TokenFile == "" {
		return nil, errors.New("telegram: no file with the bot's token is configured")
	}
	if o.API == "" {
		o.API = official
	}
	u, err := checkAPI(o.API)
	if err != nil {
		return nil, fmt.Errorf("telegram: api: %w", err)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Poll == 0 {
		o.Poll = defaultPoll
	}
	wire := &http.Transport{
		DialContext:            execx.DialContext(&net.Dialer{Timeout: 10 * time.Second}),
		TLSHandshakeTimeout:    10 * time.Second,
		IdleConnTimeout:        time.Minute,
		MaxIdleConnsPerHost:    2,
		MaxResponseHeaderBytes: 64 << 10,
		ForceAttemptHTTP2:      true,
	}
	if u.Scheme == "https" { // what is not encrypted goes through nobody else's hands
		wire.Proxy = http.ProxyFromEnvironment
	}
	return &Transport{
		o: o, api: strings.TrimRight(u.String(), "/"), host: u.Host,
		http: &http.Client{
			Transport: wire,
			// The address holds the token.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

// checkAPI decides which addresses get the token.
func checkAPI(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		return nil, errors.New("not an address that begins with https:// or http://")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return nil, errors.New("an address without a user, a question mark or a # is needed")
	case u.Scheme == "https" || u.Hostname() == "localhost":
		return u, nil
	}
	if ip := net.ParseIP(u.Hostname()); ip != nil && (ip.IsLoopback() || ip.IsPrivate()) {
		return u, nil
	}
	return nil, advice.With(fmt.Errorf("%s would get the bot's token without encryption", u.Host),
		"use https://, or the address (not the name) of a server in your own network")
}

// Name returns "telegram".
func (t *Transport) Name() string { return "telegram" }

// Close closes the connections that are idle.
func (t *Transport) Close() error {
	t.http.CloseIdleConnections()
	return nil
}

// A position is what a cursor says.
type position struct {
	Bot    int64 `json:"bot"`
	Offset int64 `json:"offset"` // the first update that is wanted; 0 is the oldest there is
	// Since is when the first run began, in seconds, as long as what is older may be waiting.
	Since int64 `json:"since,omitempty"`
}

func (p position) String() string {
	data, _ := json.Marshal(p) // of numbers
	return string(data)
}

// Next returns what arrived after the cursor.
func (t *Transport) Next(ctx context.Context, cursor string) (chat.Batch, error) {
	if err := proc.Sleep(ctx, min(time.Until(t.rest), maxRest)); err != nil {
		return chat.Batch{}, err
	}
	if left := time.Until(t.rest); left > 0 {
		return chat.Batch{}, &chat.Degraded{Reason: fmt.Sprintf("telegram: asked to wait %s more", left.Round(time.Second))}
	}
	tok, err := t.token()
	if err != nil {
		return chat.Batch{}, degrade(err)
	}
	at, notes := t.position(cursor, tok)
	var b chat.Batch
	if at.Since != 0 {
		b, err = t.drain(ctx, tok, at)
	} else {
		b, err = t.wait(ctx, tok, at)
	}
	if err != nil {
		if ctx.Err() != nil {
			return chat.Batch{}, ctx.Err()
		}
		if f := new(failure); errors.As(err, &f) {
			t.rest = time.Now().Add(f.wait)
		}
		return chat.Batch{}, t.degraded(err)
	}
	b.Notes = append(notes, b.Notes...)
	return b, nil
}

// position reads a cursor. One that is empty, damaged, or another bot's begins a first run.
func (t *Transport) position(cursor string, tok token) (p position, notes []string) {
	first := position{Bot: tok.bot, Since: t.o.Now().Unix()}
	if cursor == "" {
		return first, nil
	}
	if err := json.Unmarshal([]byte(cursor), &p); err != nil || p.Offset < 0 {
		return first, []string{"telegram: the cursor cannot be read; only what arrives from now on is taken"}
	}
	if p.Bot != tok.bot {
		return first, []string{fmt.Sprintf("telegram: the token is of bot %d, and was of bot %d; only what arrives from now on is taken", tok.bot, p.Bot)}
	}
	return p, nil
}

// wait asks until something has arrived or the time is over.
func (t *Transport) wait(ctx context.Context, tok token, at position) (chat.Batch, error) {
	const calm = time.Second // a server that does not let us wait is not asked more often
	for end := time.Now().Add(t.o.Poll); ; {
		began := time.Now()
		in, err := t.updates(ctx, tok, at.Offset, max(time.Until(end), 0))
		if err != nil {
			return chat.Batch{}, err
		}
		if in.next != at.Offset {
			t.answer(ctx, tok, in.presses)
			at.Offset = in.next
			return chat.Batch{Messages: in.messages, Cursor: at.String(), Notes: in.notes}, nil
		}
		if time.Until(end) <= 0 {
			return chat.Batch{Cursor: at.String()}, nil
		}
		if err := proc.Sleep(ctx, min(calm-time.Since(began), time.Until(end))); err != nil {
			return chat.Batch{}, err
		}
	}
}

// drain takes what was waiting when the first run began, and leaves out what is older than
// it. What is kept is acknowledged by the next call, like any other.
func (t *Transport) drain(ctx context.Context, tok token, at position) (chat.Batch, error) {
	var b chat.Batch
	left := 0
	for range maxDrain {
		in, err := t.updates(ctx, tok, at.Offset, 0)
		if err != nil {
			return chat.Batch{}, err
		}
		if in.next == at.Offset {
			at.Since = 0
			break
		}
		for _, m := range in.messages {
			if m.At.Unix() >= at.Since { // of an unknown date, as all presses, is none
				b.Messages = append(b.Messages, m)
			} else {
				left++
			}
		}
		b.Notes = append(b.Notes, in.notes...)
		at.Offset = in.next
		t.answer(ctx, tok, in.presses)
		if len(b.Messages)+len(b.Notes) > 0 {
			break
		}
	}
	if left > 0 {
		b.Notes = append(b.Notes, fmt.Sprintf("telegram: first run: %d messages, presses and reactions from before it were left out", left))
	}
	b.Cursor = at.String()
	return b, nil
}

// answer ends the waiting that a phone shows after a press. What the press did is told by a
// message; so it is no harm if this fails.
func (t *Transport) answer(ctx context.Context, tok token, presses []string) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	for _, id := range presses {
		if ctx.Err() != nil {
			return
		}
		_ = t.call(ctx, tok, "answerCallbackQuery", map[string]any{"callback_query_id": id}, nil)
	}
}

// Mark returns nothing: there is no place to look at.
func (t *Transport) Mark(context.Context) (string, error) { return "", nil }

// Find returns chat.ErrCannotLook.
func (t *Transport) Find(context.Context, chat.Outgoing) (chat.Receipt, error) {
	return chat.Receipt{}, chat.ErrCannotLook
}

// History returns chat.ErrNoHistory.
func (t *Transport) History(context.Context, chat.Chat, int) ([]chat.Message, error) {
	return nil, chat.ErrNoHistory
}

// A phone sends what is too long for one message, and an album, as several messages, one after another.

// leastSplit is how long a text is, in UTF-16 units, that a phone has cut: it looks for a good place
// in the second half of what a message can hold.
const leastSplit = maxText / 2

// splitWithin is how many seconds are between two parts of a text, which a phone sends at once.
const splitWithin = 2

// A split is what tells whether a message is a part.
type split struct {
	at    int // among the messages
	date  int64
	album string
}

// A tail is a message of which more follows.
type tail struct {
	split
	guid, handle string
}

// join says of each message whether more of it follows, and what it is a part of.
func (t *Transport) join(in arrived) {
	for _, s := range in.splits {
		m := &in.messages[s.at]
		last, open := t.tails[m.Chat.Key]
		if open && last.handle == m.Handle && last.album == s.album && (s.album != "" || s.date-last.date <= splitWithin) {
			m.After = last.guid
		}
		delete(t.tails, m.Chat.Key)
		m.More = m.Kind == chat.Text && (s.album != "" || len(utf16.Encode([]rune(m.Text))) >= leastSplit)
		if !m.More {
			continue
		}
		if t.tails == nil || len(t.tails) == mostTails {
			t.tails = make(map[string]tail)
		}
		t.tails[m.Chat.Key] = tail{s, m.GUID, m.Handle}
	}
}

// mostTails bounds what strangers can make us remember.
const mostTails = 100
