package imessage_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"netsky/imessage"
	"netsky/imessage/chatdb"
	"netsky/internal/messagesim"
	"netsky/internal/testworld"
	"netsky/phone/chat"
)

func mustWrite(tb testing.TB, path, text string) string {
	tb.Helper()
	testworld.Must(tb, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestFile(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, nil)
	path := mustWrite(t, filepath.Join(t.TempDir(), "a report.pdf"), "hello")
	r := w.send(chat.Outgoing{Chat: direct, File: path})
	testworld.Equal(t, r.State, chat.Sent, "receipt %+v", r)
	c := w.script.Calls()[0]
	staged := c.Args[4]
	below := filepath.Join(filepath.Dir(w.sim.Path), "Attachments", "netsky")
	if c.Args[3] != "file" || !strings.HasPrefix(staged, below+"/") || filepath.Base(staged) != "a report.pdf" {
		t.Errorf("argv %q", c.Args)
	}
	testworld.Equal(t, string(testworld.Got(os.ReadFile(staged))(t)), "hello")
}

func TestRefusedFiles(t *testing.T) {
	t.Parallel()
	dir := testworld.Got(filepath.EvalSymlinks(t.TempDir()))(t)
	w := mustWorld(t, nil)
	home := filepath.Join(dir, "home")
	w.open(func(o *imessage.Options) {
		o.Refuse = func(path string) error {
			if strings.HasPrefix(path, home+"/") {
				return errors.New("netsky's own")
			}
			return nil
		}
	})
	ok := mustWrite(t, filepath.Join(dir, "ok"), "x")
	testworld.Must(t, errors.Join(os.Mkdir(home, 0o700), os.Symlink(ok, filepath.Join(dir, "link")), os.Symlink(home, filepath.Join(dir, "way")),
		syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600)))
	mustWrite(t, filepath.Join(home, "secret"), "x")
	testworld.Must(t, os.Truncate(mustWrite(t, filepath.Join(dir, "huge"), ""), 100<<20+1))
	for _, name := range []string{"link", "pipe", "huge", "gone", "home", "home/secret", "way/secret", "home/../home/secret"} {
		if r, err := w.Send(t.Context(), chat.Outgoing{Chat: direct, File: dir + "/" + name}); err == nil {
			t.Errorf("%s: %+v", name, r)
		}
	}
	if r, err := w.Send(t.Context(), chat.Outgoing{Chat: direct, File: "ok"}); err == nil {
		t.Errorf("a relative path: %+v", r)
	}
	testworld.Equal(t, len(w.script.Calls()), 0, "calls")
	if list, _ := os.ReadDir(filepath.Join(filepath.Dir(w.sim.Path), "Attachments", "netsky")); len(list) > 0 {
		t.Errorf("left: %v", list)
	}
}

// A file that is tried again and again, for a day, does not leave a copy each time.
func TestCopiesOfTries(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, nil)
	out := chat.Outgoing{Chat: direct, File: mustWrite(t, filepath.Join(t.TempDir(), "a.png"), "hello")}
	copies := func() int {
		list, _ := os.ReadDir(filepath.Join(filepath.Dir(w.sim.Path), "Attachments", "netsky"))
		return len(list)
	}
	w.script.Mode("-600", "-600", "ok")
	for range 2 {
		if r := w.send(out); !r.Again {
			t.Fatalf("receipt %+v", r)
		}
	}
	testworld.Equal(t, copies(), 0, "copies after two tries")
	if r := w.send(out); r.State != chat.Unconfirmed || copies() != 1 {
		t.Errorf("receipt %+v, %d copies: Messages may still read it", r, copies())
	}
	w.open(func(o *imessage.Options) { o.Env = []string{"PATH=/nowhere"} })
	if r, err := w.Send(t.Context(), out); err == nil || copies() != 1 {
		t.Errorf("without osascript: %+v, %v, %d copies", r, err, copies())
	}
}

// Copies are removed a day later; what is not ours stays.
func TestCopiesRemoved(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, nil)
	now := time.Now()
	w.open(func(o *imessage.Options) { o.Now = func() time.Time { return now } })
	dir := filepath.Join(filepath.Dir(w.sim.Path), "Attachments", "netsky")
	name := func(age time.Duration) string {
		return filepath.Join(dir, fmt.Sprintf("netsky-%013d-0123456789abcdef", now.Add(-age).UnixMilli()))
	}
	old, fresh, other := name(25*time.Hour), name(23*time.Hour), filepath.Join(dir, "netsky-old")
	for _, d := range []string{old, fresh, other} {
		testworld.Must(t, os.MkdirAll(d, 0o700))
		mustWrite(t, filepath.Join(d, "f"), "x")
	}
	w.send(chat.Outgoing{Chat: direct, Text: "x"})
	for path, want := range map[string]bool{old: false, fresh: true, other: true} {
		if _, err := os.Stat(path); (err == nil) != want {
			t.Errorf("%s: %v, want there = %v", path, err, want)
		}
	}
	now = now.Add(2 * time.Hour)
	w.send(chat.Outgoing{Chat: direct, Text: "x"})
	testworld.Fails(t, testworld.Err(os.Stat(fresh)), "", "a copy of 25 hours is still there")
}

// What arrived can be read through the transport.
func TestReading(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, nil)
	b, err := w.Next(t.Context(), "")
	testworld.Must(t, err)
	path := mustWrite(t, filepath.Join(filepath.Dir(w.sim.Path), "Attachments", "f"), "hello")
	w.sim.Insert(messagesim.Message{From: friend, Text: "look", Files: []messagesim.File{{GUID: "f", Name: "f", Path: path, State: 5}}})
	if b, err = w.Next(t.Context(), b.Cursor); err != nil || len(b.Messages) != 1 || b.Messages[0].Text != "look" {
		t.Fatalf("Next = %+v, %v", b, err)
	}
	f, err := w.Open(t.Context(), b.Messages[0].Attachments[0], 10)
	testworld.Must(t, err)
	f.Close()
	testworld.Len(t, testworld.Got(w.History(t.Context(), b.Messages[0].Chat, 5))(t), 1, "History")
}

func TestCheck(t *testing.T) {
	t.Parallel()
	states := func(w *world) (all string, by map[string]chat.FactState) {
		by = make(map[string]chat.FactState)
		for _, f := range w.Check(t.Context()) {
			by[f.Name] = f.State
			all += f.Name + " " + string(f.State) + ": " + f.Detail + " (" + f.Next + ")\n"
		}
		return all, by
	}
	w := mustWorld(t, nil)
	w.script.Mode("ok", "-1743=de")
	all, by := states(w)
	if by["chat.db"] != chat.OK || by["osascript"] != chat.OK || by["Messages"] != chat.OK || by["files to send"] != chat.OK || by["sending"] != chat.Unchecked {
		t.Errorf("a Mac that works:\n%s", all)
	}
	all, by = states(w)
	if by["Messages"] != chat.Bad || !strings.Contains(all, "Automation") {
		t.Errorf("without permission:\n%s", all)
	}
	if calls := w.script.Calls(); len(calls) != 2 || !calls[0].Known || len(calls[0].Args) != 0 && len(calls[0].Args) != 1 {
		t.Errorf("calls %+v", calls)
	}

	// A machine that is no Mac.
	nowhere := filepath.Join(t.TempDir(), "Library", "Messages", "chat.db")
	w.open(func(o *imessage.Options) {
		o.DB, o.Env = chatdb.New(chatdb.Options{Path: nowhere}), []string{"PATH=/nowhere"}
	})
	all, by = states(w)
	for name, state := range by {
		if state != chat.Unchecked {
			t.Errorf("%s is %s elsewhere than on a Mac:\n%s", name, state, all)
		}
	}
	testworld.Fails(t, testworld.Err(os.Stat(filepath.Dir(filepath.Dir(nowhere)))), "", "Check made directories of Messages'")
}
