package tmux

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
)

// A block is one command's output, between %begin and %end or %error.
type block struct {
	open    bool
	numbers []byte // "1795222815 273 1": time, number, flags
	text    []byte
}

// endedBy reports whether the line is the word and the block's numbers. Most
// lines are a pane's text, of which nothing is copied here.
func (b *block) endedBy(line []byte, word string) bool {
	return len(line) == len(word)+len(b.numbers) && string(line[:len(word)]) == word && bytes.Equal(line[len(word):], b.numbers)
}

// await waits for the process and then ends what it wrote. The end of the file
// would not do: the process handed its output to the server, which keeps it open
// when it hangs.
func (c *Client) await(stdout *os.File) {
	_ = c.cmd.Wait()
	_, _ = stdout.WriteString("\n" + c.id + "\n")
	stdout.Close()
}

// read is the one goroutine that reads the client's output. It ends when the
// process does and closes done.
func (c *Client) read(r *os.File) {
	defer r.Close()
	lines := bufio.NewReaderSize(r, 64<<10)
	var b block
	var long []byte // a line that does not fit the reader's buffer, as far as it has arrived
	reason := ""
	attached := false
	for {
		part, err := lines.ReadSlice('\n')
		whole := part // usually: then they are not copied
		if len(long) > 0 || err != nil {
			if len(long) < maxReply {
				long = append(long, part...)
			}
			whole = long
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil {
			break
		}
		whole = whole[:len(whole)-1]
		if string(whole) == c.id {
			break
		}
		said := c.take(&b, whole, &attached)
		if said != "" && !attached {
			reason = said
		}
		if cap(long) > 1<<20 {
			long = nil
		}
		long = long[:0]
	}
	if attached {
		c.err = fmt.Errorf("tmux: server %s: %w", c.server.label(), ErrClosed)
	} else {
		c.err = c.server.refusal("attach-session", reason)
	}
	close(c.notices)
	close(c.done)
}

// take handles one line. It returns what is no part of a reply and no notice,
// and the text of a refused attach: the reason why the client could not start.
//
// A pane's text can begin with %end: only the numbers of the open block end it.
func (c *Client) take(b *block, line []byte, attached *bool) string {
	if !b.open {
		switch {
		case bytes.HasPrefix(line, []byte("%begin ")):
			*b = block{open: true, numbers: append(b.numbers[:0], line[len("%begin "):]...), text: b.text[:0]}
		case bytes.HasPrefix(line, []byte("%output ")):
			pane, _, _ := bytes.Cut(line[len("%output "):], []byte(" "))
			if stirred := c.stirred.Load(); stirred != nil {
				(*stirred)(pane)
			}
		case bytes.HasPrefix(line, []byte("%")):
			c.notice(string(line[1:]))
		default:
			return string(line)
		}
		return ""
	}
	failed := false
	switch {
	case b.endedBy(line, "%end "):
	case b.endedBy(line, "%error "):
		failed = true
	default:
		if len(b.text) < maxReply {
			b.text = append(append(b.text, line...), '\n')
		}
		return ""
	}
	b.open = false
	switch {
	case !*attached && failed:
		return string(b.text)
	case !*attached:
		*attached = true
		close(c.ready)
	case bytes.HasSuffix(b.numbers, []byte(" 1")): // a command of this client
		c.reply(b.text, failed)
	}
	return ""
}

// reply adds a command's output to the request that waits for it.
func (c *Client) reply(text []byte, failed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.pending) == 0 {
		return
	}
	req := c.pending[0]
	ended := req.end != "" && !failed && string(text) == req.end+"\n"
	last := ended
	if req.end == "" {
		req.blocks--
		last = failed || req.blocks == 0
	}
	switch {
	case ended:
	case failed:
		if req.err == nil {
			req.err = c.server.refusal(req.verb, string(text))
		}
	case req.text.Len()+len(text) > maxReply:
		req.err = fmt.Errorf("tmux %s: a reply of more than %d bytes", req.verb, maxReply)
	case req.vis:
		if err := unvis(&req.text, text); err != nil && req.err == nil {
			req.err = fmt.Errorf("tmux %s: %w", req.verb, err)
		}
	default:
		req.text.Write(text)
	}
	if last {
		c.pending[0] = nil
		c.pending = c.pending[1:]
		if req.done != nil {
			close(req.done)
		}
	}
}

// notice passes a notification on; if there is no room, the oldest is dropped.
func (c *Client) notice(text string) {
	name, args, _ := strings.Cut(text, " ")
	n := Notice{Name: name, Args: args}
	for {
		select {
		case c.notices <- n:
			return
		default:
		}
		select {
		case <-c.notices:
		default:
		}
	}
}

// single reports whether the reply to line is certainly one block, so that no
// second command has to tell where it ends. It is of a command that carries out
// no other and shows no text of many lines; there is one command, and no more,
// as long as nothing can separate two.
func single(line string) bool {
	switch firstWord(line) {
	case "display-message", "has-session", "kill-window", "link-window", "list-clients", "list-panes",
		"list-sessions", "list-windows", "resize-window", "send-keys", "set-option", "unlink-window":
	default:
		return false
	}
	for i := range len(line) {
		switch c := line[i]; {
		case c == ';', c == '\\', c < ' ':
			return false
		case c == '{' && line[i-1] != '#': // not a format: commands
			return false
		}
	}
	return true
}
