// This file reads requests and writes answers in the same way for all of the
// dashboard's handlers: refusals as a problem or a page, JSON whole or not at all,
// bodies that are objects of strings, and routes by method.
//
// It keeps no state, so a crash leaves nothing.

package access

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"netsky/bus/envelope"
)

// The files below StaticPath that pages load before their browser has signed in.
const (
	StaticPath    = "/static/"
	SessionScript = "session.js"
	PlainStyle    = "plain.css"
	Icon          = "icon.svg"
)

// A Problem is the body of a refusal, as in RFC 9457.
type Problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail,omitempty"`
}

const plainPage = `<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content="width=device-width, initial-scale=1">
<meta name=color-scheme content="light dark"><link rel=icon href="` + StaticPath + Icon + `" type="image/svg+xml"><link rel=stylesheet href="` + StaticPath + PlainStyle + `">
<title>netsky: %[1]s</title><main><h1>%[1]s</h1>
%[2]s</main></html>
`

// PlainPage writes a page that needs no sign-in. title and body are HTML.
func PlainPage(w http.ResponseWriter, status int, title, body string) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	fmt.Fprintf(w, plainPage, title, body)
}

// Coded returns a text as HTML, with the parts between backticks as code.
func Coded(text string) string {
	parts := strings.Split(html.EscapeString(text), "`")
	for i := 1; i+1 < len(parts); i += 2 {
		parts[i] = "<code>" + parts[i] + "</code>"
	}
	return strings.Join(parts, "")
}

// Refuse answers with a problem: as a page if a person's browser asked for one, else as
// JSON.
func Refuse(w http.ResponseWriter, r *http.Request, status int, detail string) {
	if strings.Contains(r.Header.Get("Accept"), "text/html") && !strings.HasPrefix(r.URL.Path, "/api/") {
		title, more := http.StatusText(status), `<p><a href="/">Overview</a></p>`
		if status == http.StatusUnauthorized { // the cookie may be from an earlier server, and the tab may have a key
			title, more = "You are signed out", `<script src="`+StaticPath+SessionScript+`" data-resume></script>`
		}
		PlainPage(w, status, html.EscapeString(title), "<p>"+Coded(detail)+"</p>"+more)
		return
	}
	data, _ := json.Marshal(Problem{"about:blank", http.StatusText(status), status, detail})
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	w.Write(append(data, '\n'))
}

// JSON writes a value whole or not at all. encoding/json escapes "<", so no reader can
// take it for markup.
func JSON(w http.ResponseWriter, r *http.Request, status int, v any) {
	data, err := json.Marshal(v)
	if err != nil { // the raw JSON in a record is invalid
		Refuse(w, r, http.StatusInternalServerError, "the record cannot be encoded as JSON")
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(append(data, '\n'))
}

// Quote returns a client's text for an error message: printable and short.
func Quote(text string) string {
	const most = 80
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return `"` + envelope.Plain(text) + `"`
}

// Fields reads a JSON object of strings, each named at most once and exactly as in
// names. encoding/json would use the last of two, and accept TO for to.
func Fields(data []byte, names ...string) (map[string]string, error) {
	if !utf8.Valid(data) {
		return nil, errors.New("the body is not UTF-8")
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, errors.New("the body is not a JSON object")
	}
	found := map[string]string{}
	for dec.More() {
		t, err := dec.Token()
		name, ok := t.(string)
		if err != nil || !ok {
			return nil, errors.New("the body is not a JSON object")
		}
		if !slices.Contains(names, name) {
			return nil, errors.New(Quote(name) + ": unknown field")
		}
		if _, twice := found[name]; twice {
			return nil, errors.New(name + ": given more than once")
		}
		v, err := dec.Token()
		text, ok := v.(string)
		if err != nil || !ok {
			return nil, errors.New(name + ": not a string")
		}
		found[name] = text
	}
	if t, err := dec.Token(); err != nil || t != json.Delim('}') {
		return nil, errors.New("the body is not a JSON object")
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("unexpected data after the JSON object")
	}
	return found, nil
}

// Routes answers each path by its method, and any other method with 405.
type Routes struct{ http.ServeMux }

// Get answers GET and HEAD.
func (r *Routes) Get(path string, h http.HandlerFunc) { r.add(path, "GET, HEAD", h, nil) }

// Post answers POST.
func (r *Routes) Post(path string, h http.HandlerFunc) { r.add(path, "POST", nil, h) }

// Both answers GET, HEAD and POST.
func (r *Routes) Both(path string, get, post http.HandlerFunc) {
	r.add(path, "GET, HEAD, POST", get, post)
}

func (r *Routes) add(path, allow string, get, post http.HandlerFunc) {
	if get != nil {
		r.HandleFunc("GET "+path, get)
	}
	if post != nil {
		r.HandleFunc("POST "+path, post)
	}
	r.HandleFunc(path, func(w http.ResponseWriter, req *http.Request) {
		w.Header().Set("Allow", allow)
		Refuse(w, req, http.StatusMethodNotAllowed, "allowed methods: "+allow)
	})
}
