// This file formats a record's history as lines of text.

package view

import (
	"cmp"
	"fmt"
	"strings"

	"netsky/agent"
	"netsky/internal/words"
	"netsky/store"
)

// row formats an event's time, kind, agent and text, and the line above them.
const storyRow = "  %-12s  %-14s %-20s %s"

// Lines returns the history of one record.
func Lines(t store.Timeline) []string {
	var l lines
	switch {
	case t.Message != nil:
		m := t.Message
		l.add("message %s", m.ID)
		l.add("  from %s to %s%s, sent %s", cmp.Or(string(m.From), "an unknown sender"), m.To, viaWords(m.Via), Stamp(m.Time))
		for text := range strings.SplitSeq(m.Text, "\n") {
			l.add("  | %s", text)
		}
	case t.Session != nil:
		s := t.Session
		l.add("session %s of %s on %s", s.Start, s.Actor, s.Runtime)
		l.add("  started %s%s", Stamp(s.Started), endWords(*s))
		if s.Thread != "" {
			l.add("  conversation %s", s.Thread)
		}
		for text := range strings.SplitSeq(strings.TrimRight(s.LastLines, "\n"), "\n") {
			if text != "" {
				l.add("  | %s", text)
			}
		}
	case t.Note != nil:
		l.note(*t.Note)
	case t.Task != nil:
		l.add("task %s: %s (%s)", t.Task.ID, t.Task.Title, t.Task.Word())
	case t.Actor != nil:
		l.add("on record: %s%s", t.Actor.ID, words.Note(agent.RoleWord(t.Actor.Role)))
		if t.Actor.Objective != "" {
			l.add("  objective %s", t.Actor.Objective)
		}
	default:
		l.add("%s %s", t.Subject.Kind, t.Subject.ID)
	}
	if t.More {
		l.add("  …")
	}
	if len(t.Events) > 0 {
		l.add(storyRow, "time", "event", "agent", "text  (id)")
	}
	day := ""
	for _, e := range t.Events {
		at := e.Time.Time().Local()
		if d := at.Format("2006-01-02"); d != day {
			day = d
			l.add("%s", day)
		}
		who := string(e.Actor)
		if e.To != "" {
			who += " → " + string(e.To)
		}
		text := e.Text
		if e.Kind == string(store.Answered) { // the answer's id
			text = "by " + text
		}
		line := fmt.Sprintf(storyRow, at.Format("15:04:05.000"), strings.ReplaceAll(e.Kind, "_", " "), who, words.Brief(text, 90)+About(e.Ref, t.Subject.ID))
		l.add("%s", strings.TrimRight(line, " "))
	}
	return l
}

type lines []string

func (l *lines) add(format string, args ...any) { *l = append(*l, fmt.Sprintf(format, args...)) }

func (l *lines) note(n store.Note) {
	about := ""
	if n.About != "" {
		about = " about " + n.About
	}
	l.add("note %s", n.ID)
	l.add("  by %s%s, written %s", cmp.Or(n.Author, "nobody"), about, Stamp(n.Created))
	for text := range strings.SplitSeq(n.Text, "\n") {
		l.add("  | %s", text)
	}
}

// NoteLines formats a note.
func NoteLines(n store.Note) []string {
	var l lines
	l.note(n)
	return l
}

func viaWords(via string) string {
	if via == "" {
		return ""
	}
	return " by " + via
}

// About returns the record that another is about, in parentheses; "" if it is the subject.
func About(ref, subject string) string {
	if ref == "" || ref == subject {
		return ""
	}
	return "  (" + ref + ")"
}

func endWords(s store.Session) string {
	switch {
	case s.Ended == 0:
		return ", open: " + string(s.State)
	case s.Status != nil:
		return fmt.Sprintf(", ended %s with status %d%s", Stamp(s.Ended), *s.Status, words.Note(s.Reason))
	case s.Signal != "":
		return fmt.Sprintf(", ended %s by %s%s", Stamp(s.Ended), s.Signal, words.Note(s.Reason))
	}
	if s.Reason == store.EndedUnseen {
		return fmt.Sprintf(", ended before %s; when and how is not known", Stamp(s.Ended))
	}
	return fmt.Sprintf(", ended %s%s", Stamp(s.Ended), words.Note(s.Reason))
}

// Stamp formats a time in the local zone.
func Stamp(t store.Time) string { return t.Time().Local().Format("2006-01-02 15:04:05") }
