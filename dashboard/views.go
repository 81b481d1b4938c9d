package dashboard

import (
	"encoding/json"
	"fmt"
	"html/template"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"netsky/agent"
	"netsky/attention"
	"netsky/bus/envelope"
	"netsky/cost"
	"netsky/store"
)

// funcs are the templates' functions.
func funcs(now func() time.Time, assets func() map[string]asset) template.FuncMap {
	return template.FuncMap{
		"ago":       func(t store.Time) string { return span(now().Sub(t.Time())) },
		"asset":     func(name string) string { return assets()[name].url },
		"called":    cost.Called,
		"clock":     func(t store.Time) string { return t.Time().Local().Format("15:04:05") },
		"costOf":    costOf,
		"costs":     cost.Cost,
		"day":       func(t store.Time) string { return t.Time().Local().Format("Monday, 2 January 2006") },
		"full":      func(t store.Time) string { return t.Time().Local().Format("Mon 2 Jan 2006, 15:04:05 MST") },
		"elapsed":   elapsed,
		"excerpt":   excerpt,
		"exit":      func(status *int) int { return *status },
		"fields":    fieldsOf,
		"foundPage": foundPage,
		"glyph":     glyph,
		"head":      head,
		"here":      here,
		"href":      href,
		"json":      func(m json.RawMessage) string { return envelope.Plain(string(m)) },
		"key":       keyOf,
		"long":      func(text string) bool { return len(text) > onPageText },
		"millis":    func(t store.Time) int64 { return int64(t) },
		"number":    cost.Number,
		"page":      pageOf,
		"past":      func(t store.Time) string { return past(now().Sub(t.Time())) },
		"role":      func(id agent.ID) string { return agent.RoleWord(id.Role()) },
		"plain":     func(v any) string { return envelope.Plain(fmt.Sprint(v)) },
		"plural":    plural,
		"query":     withQuery,
		"short":     short,
		"stands":    cost.Stands,
		"tall":      func(lines int, text string) bool { return len(text) > 40*lines || strings.Count(text, "\n") >= lines },
		"tone":      tone,
		"unpriced":  func(s *cost.Amounts) string { return cost.Unpriced(s.Sum) },
		"where":     where,
		"elsewhere": attention.Elsewhere,
		"who":       who,
		"words":     func(v any) string { return strings.ReplaceAll(envelope.Plain(fmt.Sprint(v)), "_", " ") },
	}
}

// span writes a duration with one unit, as the script does too.
func span(d time.Duration) string {
	switch {
	case d < time.Second:
		return "now"
	case d < time.Minute:
		return fmt.Sprintf("%d s", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%d min", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", d/time.Hour)
	}
	return fmt.Sprintf("%d d", d/(24*time.Hour))
}

// past writes how long ago something was.
func past(d time.Duration) string {
	if text := span(d); text != "now" {
		return text + " ago"
	}
	return "now"
}

// elapsed writes the time between two moments.
func elapsed(from, to store.Time) string {
	d := to.Time().Sub(from.Time())
	switch {
	case from == 0 || to == 0 || d < 0:
		return ""
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return span(d)
}

// excerpt returns the beginning of a text, on one line.
func excerpt(n int, text string) string {
	if len(text) > 8*n {
		text = strings.ToValidUTF8(text[:8*n], "") // don't process a megabyte
	}
	text = strings.Join(strings.Fields(envelope.Plain(text)), " ")
	if utf8.RuneCountInString(text) <= n {
		return text
	}
	return strings.TrimSpace(string([]rune(text)[:n])) + "…"
}

// onPageText is how many bytes of a text a page shows; the API returns all of it.
const onPageText = 64 << 10

// head returns the beginning of a text, with its line breaks.
func head(text string) string {
	if len(text) > onPageText {
		text = strings.ToValidUTF8(text[:onPageText], "")
	}
	return envelope.Plain(text)
}

// short abbreviates an id, so that a person can still tell it from others.
func short(id string) string {
	const head, tail = 10, 4
	id = envelope.Plain(id)
	if r := []rune(id); len(r) > head+tail+2 {
		return string(r[:head]) + "…" + string(r[len(r)-tail:])
	}
	return id
}

// here marks the navigation's entry for the current page or its section.
func here(section, link string, sub bool) template.HTMLAttr {
	switch {
	case section != link:
		return ""
	case sub:
		return ` aria-current="true"`
	}
	return ` aria-current="page"`
}

// href returns the page of a record.
func href(kind string, id any) string { return "/" + kind + "/" + url.PathEscape(fmt.Sprint(id)) }

// pageOf returns the page of an agent; of the owner, the messages.
func pageOf(id agent.ID) string {
	if !id.IsAgent() {
		return withQuery("/messages", "with", id)
	}
	return href("agents", id)
}

// where returns the page of the record with the id, whatever kind it is.
func where(id string) string { return "/find?" + url.Values{"q": {id}}.Encode() }

// withQuery returns a page's address with a query: withQuery "/tasks" "state" "open".
func withQuery(page string, pairs ...any) string {
	v := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if text := fmt.Sprint(pairs[i+1]); text != "" {
			v.Set(fmt.Sprint(pairs[i]), text)
		}
	}
	if len(v) == 0 {
		return page
	}
	return page + "?" + v.Encode()
}

// who returns an address as pages name it.
func who(id agent.ID) string {
	switch id {
	case agent.Owner:
		return "you"
	case "":
		return "unknown" // no readable envelope names the sender
	}
	return envelope.Plain(string(id))
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}

// keyOf returns an element's key for the script; the parts may contain any characters.
func keyOf(parts ...any) string {
	words := make([]string, 0, len(parts))
	for _, p := range parts {
		words = append(words, url.QueryEscape(fmt.Sprint(p)))
	}
	return strings.Join(words, "-")
}

// fieldsOf returns a log entry's fields by name.
func fieldsOf(m map[string]any) []string {
	list := make([]string, 0, len(m))
	for _, name := range slices.Sorted(maps.Keys(m)) {
		list = append(list, excerpt(200, fmt.Sprintf("%s %v", name, m[name])))
	}
	return list
}

// glyphs are the shapes in part_glyphs.html. Each state has its own shape, so that
// colour is not needed to tell them apart.
var glyphs = []string{
	"starting", "idle", "busy", "waiting", "blocked", "hung", "dead", "crash-looping", "down", "unknown",
	"queued", "claimed", "delivered", "answered", "failed", "poisoned", "cancelled", "expired",
	"open", "in_progress", "done", "clean", "dirty", "ahead", "conflict", "landed", "checked", "well", "message", "session_start", "session_end", "note", "log",
}

// glyph returns the shape for a word of the records.
func glyph(word any) string {
	w := fmt.Sprint(word)
	switch w {
	case "input_pending", "phone_waits", "sent", "arrived":
		w = "queued"
	case "input_consumed", "phone_heard", "phone_sent":
		w = "delivered"
	case "input_cancelled", "phone_dropped":
		w = "cancelled"
	case "phone_failed":
		w = "failed"
	case "task_created":
		w = "open"
	case "task_started", "started":
		w = "in_progress"
	case "task_ended":
		w = "done"
	case "proved", "passed":
		w = "checked"
	case "pushed":
		w = "ahead"
	case "running", "begun":
		w = "starting"
	case "broken":
		w = "hung"
	case "undone", "gone", "void":
		w = "cancelled"
	}
	if slices.Contains(glyphs, w) {
		return w
	}
	return "unknown"
}

// tone returns the colour for a word of the records: good, busy, wait, bad, off.
func tone(word any) string {
	switch fmt.Sprint(word) {
	case "busy", "in_progress", "starting", "started", "claimed", "dirty", "running", "begun":
		return "busy"
	case "idle", "delivered", "answered", "done", "well", "phone_heard", "phone_sent", "checked", "proved", "passed", "landed", "pushed":
		return "good"
	case "waiting", "queued", "sent", "arrived", "open", "phone_waits", "phone_unconfirmed", "ahead", store.LevelWarn:
		return "wait"
	case "blocked", "hung", "dead", "crash-looping", "failed", "poisoned", "phone_failed", "conflict", "gone", "broken", store.LevelError:
		return "bad"
	}
	return "off"
}
