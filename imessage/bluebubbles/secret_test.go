package bluebubbles_test

import (
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"netsky/imessage/bluebubbles"
	"netsky/internal/testworld"
	"netsky/phone/chat"
)

// What the advice says works: another password in the file counts at once, without a new
// transport, and neither one is told to anybody.
func TestPasswordChanges(t *testing.T) {
	t.Parallel()
	m := newMac(t)
	file := passwordFile(t, "old battery", 0o600)
	tr := m.open(t, func(o *bluebubbles.Options) { o.PasswordFile = file })
	var d *chat.Degraded
	if _, err := tr.Next(t.Context(), ""); !errors.As(err, &d) || !strings.Contains(d.Reason, "refused") {
		t.Fatalf("Next: %v", err)
	}
	mustReplace(t, file, password)
	cursor := mustBegin(t, tr)
	m.add(object{"text": "after"})
	if _, texts := mustNext(t, tr, cursor); !slices.Equal(texts, []string{"after"}) {
		t.Errorf("with the right password: %q", texts)
	}

	// The server repeats the password before, while the file has another one.
	another := sync.OnceFunc(func() { mustReplace(t, file, "another battery") })
	m.set(func() {
		m.fault = func(w http.ResponseWriter, r *http.Request) bool {
			another()
			failure(w, 500, "no: "+r.URL.RawQuery+" "+r.URL.Query().Get("guid"), nil)
			return true
		}
	})
	_, err := tr.Next(t.Context(), "")
	if err == nil || leaks(err.Error()) {
		t.Errorf("Next: %v", err)
	}

	testworld.Must(t, os.Chmod(file, 0o644))
	if _, err = tr.Next(t.Context(), ""); !errors.As(err, &d) || !strings.Contains(d.Reason, "can be read by others") || !strings.Contains(d.Next, "chmod 600") {
		t.Errorf("Next: %v", err)
	}
}

func mustReplace(tb testing.TB, file, text string) {
	tb.Helper()
	next := file + ".next"
	err := os.WriteFile(next, []byte(text), 0o600)
	if err == nil {
		err = os.Rename(next, file)
	}
	testworld.Equal(tb, err, nil)
}

// Nothing waits for the other end of a pipe, be it the password's file or one to send.
func TestPipes(t *testing.T) {
	t.Parallel()
	fifo := filepath.Join(t.TempDir(), "fifo")
	testworld.Must(t, unix.Mkfifo(fifo, 0o600))
	m := newMac(t)
	tr := m.open(t, nil)
	done := make(chan [2]error, 1)
	go func() {
		_, opened := bluebubbles.Open(bluebubbles.Options{URL: m.url, PasswordFile: fifo})
		out := text("a")
		out.File = fifo
		_, sent := tr.Send(t.Context(), out)
		done <- [2]error{opened, sent}
	}()
	select {
	case errs := <-done:
		for _, err := range errs {
			testworld.Fails(t, err, "not a", "a pipe")
		}
	case <-time.After(20 * time.Second):
		t.Fatal("a pipe is waited for")
	}
}

// A link among the files to send, and what must not be sent, stay here.
func TestSendFileRefused(t *testing.T) {
	t.Parallel()
	m := newMac(t)
	dir := t.TempDir()
	target := filepath.Join(dir, "token")
	testworld.Must(t, os.WriteFile(target, []byte("hush"), 0o600))
	testworld.Must(t, os.Symlink(target, filepath.Join(dir, "link")))
	tr := m.open(t, func(o *bluebubbles.Options) {
		o.Refuse = func(path string) error {
			if filepath.Base(path) == "token" {
				return errors.New("belongs to netsky")
			}
			return nil
		}
	})
	for name, want := range map[string]string{"token": "belongs to netsky", "link": "symbolic link"} {
		out := text("")
		out.File = filepath.Join(dir, name)
		if r, err := tr.Send(t.Context(), out); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %+v, %v, want an error with %q", name, r, err, want)
		}
	}
	testworld.Len(t, m.get().sent, 0, "sent")
}

// A server that sends an attachment a byte now and then, or never begins, keeps nobody waiting
// for ever: what the owner writes is acted on in its order.
func TestOpenSlow(t *testing.T) {
	t.Parallel()
	m := newMac(t)
	m.fault = func(w http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, "/b/download") {
			w.(http.Flusher).Flush()
		}
		<-r.Context().Done()
		return true
	}
	tr := m.open(t, func(o *bluebubbles.Options) { o.Fetch = 50 * time.Millisecond })
	for _, guid := range []string{"a", "b"} {
		done := make(chan error, 1)
		go func() { done <- fetch(t, tr, guid) }()
		select {
		case err := <-done:
			if err == nil || leaks(err.Error()) {
				t.Errorf("%s: %v", guid, err)
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("%s: waited for", guid)
		}
	}
}

// fetch reads an attachment to its end.
func fetch(tb testing.TB, tr *bluebubbles.Transport, guid string) error {
	r, err := tr.Open(tb.Context(), chat.Attachment{GUID: guid}, 1000)
	if err != nil {
		return err
	}
	defer r.Close()
	_, err = io.ReadAll(r)
	return err
}
