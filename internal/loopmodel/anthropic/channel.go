package anthropic

import (
	"fmt"
	"strings"

	"netsky/internal/loopmodel"
)

// A Message is one `<channel source="agent" …>` in what was said.
type Message struct {
	From, ID string
	Text     string // with & < > " ' unescaped
}

// Messages returns the messages in a text, in order. Notices, which have no id, are
// left out.
func Messages(text string) []Message {
	var list []Message
	for {
		_, rest, ok := strings.Cut(text, "<channel ")
		if !ok {
			return list
		}
		head, rest, ok := strings.Cut(rest, ">")
		body, after, closed := strings.Cut(rest, "</channel>")
		if !ok || !closed {
			return list
		}
		if id := attribute(head, "id"); id != "" {
			list = append(list, Message{From: attribute(head, "from"), ID: id, Text: loopmodel.Unescape(strings.Trim(body, "\n"))})
		}
		text = after
	}
}

func attribute(head, name string) string {
	_, rest, _ := strings.Cut(" "+head, " "+name+`="`)
	value, _, _ := strings.Cut(rest, `"`)
	return loopmodel.Unescape(value)
}

// ReplyTool is the tool with which a model answers a message.
const ReplyTool = "mcp__agent__reply"

// ReplyAll is a rule: each new message is answered with the reply tool, and the turn
// ends with a short text. The answer is what the message orders to say (see
// Directives), else its echo; tools that it orders are called before the reply, in the
// same answer. Input without a message is left to older rules.
func ReplyAll(q Request) *Reply {
	var list []Message
	for _, text := range q.News() {
		list = append(list, Messages(text)...)
	}
	if len(list) == 0 {
		return nil
	}
	if q.Fresh == 0 {
		return &Reply{Text: fmt.Sprintf("answered %d", len(list))}
	}
	all := &Reply{}
	for _, m := range list {
		o := obey(q, m.Text)
		if o.reply.Status != 0 {
			return &o.reply
		}
		if o.text == "" {
			o.text = echo(m.Text)
		}
		all.Delay = max(all.Delay, o.reply.Delay)
		all.Calls = append(all.Calls, o.reply.Calls...)
		all.Calls = append(all.Calls, Call{Name: ReplyTool, Arguments: map[string]any{"id": m.ID, "text": o.text}})
	}
	return all
}
