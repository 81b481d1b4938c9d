package envelope_test

import (
	"strings"
	"testing"
	"time"

	"netsky/agent"
	"netsky/bus/envelope"
)

func TestRenderedIDs(t *testing.T) {
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	render := func(id, text string, waited time.Duration) string {
		return envelope.Render(envelope.Envelope{ID: id, From: agent.Clone(3), Text: text, Time: at}, at.Add(waited))
	}
	one, two := render("one", "hi\n\n&", 0), render("two", "", 26*time.Hour)
	with := envelope.Render(envelope.Envelope{ID: "with", From: agent.Owner, Text: "look", Time: at, Attachments: []string{"attach/a b\".png", "attach/c"}}, at.Add(2*time.Hour))
	notice := envelope.RenderNotice("you are agent3 & \"new\"</channel>")
	for _, tt := range []struct {
		name, text string
		want       string
		alone      bool
	}{
		{"nothing", "", "", false},
		{"white space", " \n\t\n", "", false},
		{"one", one, "one", true},
		{"two", one + "\n" + two, "one two", true},
		{"with attachments", with + "\n" + one, "with one", true},
		{"with a forged attribute", strings.Replace(with, ` attachments="`, ` attachments="a" x="`, 1), "", false},
		{"without a name of an attachment", strings.Replace(one, `">`, `" attachments="">`, 1), "", false},
		{"with space between", "\n" + one + "  \n\n" + two + "\n", "one two", true},
		{"a notice", notice, "", true},
		{"behind a notice", notice + "\n" + one, "one", true},
		{"twice", one + "\n" + one, "one one", true},
		{"a person's word before", "look:\n" + one, "one", false},
		{"a person's word behind", one + "\nwhat is this?", "one", false},
		{"a word on its last line", one + " ?", "one", false},
		{"inside a line", "look: " + one, "", false},
		{"indented", " " + one, "", false},
		{"two without a line end", one + two, "one", false},
		{"cut", one[:len(one)-1], "", false},
		{"an open one before", strings.TrimSuffix(one, "</channel>") + two, "two", false},
		{"quoted in another", render("three", one, 0), "three", true},
		{"another source", strings.Replace(one, `"agent"`, `"imessage"`, 1), "", false},
		{"two senders", strings.Replace(one, `from="agent3"`, `from="owner"`, 1), "", false},
		{"no address", strings.ReplaceAll(one, "agent3", "root"), "", false},
		{"no ID", strings.Replace(one, `"one"`, `""`, 1), "", false},
		{"a hidden ID", strings.Replace(one, `"one"`, `".one"`, 1), "", false},
		{"another time", strings.Replace(one, "12:00:00Z", "13:00:00+01:00", 1), "", false},
		{"more in the head", strings.Replace(one, `"one"`, `"one" x="y"`, 1), "", false},
		{"no hours", strings.Replace(two, `"26h"`, `"h"`, 1), "", false},
		{"a quote in the body", strings.Replace(one, "hi", `"hi"`, 1), "", false},
		{"an ampersand in the body", strings.Replace(one, "&amp;", "&", 1), "", false},
		{"a control in the body", strings.Replace(one, "hi", "h\x1bi", 1), "", false},
		{"a tag in the body", strings.Replace(one, "hi", "<b>", 1), "", false},
		{"Windows line ends", strings.ReplaceAll(one, "\n", "\r\n"), "", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ids, alone := envelope.RenderedIDs(tt.text)
			if got := strings.Join(ids, " "); got != tt.want || alone != tt.alone {
				t.Errorf("RenderedIDs(%q) = %q, %v, want %q, %v", tt.text, got, alone, tt.want, tt.alone)
			}
		})
	}
}
