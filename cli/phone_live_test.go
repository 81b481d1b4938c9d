//go:build live

package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"netsky/agent"
	"netsky/home"
	"netsky/internal/testworld"
	"netsky/phone"
	"netsky/phone/record"
	"netsky/store"
)

// texts is what the phone was sent, in order.
func (w *phoneWorld) texts() (list []string) {
	for _, c := range w.script.Calls() {
		if !c.Known {
			w.t.Errorf("osascript was given another script: %q", c.Args)
		}
		list = append(list, strings.Join(c.Args, "\x00"))
	}
	return list
}

// gets waits until the phone gets a text with one of these in it.
func (w *phoneWorld) gets(part ...string) {
	w.t.Helper()
	has := func(part string) bool { return w.count(part) > 0 }
	testworld.WaitOr(w.t, func() bool { return slices.ContainsFunc(part, has) }, func() string {
		data, _ := os.ReadFile(filepath.Join(w.world.home, "logs", "netsky.jsonl"))
		return fmt.Sprintf("the phone did not get %q, but %q\n%s", part, w.texts(), data[max(0, len(data)-4000):])
	})
}

func (w *phoneWorld) count(part string) (n int) {
	for _, text := range w.texts() {
		if strings.Contains(text, part) {
			n++
		}
	}
	return n
}

// records opens the records for reading.
func (w *phoneWorld) records(read func(record.Records) bool) bool {
	db, err := store.OpenRead(w.t.Context(), w.home)
	if err != nil {
		return false
	}
	defer db.Close()
	return read(record.Records{DB: db})
}

// heard reports whether a text is on record in that state.
func (w *phoneWorld) heard(text, state string) bool {
	return w.records(func(r record.Records) bool {
		list, err := r.HeardSince(w.t.Context(), "messages", "-;"+ownerHandle, time.Now().Add(-time.Hour))
		return err == nil && slices.ContainsFunc(list, func(h record.Heard) bool { return h.Text == text && (h.State == state || state == "") })
	})
}

// said reports whether a text with this in it is on record in that state.
func (w *phoneWorld) said(part, state string) bool {
	return w.records(func(r record.Records) bool {
		list, err := r.Talk(w.t.Context(), 1000)
		return err == nil && slices.ContainsFunc(list, func(s record.Turn) bool {
			return s.From == "netsky" && strings.Contains(s.Text, part) && s.State == state
		})
	})
}

// killDaemon kills the daemon, and returns when it is gone.
func (w *phoneWorld) killDaemon() {
	w.t.Helper()
	pid := 0
	data, err := os.ReadFile(filepath.Join(w.world.home, home.DaemonPID))
	if err == nil {
		_, err = fmt.Sscan(string(data), &pid)
	}
	if err != nil || pid <= 1 {
		w.t.Fatalf("no daemon to kill: %v", err)
	}
	testworld.Must(w.t, syscall.Kill(pid, syscall.SIGKILL))
	testworld.Wait(w.t, "the daemon is gone", func() bool { return syscall.Kill(pid, 0) != nil })
}

// mailed reports whether an agent has received a text.
func (w *phoneWorld) mailed(id agent.ID, text string) bool {
	for _, place := range []string{"inbox", "claimed", "delivered"} {
		files, _ := filepath.Glob(filepath.Join(w.world.home, home.Mailbox(id), place, "*.json"))
		for _, f := range files {
			if data, err := os.ReadFile(f); err == nil && strings.Contains(string(data), text) {
				return true
			}
		}
	}
	return false
}

func TestPhone(t *testing.T) {
	t.Parallel()
	w := mustPhone(t, "")
	w.must(t, "netsky", "up", "1", "--type", "demo", "--no-attach")
	if s, err := phone.Load(w.home); err != nil || s.Cursor == "" {
		t.Errorf("up returned before reading had begun: %+v, %v", s, err)
	}
	w.says("agent1: good morning")
	w.gets("[agent1] ")
	w.says("status")
	w.gets("agent1 idle", "agent1 busy") // it has answered, and may not have reported that it rests
	w.says("peek agent1")
	w.gets("good morning")
	if out := w.must(t, "netsky", "imessage", "history"); !strings.Contains(out, "owner: agent1: good morning") || !strings.Contains(out, " agent1: agent1 (demo) received: good morning") {
		t.Errorf("history:\n%s", out)
	}
	for text, want := range map[string]string{"good morning": "  phone heard    owner", "[agent1] ": "  phone sent     owner"} {
		id := ""
		w.records(func(r record.Records) bool {
			list, err := r.Talk(t.Context(), 100)
			for _, s := range list {
				if err == nil && id == "" && strings.Contains(s.Text, text) {
					id = s.Message
				}
			}
			return err == nil
		})
		mustContain(t, "show "+id, w.must(t, "netsky", "show", id), want)
	}
	if out := w.must(t, "netsky", "imessage", "send", "a test"); out != "sent to "+ownerHandle+"\n" || w.count("[netsky] a test") != 1 {
		t.Errorf("send: %s; the phone got %q", out, w.texts())
	}
}

// What is texted before anybody has looked is never read, so up says if nobody has. Once reading
// has begun, what is texted while it is not possible waits.
func TestPhoneUnread(t *testing.T) {
	t.Parallel()
	w := mustPhone(t, "")
	away := w.sim.Path + ".away"
	move := func(from, to string) {
		testworld.Must(t, os.Rename(from, to))
	}
	const unread = "phone: reading has not begun: "
	up := func() string { return w.must(t, "netsky", "up", "0", "--type", "demo", "--no-attach") }
	move(w.sim.Path, away)
	mustContain(t, "up without the database of Messages", up(), unread, "what you text before it has is never read", w.sim.Path+": there is no such file")
	mustContain(t, "status without it", w.must(t, "netsky", "status"), "there is no such file; what you write there before it can be is never read")
	move(away, w.sim.Path)
	testworld.Wait(t, "reading to begin", func() bool { return !strings.Contains(up(), unread) }) // up waits for a while only, and says so
	w.killDaemon()
	w.says("good evening")
	testworld.Lacks(t, up(), unread, "up after reading has begun")
	w.gets("good evening")
}

// A daemon that was running when the phone was enabled does not know of it.
func TestPhoneEnabledLater(t *testing.T) {
	t.Parallel()
	w := mustPhone(t, "")
	toml := filepath.Join(w.world.home, home.ConfigFile)
	text, err := os.ReadFile(toml)
	if err == nil {
		err = os.Remove(toml)
	}
	testworld.Must(t, err)
	up := func() string { return w.must(t, "netsky", "up", "0", "--type", "demo", "--no-attach") }
	up()
	testworld.Must(t, os.WriteFile(toml, text, 0o600))
	mustContain(t, "up beside that daemon", up(), "phone: reading has not begun: the daemon has not looked yet", "`netsky daemon restart`")
	w.must(t, "netsky", "daemon", "stop")
	testworld.Lacks(t, up(), "phone:", "up after that")
	w.says("good morning")
	w.gets("good morning")
}

// The daemon is killed at each step between a text and its answer: the answer arrives once.
func TestPhoneKilled(t *testing.T) {
	t.Parallel()
	w := mustPhone(t, "")
	w.must(t, "netsky", "up", "0", "--type", "demo", "--no-attach")
	w.answersWhileKilled("demo", func(_ int, text string) string { return text })
}

// answersWhileKilled asks agent0 some questions, and kills the daemon at another step of each.
// ask returns the text that makes agent0 answer with the one given.
func (w *phoneWorld) answersWhileKilled(runtime string, ask func(i int, text string) string) {
	w.t.Helper()
	for i, at := range []struct {
		name string
		when func(asked, text string) bool
	}{
		{"written", func(string, string) bool { return true }},
		{"heard", func(asked, _ string) bool { return w.heard(asked, "") }},
		{"sent on", func(_, text string) bool { return w.mailed(agent.Root, text) }},
		{"done with", func(asked, _ string) bool { return w.heard(asked, "done") }},
		{"answered", func(_, text string) bool { return w.mailed(agent.Owner, text) }},
		{"to be texted", func(_, text string) bool { return w.said(text, "pending") || w.count(text) > 0 }},
		{"being texted", func(_, text string) bool { return w.said(text, "sending") || w.count(text) > 0 }},
		{"texted", func(_, text string) bool { return w.count(text) > 0 }},
	} {
		text := fmt.Sprintf("question %d: %s", i, at.name)
		if at.name == "being texted" {
			w.script.Mode("slow+row")
		}
		asked := ask(i, text)
		w.says(asked)
		testworld.Wait(w.t, at.name, func() bool { return at.when(asked, text) })
		w.killDaemon()
		w.must(w.t, "netsky", "up", "0", "--type", runtime, "--no-attach")
		w.gets(text)
		w.script.Mode("row")
	}
	w.says("status")
	w.gets("agent0 idle", "agent0 busy")
	for _, text := range w.texts() {
		if n := w.count(text); n != 1 {
			w.t.Errorf("%q was sent %d times", text, n)
		}
	}
}

// An alert goes to the phone first, with or without a daemon, and is said to be sent by what is
// known to have sent it.
func TestPhoneEscalates(t *testing.T) {
	t.Parallel()
	w := mustPhone(t, "[escalate]\ncommand = [\"sh\", \"-c\", \"echo \\\"$NETSKY_SUBJECT\\\" >>$HOME/alerts\"]\n")
	alerts := func() string {
		data, _ := os.ReadFile(filepath.Join(w.dir, "u", "alerts"))
		return string(data)
	}
	for _, daemon := range []bool{false, true} {
		if daemon {
			w.must(t, "netsky", "up", "0", "--type", "demo", "--no-attach")
		}
		for i, tt := range []struct{ mode, by string }{
			{"row", "the phone"},
			{"ok", "command sh"},     // nothing shows that it went out
			{"failed", "command sh"}, // Messages marks it as not delivered
			{"-1743", "command sh"},  // no permission
		} {
			w.script.Mode(tt.mode)
			subject := fmt.Sprintf("alert %d, daemon %v, %s", i, daemon, tt.mode)
			testworld.Equal(t, w.must(t, "netsky", "escalate", subject), "sent by "+tt.by+"\n", "%s: printed", subject)
			if got, want := strings.Count(alerts(), subject), map[bool]int{false: 1}[tt.by == "the phone"]; got != want {
				t.Errorf("%s: the command ran %d times, want %d", subject, got, want)
			}
			if n := w.count("[netsky] alert: " + subject); tt.mode != "-1743" && n != 1 {
				data, _ := os.ReadFile(filepath.Join(w.world.home, "logs", "netsky.jsonl"))
				t.Errorf("%s: texted %d times\n%s", subject, n, data[max(0, len(data)-4000):])
			}
		}
	}
}

// An alert that has to wait, and reaches the owner by no other way, is an item that needs them
// until it was sent.
func TestPhoneEscalatesLater(t *testing.T) {
	t.Parallel()
	w := mustPhone(t, "")
	w.must(t, "netsky", "up", "0", "--type", "demo", "--no-attach")
	w.script.Mode("-600")
	out, err := w.command(t.Context(), "netsky", "escalate", "database down").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "netsky: the phone: not sent yet: ") || !strings.Contains(string(out), "it is recorded, and sent when that is possible") {
		t.Fatalf("escalate: %v\n%s", err, out)
	}
	mustContain(t, "needs", w.must(t, "netsky", "needs"), "database down")
	w.script.Mode("row")
	w.gets("[netsky] alert: database down")
	testworld.Wait(t, "it needs nobody any more", func() bool {
		return !strings.Contains(w.must(t, "netsky", "needs"), "database down")
	})
}
