package telegram

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"netsky/internal/advice"
	"netsky/phone/chat"
)

const (
	maxAnswer = 8 << 20 // Telegram's own limit for updates is half of it
	callLimit = 15 * time.Second
)

// A failure is a request that did not succeed. Its words are free of the token.
type failure struct {
	method string
	code   int    // Telegram's, else HTTP's; 0 if there was no answer, or one that says nothing
	text   string // what happened
	cause  error  // may be nil
	wait   time.Duration
	moved  int64 // the chat that the group has become
	// came says that Telegram may have got the whole request, where there is no answer.
	came bool
}

func (f *failure) Error() string {
	if f.code != 0 {
		return fmt.Sprintf("%s: %d %s", f.method, f.code, f.text)
	}
	return f.method + ": " + f.text
}

func (f *failure) Unwrap() error { return f.cause }

// call sends a request and decodes its result, unless that is nil.
func (t *Transport) call(ctx context.Context, tok token, method string, args map[string]any, result any) error {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	return t.callWithin(ctx, tok, method, args, result)
}

// callWithin is call for a ctx that has an end.
func (t *Transport) callWithin(ctx context.Context, tok token, method string, args map[string]any, result any) error {
	if args == nil {
		args = map[string]any{} // a body that is no object is refused
	}
	body, err := json.Marshal(args)
	if err != nil {
		return &failure{method: method, text: "not JSON", cause: err}
	}
	return t.post(ctx, tok, method, "application/json", bytes.NewReader(body), int64(len(body)), result)
}

// An answer is what Telegram says to every request.
type answer struct {
	OK          *bool           `json:"ok"`
	Result      json.RawMessage `json:"result"`
	Code        int             `json:"error_code"`
	Description string          `json:"description"`
	Parameters  struct {
		RetryAfter int64 `json:"retry_after"`
		Moved      int64 `json:"migrate_to_chat_id"`
	} `json:"parameters"`
}

// post sends one request; its errors are failures.
func (t *Transport) post(ctx context.Context, tok token, method, kind string, body io.Reader, size int64, result any) error {
	var reach reach
	req, err := http.NewRequestWithContext(reach.trace(ctx), http.MethodPost, t.api+"/bot"+tok.secret+"/"+method, body)
	if err != nil {
		return &failure{method: method, text: "the address of the API is malformed"}
	}
	req.Header.Set("Content-Type", kind)
	req.ContentLength = size
	r, err := t.http.Do(req)
	if err != nil {
		f := t.lost(method, tok, err)
		f.came = reach.came()
		return f
	}
	defer r.Body.Close()
	data, err := io.ReadAll(io.LimitReader(r.Body, maxAnswer+1))
	switch {
	case err != nil:
		f := t.lost(method, tok, err)
		f.text, f.came = "the answer broke off: "+f.text, true
		f.code = bad(r.StatusCode)
		return f
	case len(data) > maxAnswer:
		return &failure{method: method, code: bad(r.StatusCode), text: "the answer is larger than 8 MiB", came: true}
	}
	var a answer
	if err := json.Unmarshal(data, &a); err != nil || a.OK == nil {
		f := &failure{method: method, code: bad(r.StatusCode), text: "the answer is none of the Bot API's", came: true}
		if f.code != 0 {
			f.text = http.StatusText(f.code)
		}
		return f
	}
	if !*a.OK {
		if a.Code < 400 {
			a.Code = bad(r.StatusCode)
		}
		return &failure{
			method: method, code: a.Code, text: tok.plain(a.Description), came: true, moved: a.Parameters.Moved,
			wait: time.Duration(min(max(a.Parameters.RetryAfter, 0), 24*3600)) * time.Second,
		}
	}
	if result == nil {
		return nil
	}
	if err := json.Unmarshal(a.Result, result); err != nil {
		return &failure{method: method, text: "the answer is none of the Bot API's: " + tok.plain(err.Error()), cause: tok.cause(err), came: true}
	}
	return nil
}

// bad returns an HTTP status that is no success, else 0. A redirect would lead elsewhere
// with the token, and is not followed.
func bad(status int) int {
	if status/100 == 2 {
		return 0
	}
	return status
}

// lost says why there was no answer, without the address.
func (t *Transport) lost(method string, tok token, err error) *failure {
	var full *url.Error
	if errors.As(err, &full) {
		err = full.Err // what it adds is the address, and that is a secret
	}
	f := &failure{method: method, text: tok.plain(err.Error()), cause: tok.cause(err)}
	if errors.Is(err, context.DeadlineExceeded) {
		f.text = t.host + " did not answer in time"
	}
	return f
}

// cause returns an error, or nil if it says anything of the token.
func (t token) cause(err error) error {
	if s := err.Error(); chat.Redact(s, t.secret, "<token>") != s {
		return nil
	}
	return err
}

// plain makes a line of somebody else's text, without the token, of a length that fits a log.
func (t token) plain(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || 0x80 <= r && r < 0xa0 || r == 0x2028 || r == 0x2029 || 0x202a <= r && r <= 0x202e || 0x2066 <= r && r <= 0x2069 {
			return ' '
		}
		return r
	}, chat.Redact(s, t.secret, "<token>"))
	if runes := []rune(s); len(runes) > 300 {
		s = string(runes[:300]) + "…"
	}
	return s
}

// A reach follows how far a request got.
type reach struct{ at atomic.Int32 }

const (
	notConnected = iota
	connected
	cutShort // a part was written at most
	written
)

func (r *reach) trace(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { r.at.Store(connected) },
		WroteRequest: func(i httptrace.WroteRequestInfo) {
			if i.Err != nil {
				r.at.Store(cutShort)
			} else {
				r.at.Store(written)
			}
		},
	})
}

// came reports whether the other side may have the whole request. One that is not known to
// be written to its end may have been: the word of it comes a moment after the last byte.
func (r *reach) came() bool {
	at := r.at.Load()
	return at == connected || at == written
}

// degrade turns what is wrong on our side into the error of a transport that cannot read.
func degrade(err error) *chat.Degraded {
	return &chat.Degraded{Reason: "telegram: " + err.Error(), Next: advice.Of(err), Err: err}
}

// degraded turns the failure of a request into it.
func (t *Transport) degraded(err error) *chat.Degraded {
	d := degrade(err)
	f := new(failure)
	if !errors.As(err, &f) {
		return d
	}
	switch f.code {
	case http.StatusUnauthorized:
		d.Reason = "telegram: the bot's token is not valid (any more): " + f.Error()
		d.Next = "have @BotFather show or make the bot's token, and put it into " + t.o.TokenFile
	case http.StatusNotFound:
		d.Reason = "telegram: " + t.host + " knows no such bot, or is no Bot API server: " + f.Error()
		d.Next = "compare the token in " + t.o.TokenFile + " with that of @BotFather, and `api` with the server's address"
	case http.StatusConflict:
		if strings.Contains(strings.ToLower(f.text), "webhook") {
			d.Reason = "telegram: the bot's messages go to a webhook: " + f.Error()
			d.Next = t.removeWebhook()
			break
		}
		d.Reason = "telegram: another program reads this bot's messages: " + f.Error()
		d.Next = "end the other program (another netsky?), or give each a bot of its own"
	case http.StatusTooManyRequests:
		d.Reason = fmt.Sprintf("telegram: asked to wait %s: %s", f.wait, f.Error())
	}
	return d
}

// removeWebhook says how to; the token appears in no process list.
func (t *Transport) removeWebhook() string {
	return fmt.Sprintf(`take another bot, or remove the webhook: printf 'url = "%%s/bot%%s/deleteWebhook"' %s "$(cat %s)" | curl -K -`,
		advice.Word(t.api), advice.Word(t.o.TokenFile))
}
