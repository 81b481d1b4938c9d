package view

import (
	"fmt"
	"strings"

	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/internal/words"
	"netsky/store"
)

// Mail formats a message: a line about it, and its text, indented.
func Mail(e bus.Entry) string {
	v := e.Envelope
	kind := ""
	if v.Kind != envelope.KindMessage {
		kind = "  " + string(v.Kind)
	}
	if (v.Kind == envelope.KindApproval || v.Kind == envelope.KindNotice) && !bus.ByCode(v.Via) && v.From.IsAgent() { // else netsky's
		kind += ", in its own words"
	}
	about := ""
	if v.InReplyTo != "" {
		about = "  to " + v.InReplyTo
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s%s%s  (%s)\n", v.Time.Local().Format("2006-01-02 15:04:05"), v.From, kind, about, v.ID)
	for l := range strings.SplitSeq(v.Text, "\n") {
		fmt.Fprintf(&b, "    %s\n", l)
	}
	if v.Via == bus.ViaLinkCode {
		fmt.Fprintf(&b, "    (its commands are for %s: type them there, or after `netsky --on %[1]s`)\n", v.From.Host())
	}
	if e.Why != "" {
		fmt.Fprintf(&b, "    (%s)\n", e.Why)
	}
	return envelope.Plain(b.String())
}

// FoundLines returns a line about a record that was found, and its beginning.
func FoundLines(f store.Found) []string {
	who := string(f.From)
	if f.To != "" {
		who += " → " + string(f.To)
	}
	file := ""
	if f.File != "" {
		file = "  in " + f.File
	}
	about := ""
	if f.About != "" {
		about = "  about " + words.Brief(f.About, 60)
	}
	return []string{
		fmt.Sprintf("%s  %-7s  %s  (%s)%s%s", Stamp(f.Time), f.Kind, who, f.ID, about, file),
		"    " + words.Brief(strings.Join(strings.Fields(f.Text), " "), 160),
	}
}
