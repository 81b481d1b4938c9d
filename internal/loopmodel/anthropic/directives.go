package anthropic

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"netsky/internal/loopmodel"
)

// Directives answers by the orders in what was just said, each on a line of its
// own that begins with "loop: ":
//
//	loop: sleep 2s         wait before the first answer
//	loop: fail 429         an HTTP error (see Fail)
//	loop: users            say how many texts the user has said
//	loop: model            say which model was asked for
//	loop: say TEXT         say that, after the tools if any are called
//	loop: long             say 200,000 characters
//	loop: shell COMMAND    call the shell tool, then say what it printed
//	loop: write PATH TEXT  write a file, then say what the tool said
//	loop: call TOOL JSON   call any tool, such as mcp__agent__reply
//
// Without any it echoes: "echo: " and the last text, or the messages in it,
// shortened.
func Directives(q Request) *Reply {
	o := obey(q, q.News()...)
	switch {
	case q.Fresh == 0 && len(q.Outputs) > 0: // the tools have been called
		if o.text == "" {
			o.text = "tool: " + short(strings.Join(q.Outputs, "\n"))
		}
		return &Reply{Text: o.text}
	case o.reply.Status != 0 || len(o.reply.Calls) > 0:
	case o.text != "":
		o.reply.Text = o.text
	default:
		o.reply.Text = echo(q.Last())
	}
	return &o.reply
}

func echo(text string) string { return "echo: " + short(gist(text)) }

// gist returns a text without what surrounds its messages.
func gist(text string) string {
	list := Messages(text)
	if len(list) == 0 {
		return text
	}
	var said []string
	for _, m := range list {
		said = append(said, m.Text)
	}
	return strings.Join(said, "\n")
}

// An order collects what the lines of a text ask for.
type order struct {
	q     Request
	reply Reply
	text  string // to be said; "" if no line says what
}

func obey(q Request, texts ...string) order {
	o := order{q: q}
	for _, text := range texts {
		for line := range strings.Lines(text) {
			o.read(line)
		}
	}
	return o
}

func (o *order) read(line string) {
	word, rest, ok := loopmodel.Order(line)
	if !ok {
		return
	}
	first, last, _ := strings.Cut(rest, " ")
	switch word {
	case "sleep":
		o.reply.Delay, _ = time.ParseDuration(rest)
	case "fail":
		status, _ := strconv.Atoi(rest)
		fail := Fail(status)
		fail.Delay = o.reply.Delay
		o.reply = *fail
	case "users":
		o.text = "users: " + strconv.Itoa(len(o.q.Said))
	case "model":
		o.text = "model: " + o.q.Model
	case "say":
		o.text = rest
	case "long":
		o.text = strings.Repeat("x", 200_000)
	case "shell":
		o.reply.Calls = append(o.reply.Calls, Shell(rest))
	case "write":
		o.reply.Calls = append(o.reply.Calls, Write(first, last))
	case "call":
		if !json.Valid([]byte(last)) {
			o.text = "not JSON: " + last
			return
		}
		o.reply.Calls = append(o.reply.Calls, Call{Name: first, Arguments: json.RawMessage(last)})
	}
}
