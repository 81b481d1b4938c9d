package dashboard

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"net/http"
	"strings"

	"netsky/bus/envelope"
	"netsky/store"
)

// A Problem is the answer to a request that gets none, as RFC 9457 has it.
type Problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail,omitempty"`
}

// plainStyle is the style sheet of the pages that are there without a sign-in.
const plainStyle = "plain.css"

// plainPage is such a page: its title, and what stands on it.
const plainPage = `<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content="width=device-width, initial-scale=1">
<meta name=color-scheme content="light dark"><link rel=icon href="/static/icon.svg" type="image/svg+xml"><link rel=stylesheet href="/static/` + plainStyle + `">
<title>netsky: %[1]s</title><main><h1>%[1]s</h1>
%[2]s</main></html>
`

// coded is a text as HTML, with what stands between backticks as code.
func coded(text string) string {
	parts := strings.Split(html.EscapeString(text), "`")
	for i := 1; i+1 < len(parts); i += 2 {
		parts[i] = "<code>" + parts[i] + "</code>"
	}
	return strings.Join(parts, "")
}

// refuse answers with a problem: to a person's browser as a page, else as JSON.
func refuse(w http.ResponseWriter, r *http.Request, status int, detail string) {
	if strings.Contains(r.Header.Get("Accept"), "text/html") && !strings.HasPrefix(r.URL.Path, "/api/") {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.WriteHeader(status)
		title, more := http.StatusText(status), `<p><a href="/">Overview</a></p>`
		if status == http.StatusUnauthorized { // perhaps by the cookie of a server that has ended, and the tab has a key
			title, more = "You are signed out", `<script src="`+staticPath+sessionScript+`" data-resume></script>`
		}
		fmt.Fprintf(w, plainPage, html.EscapeString(title), "<p>"+coded(detail)+"</p>"+more)
		return
	}
	data, _ := json.Marshal(Problem{"about:blank", http.StatusText(status), status, detail})
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	w.Write(append(data, '\n'))
}

// errBad is what the error of a wrong request matches.
var errBad = errors.New("wrong request")

func badf(format string, args ...any) error { return badError{fmt.Sprintf(format, args...)} }

type badError struct{ text string }

func (e badError) Error() string        { return e.text }
func (e badError) Is(target error) bool { return target == errBad }

// errNoRecords is what the error of records matches that can't be read.
var errNoRecords = errors.New("no records at the moment")

// fail answers with what an error is to the one who asked.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	if errors.Is(err, context.Canceled) {
		return // nobody is there to be told
	}
	status := statusOf(err)
	if status >= 500 {
		s.o.Log.Warn("answer", "path", r.URL.Path, "error", err)
	}
	refuse(w, r, status, err.Error())
}

func statusOf(err error) int {
	switch {
	case errors.Is(err, errBad), errors.Is(err, store.ErrCursor):
		return http.StatusBadRequest
	case errors.Is(err, store.ErrNotFound), errors.Is(err, errNoPane):
		return http.StatusNotFound
	case errors.Is(err, store.ErrAmbiguous):
		return http.StatusConflict
	case errors.Is(err, errNoRecords), errors.Is(err, context.DeadlineExceeded):
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}

// quote shows a stranger's words in a refusal: printable and short.
func quote(text string) string {
	const most = 80
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return `"` + envelope.Plain(text) + `"`
}
