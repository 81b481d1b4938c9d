package bridge_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"netsky/agent"
	"netsky/fleet/bridge"
	"netsky/home"
	"netsky/internal/testworld"
	"netsky/phone/record"

	"netsky/store"
)

// mustWrite writes a file, with the directories above it.
func mustWrite(tb testing.TB, path, text string) string {
	tb.Helper()
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil {
		err = os.WriteFile(path, []byte(text), 0o600)
	}
	testworld.Must(tb, err)
	return path
}

func TestAttach(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		path func(tb testing.TB, h home.Dir, dir string) string
		want string // how the attachment's name ends; "" if it is refused
		says string
	}{
		{name: "a file", want: "-plan.txt", path: func(tb testing.TB, _ home.Dir, dir string) string { return mustWrite(tb, dir+"/plan.txt", "to do") }},
		{name: "an empty file", want: "-none", path: func(tb testing.TB, _ home.Dir, dir string) string { return mustWrite(tb, dir+"/none", "") }},
		{name: "in a workspace", want: "-a.png", path: func(tb testing.TB, h home.Dir, _ string) string {
			return mustWrite(tb, h.Path(home.Workspace("agent1"), "a.png"), "picture")
		}},
		{name: "a link to a file", want: "-link", path: func(tb testing.TB, _ home.Dir, dir string) string {
			return mustLink(tb, mustWrite(tb, dir+"/plan.txt", "to do"), dir+"/link")
		}},
		{name: "newlines in its name", want: "-a_b__c.txt", path: func(tb testing.TB, _ home.Dir, dir string) string {
			return mustWrite(tb, dir+"/a\nb\r\nc.txt", "x")
		}},
		{name: "a hidden file", want: "-.profile", path: func(tb testing.TB, _ home.Dir, dir string) string { return mustWrite(tb, dir+"/.profile", "x") }},
		{name: "other letters", want: "-b_ild____.png", path: func(tb testing.TB, _ home.Dir, dir string) string {
			return mustWrite(tb, dir+"/b\u202eild\u00e9\U0001f600 \x1b.png", "x")
		}},
		{name: "a long name", want: strings.Repeat("n", 76) + ".txt", path: func(tb testing.TB, _ home.Dir, dir string) string {
			return mustWrite(tb, dir+"/"+strings.Repeat("n", 250)+".txt", "x")
		}},
		{name: "as large as may be", want: "-large", path: func(tb testing.TB, _ home.Dir, dir string) string { return mustSize(tb, dir+"/large", bridge.MaxFile) }},

		{name: "too large", says: "has 16777217 bytes; at most 16 MiB are sent", path: func(tb testing.TB, _ home.Dir, dir string) string {
			return mustSize(tb, dir+"/large", bridge.MaxFile+1)
		}},
		{name: "not absolute", says: "plan.txt: must be an absolute path", path: func(testing.TB, home.Dir, string) string { return "plan.txt" }},
		{name: "of the person's", says: "~/plan.txt: must be an absolute path", path: func(testing.TB, home.Dir, string) string { return "~/plan.txt" }},
		{name: "missing", says: "no such file", path: func(_ testing.TB, _ home.Dir, dir string) string { return dir + "/none" }},
		{name: "NUL in its name", says: "invalid argument", path: func(_ testing.TB, _ home.Dir, dir string) string { return dir + "/a\x00b" }},
		{name: "a directory", says: "not a regular file", path: func(_ testing.TB, _ home.Dir, dir string) string { return dir }},
		{name: "a FIFO", says: "not a regular file", path: func(tb testing.TB, _ home.Dir, dir string) string {
			testworld.Must(tb, unix.Mkfifo(dir+"/fifo", 0o600))
			return dir + "/fifo"
		}},
		{name: "a device", says: "not a regular file", path: func(testing.TB, home.Dir, string) string { return "/dev/zero" }},
		{name: "links in a circle", says: "too many links", path: func(tb testing.TB, _ home.Dir, dir string) string {
			mustLink(tb, dir+"/b", dir+"/a")
			return mustLink(tb, dir+"/a", dir+"/b")
		}},
		{name: "a link that leads nowhere", says: "no such file", path: func(tb testing.TB, _ home.Dir, dir string) string {
			return mustLink(tb, dir+"/none", dir+"/link")
		}},
		{name: "netsky's", says: "belongs to netsky", path: func(tb testing.TB, h home.Dir, _ string) string {
			return mustWrite(tb, h.Path(home.ConfigFile), "token")
		}},
		{name: "a link to netsky's", says: "belongs to netsky", path: func(tb testing.TB, h home.Dir, dir string) string {
			return mustLink(tb, mustWrite(tb, h.Path("secret"), "token"), dir+"/link")
		}},
		{name: "netsky's, through a linked directory", says: "belongs to netsky", path: func(tb testing.TB, h home.Dir, dir string) string {
			mustWrite(tb, h.Path("secret"), "token")
			return mustLink(tb, h.Root(), dir+"/link") + "/secret"
		}},
		{name: "netsky's, from a workspace", says: "belongs to netsky", path: func(tb testing.TB, h home.Dir, _ string) string {
			space := filepath.Dir(mustWrite(tb, h.Path(home.Workspace("agent1"), "a.png"), "picture"))
			mustWrite(tb, h.Path("secret"), "token")
			return space + "/../../secret"
		}},
		{name: "the environment", says: "not a plain file", path: func(tb testing.TB, _ home.Dir, _ string) string {
			if _, err := os.Stat("/proc/self/environ"); err != nil {
				tb.Skip("no /proc here")
			}
			return "/proc/self/environ"
		}},
		{name: "the token", says: "holds a password", path: func(tb testing.TB, _ home.Dir, dir string) string { return mustWrite(tb, dir+"/token", "hush") }},
		{name: "a link to the token", says: "holds a password", path: func(tb testing.TB, _ home.Dir, dir string) string {
			return mustLink(tb, mustWrite(tb, dir+"/token", "hush"), dir+"/link")
		}},
		{name: "the token under another name", says: "holds a password", path: func(tb testing.TB, _ home.Dir, dir string) string {
			testworld.Must(tb, os.Link(mustWrite(tb, dir+"/token", "hush"), dir+"/plan.txt"))
			return dir + "/plan.txt"
		}},
		{name: "another's mail", says: "belongs to netsky", path: func(tb testing.TB, h home.Dir, _ string) string {
			return mustWrite(tb, h.Path(home.Mailbox("agent1"), "inbox", "m.json"), "{}")
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := testworld.FastHome(t)
			dir := t.TempDir()
			path := tt.path(t, h, dir)
			name, err := bridge.Tools{Home: h, Secrets: []string{dir + "/token"}}.Attach(path)
			box := h.Path(home.Mailbox(agent.Owner), "attach")
			if tt.want == "" {
				if err == nil || !strings.Contains(err.Error(), tt.says) {
					t.Errorf("Attach = %q, %v, want an error with %q", name, err, tt.says)
				}
				if list, err := os.ReadDir(box); err == nil && len(list) > 0 {
					t.Errorf("refused, and yet %s is there", list[0].Name())
				}
				return
			}
			rel, ok := strings.CutPrefix(name, "attach/")
			if err != nil || !ok || !strings.HasSuffix(name, tt.want) {
				t.Fatalf("Attach = %q, %v, want attach/…%s", name, err, tt.want)
			}
			want, err := os.ReadFile(path)
			testworld.Must(t, err)
			got, err := os.ReadFile(filepath.Join(box, rel))
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("%d bytes were copied (%v), want %d", len(got), err, len(want))
			}
		})
	}
}

func mustLink(tb testing.TB, to, path string) string {
	tb.Helper()
	testworld.Must(tb, os.Symlink(to, path))
	return path
}

// mustSize makes a file of that size, all zeros.
func mustSize(tb testing.TB, path string, size int64) string {
	tb.Helper()
	testworld.Must(tb, os.Truncate(mustWrite(tb, path, ""), size))
	return path
}

// A file that vanishes, comes back, is replaced by a link or grows while it is attached is
// attached as it was at one moment, or refused.
func TestAttachVanishing(t *testing.T) {
	t.Parallel()
	h, dir := testworld.FastHome(t), t.TempDir()
	secret := mustWrite(t, h.Path("secret"), "token")
	path := dir + "/moving"
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 500 {
			os.WriteFile(path, []byte("to do"), 0o600)
			os.Remove(path)
			if i%2 == 0 {
				os.Symlink(secret, path)
				os.Remove(path)
			}
		}
	}()
	tools, sent := bridge.Tools{Home: h}, 0
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		name, err := tools.Attach(path)
		if err != nil {
			continue
		}
		sent++
		text, err := os.ReadFile(h.Path(home.Mailbox(agent.Owner), name))
		if err != nil || len(text) > 0 && string(text) != "to do" {
			t.Fatalf("attached %q, %v", text, err)
		}
	}
	testworld.ErrorIs(t, testworld.Err(tools.Attach(path)), fs.ErrNotExist, "after it has vanished")
	t.Logf("attached %d times", sent)
}

// What did not go out is listed with the reason, on its own line.
func TestHistoryWhy(t *testing.T) {
	t.Parallel()
	h := testworld.FastHome(t)
	db, err := store.Open(t.Context(), h)
	testworld.Must(t, err)
	defer db.Close()
	rec := record.Records{DB: db}
	for _, s := range []record.Said{
		{ID: "a", State: record.Failed, Fact: "Messages is not running (-600)\n2026-11-23 owner: yes"},
		{ID: "b", State: record.Sent, Fact: "sent as SMS"},
	} {
		fact, state := s.Fact, s.State
		s.Line, s.Part, s.Parts, s.Kind, s.State, s.Fact = "messages", 1, 1, "alert", record.Pending, ""
		s.Text, s.Created = "[netsky] text "+s.ID, store.At(time.Now())
		err := rec.Say(t.Context(), s)
		if s, _, _ = rec.Part(t.Context(), s.Line, s.ID); err == nil {
			s.State, s.Fact = state, fact
			err = rec.End(t.Context(), s, time.Now())
		}
		testworld.Must(t, err)
	}
	text, err := bridge.Tools{Home: h}.History(t.Context(), 10)
	lines := strings.Split(text, "\n")
	if err != nil || len(lines) != 2 || !strings.Contains(lines[0], "netsky (failed: Messages is not running (-600) 2026-11-23 owner: yes): text a") || !strings.HasSuffix(lines[1], " netsky: text b") {
		t.Errorf("history: %q, %v", text, err)
	}
}

// A file system that takes SECRET for secret has netsky's files under other names, too; any other
// has nothing there.
func TestAttachOtherLetters(t *testing.T) {
	t.Parallel()
	h := testworld.FastHome(t)
	mustWrite(t, h.Path("secret"), "token")
	other, says := filepath.Join(filepath.Dir(h.Root()), strings.ToUpper(filepath.Base(h.Root())), "SECRET"), "belongs to netsky"
	if _, err := os.Stat(other); err != nil {
		says = "no such file"
	}
	if name, err := (bridge.Tools{Home: h}).Attach(other); err == nil || !strings.Contains(err.Error(), says) {
		t.Errorf("Attach(%s) = %q, %v, want an error with %q", other, name, err, says)
	}
}

// What a model gets of the texts fits: of more the newest.
func TestHistory(t *testing.T) {
	t.Parallel()
	h := testworld.FastHome(t)
	tools := bridge.Tools{Home: h}
	if text, err := tools.History(t.Context(), 10); err != nil || text != "no texts are on record" {
		t.Fatalf("without records: %q, %v", text, err)
	}
	db := testworld.Got(store.Open(t.Context(), h))(t)
	defer db.Close()
	if text, err := tools.History(t.Context(), 10); err != nil || text != "no texts are on record" {
		t.Fatalf("without texts: %q, %v", text, err)
	}
	c := record.Chat{Key: "-;+15550100", GUID: "iMessage;-;+15550100"}
	now := time.Now()
	for i := range 150 {
		testworld.Must(t, record.Records{DB: db}.Say(t.Context(), record.Said{
			Line: "messages", ID: fmt.Sprint(i), Part: 1, Parts: 1, Chat: c, Kind: "alert", State: record.Sent,
			Text: fmt.Sprintf("[netsky] text %d. %s", i, strings.Repeat("words ", 100)), Created: store.At(now.Add(time.Duration(i) * time.Second)),
		}))
	}
	text := testworld.Got(tools.History(t.Context(), 150))(t)
	lines := strings.Split(text, "\n")
	if !strings.Contains(lines[len(lines)-1], "text 149.") || len(text) > 18<<10 {
		t.Errorf("%d bytes, which end in %.60q", len(text), lines[len(lines)-1])
	}
	if want := fmt.Sprintf("(%d older texts are left out: there is no room for more)", 150-len(lines)+1); lines[0] != want {
		t.Errorf("begins with %q, want %q", lines[0], want)
	}
	if text, err := tools.History(t.Context(), 3); err != nil || strings.Count(text, "\n") != 2 || strings.Contains(text, "left out") {
		t.Errorf("the last 3: %q, %v", text, err)
	}
}
