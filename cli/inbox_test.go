package cli_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"netsky/agent"
	"netsky/home"
	"netsky/internal/testworld"
)

// Much mail is printed many messages at once, as a reader that has to be waited for after
// each may be slow to run. What the reader did not take stays new, to the message.
func TestInboxAtOnce(t *testing.T) {
	t.Parallel()
	w := mustWorld(t)
	w.must(t, "netsky", "channel", "send", "owner", "hello")
	inbox := w.mustHome(t).Path(home.Mailbox(agent.Owner), "inbox")
	const all = 400
	for i := range all {
		mustMail(t, inbox, i)
	}
	read := func(most int) (text string, reads int) {
		t.Helper()
		r, wr, err := os.Pipe()
		testworld.Must(t, err)
		defer r.Close()
		cmd := w.command(t.Context(), "netsky", "inbox")
		cmd.Stdout = wr
		testworld.Must(t, cmd.Start())
		wr.Close()
		var got strings.Builder
		for buf := make([]byte, 1<<20); got.Len() < most; reads++ {
			n, err := r.Read(buf[:min(len(buf), most-got.Len())])
			if n == 0 || err != nil {
				break
			}
			got.Write(buf[:n])
		}
		r.Close()
		testworld.Must(t, cmd.Wait())
		return got.String(), reads
	}
	const part = 5000
	first, _ := read(part)
	rest, reads := read(1 << 30)
	for i := range all {
		name := fmt.Sprintf("(m-bench-%d)\n    hello\n", i)
		before := strings.Contains(first, name) // the last may have been taken in part
		if again := strings.Contains(rest, name); again == before {
			t.Errorf("%q was taken: %v, and printed again: %v", name, before, again)
		}
	}
	if len(first) != part || reads > all/4 {
		t.Errorf("%d bytes, then %d reads; want %d, and fewer reads than a quarter of the messages", len(first), reads, part)
	}
}
