package bluebubbles

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
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// maxBody is how long a response may be that is not a file.
const maxBody = 8 << 20

var (
	errRefused  = errors.New("the server refused the password")
	errNoData   = errors.New("the response has no data")
	errTooLarge = errors.New("a response of more than 8 MiB")
)

// An apiError is a response that is not a success.
type apiError struct {
	status int
	text   string          // what the server says about it
	data   json.RawMessage // what belongs to it: a message that could not be sent
	wait   time.Duration
}

func (e *apiError) Error() string {
	s := "HTTP status " + strconv.Itoa(e.status)
	if e.text != "" {
		s += ": " + e.text
	}
	return s
}

// envelope is what every response of the API is.
type envelope struct {
	Status  int             `json:"status"` // as that of HTTP, which something in between may have changed
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data"`
	Error   *struct {
		Message string `json:"message"`
	} `json:"error"`
}

// A request is one call of the API.
type request struct {
	method, path string
	query        url.Values
	body         io.Reader
	length       int64
	kind         string // the body's content type
}

// jsonRequest returns a POST of a value.
func jsonRequest(path string, v any) request {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // our own types
	}
	return request{method: "POST", path: path, body: bytes.NewReader(data), length: int64(len(data)), kind: "application/json"}
}

// do sends a request. The second result says whether any of it may have reached the server.
func (a *api) do(ctx context.Context, r request) (*http.Response, bool, error) {
	password, err := a.secret.take()
	if err != nil {
		return nil, false, err
	}
	u := a.base.JoinPath("api/v1", r.path)
	if r.query == nil {
		r.query = url.Values{}
	}
	r.query.Set("guid", password)
	u.RawQuery = r.query.Encode()
	var wrote atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() { wrote.Store(true) }})
	req, err := http.NewRequestWithContext(ctx, r.method, u.String(), r.body)
	if err != nil {
		return nil, false, errors.New("no request can be made of the URL")
	}
	if r.body != nil {
		req.ContentLength = r.length
		req.Header.Set("Content-Type", r.kind)
	}
	resp, err := a.client.Do(req)
	if err != nil {
		// The client's own error repeats the address.
		if e := (*url.Error)(nil); errors.As(err, &e) {
			err = e.Err
		}
		return nil, wrote.Load(), err
	}
	if resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden {
		resp.Body.Close()
		a.secret.answered(password, true)
		return nil, false, errRefused
	}
	a.secret.answered(password, false)
	return resp, true, nil
}

// call sends a request and decodes the data of its response.
func (a *api) call(ctx context.Context, timeout time.Duration, r request, out any) (reached bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	resp, reached, err := a.do(ctx, r)
	if err != nil {
		if ctx.Err() == context.DeadlineExceeded {
			err = fmt.Errorf("no response within %s", timeout)
		}
		return reached, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
	if err != nil {
		return true, fmt.Errorf("the response ends early: %w", err)
	}
	if len(data) > maxBody {
		return true, errTooLarge
	}
	var e envelope
	wrong := json.Unmarshal(data, &e)
	if resp.StatusCode != http.StatusOK || e.Status >= 400 || e.Error != nil {
		return true, a.failure(resp, e)
	}
	if wrong != nil {
		return true, fmt.Errorf("the response is not the API's: %w", wrong)
	}
	if len(e.Data) == 0 || string(e.Data) == "null" { // an empty list is one, too
		return true, errNoData
	}
	if err := json.Unmarshal(e.Data, out); err != nil {
		return true, fmt.Errorf("the response is not the API's: %w", err)
	}
	return true, nil
}

// failure returns what a response that is no success says.
func (a *api) failure(resp *http.Response, e envelope) error {
	text := e.Message
	if e.Error != nil && e.Error.Message != "" {
		text = e.Error.Message
	}
	if resp.StatusCode/100 == 3 {
		text = "the server sends us to another address"
	}
	err := &apiError{status: max(resp.StatusCode, e.Status), text: clip(a.redact(text)), data: e.Data}
	if s, fault := strconv.Atoi(resp.Header.Get("Retry-After")); fault == nil && s > 0 {
		err.wait = min(time.Duration(s)*time.Second, time.Hour)
	}
	return err
}

// clip shortens what a server says to what fits in a line.
func clip(s string) string {
	const most = 200
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
	if r := []rune(s); len(r) > most {
		s = string(r[:most]) + "…"
	}
	return s
}
