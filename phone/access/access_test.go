package access_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"netsky/home"
	"netsky/internal/advice"
	"netsky/internal/testworld"
	"netsky/phone/access"
	"netsky/phone/chat"
)

const file = "state/phone-access.json"

var noon = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

func mustWrite(t *testing.T, h home.Dir, text string) {
	t.Helper()
	testworld.Must(t, h.WriteFile(file, []byte(text), false))
}

func mustLoad(t *testing.T, h home.Dir, owner ...string) access.List {
	t.Helper()
	return testworld.Got(access.Load(h, owner))(t)
}

func TestList(t *testing.T) {
	t.Parallel()
	h := testworld.Home(t)
	const owner, friend, mail = "+1 (555) 010-0000", "+49301234", "Me@Example.ORG"
	l := mustLoad(t, h, owner, mail)
	for handle, want := range map[string]bool{
		"+15550100000": true, "+1-555-010-0000": true, "me@example.org": true, friend: false, "": false, "15550100000": false,
		"chat15550100000": false, "-15550100000": false, "-;+15550100000": false, "+15550100000;x": false,
	} {
		testworld.Equal(t, l.May(handle), want, "May(%q) = %v", handle, !want)
	}
	for _, tt := range []struct {
		c    chat.Chat
		want bool
	}{
		{chat.Chat{Identifier: "+15550100000", Direct: true}, true},
		{chat.Chat{Identifier: "+15550100000"}, false}, // of unknown style
		{chat.Chat{Identifier: "chat123", Direct: true}, false},
		{chat.Chat{Identifier: friend, Direct: true}, false},
		{chat.Chat{Direct: true}, false},
	} {
		testworld.Equal(t, l.OwnerChat(tt.c), tt.want, "OwnerChat(%+v) = %v", tt.c, !tt.want)
	}
	testworld.Equal(t, (access.List{}).May(owner), false, "the zero List allows somebody")
	allow := func(handle string, want bool) {
		t.Helper()
		stored, changed, err := access.Allow(t.Context(), h, handle, noon)
		if err != nil || changed != want || stored != chat.Handle(handle) {
			t.Errorf("Allow(%q) = %q, %v, %v", handle, stored, changed, err)
		}
	}
	allow(friend, true)
	allow(" "+friend+" ", false)
	if !mustLoad(t, h, owner).May(friend) || mustLoad(t, h).May(owner) {
		t.Error("not allowed what the file allows, or allowed what nothing does")
	}
	if _, changed, err := access.Deny(t.Context(), h, owner, noon); err != nil || !changed {
		t.Errorf("Deny: %v, %v", changed, err)
	}
	if _, changed, err := access.Deny(t.Context(), h, owner, noon); err != nil || changed {
		t.Errorf("Deny again: %v, %v", changed, err)
	}
	l = mustLoad(t, h, owner, mail)
	if l.May(owner) || !l.May(friend) || !l.May(mail) {
		t.Error("a denial does not count more than the configuration, or denies others")
	}
	want := []access.Entry{
		{Handle: "me@example.org", By: "configuration"}, {Handle: friend, By: "terminal", Added: noon},
		{Handle: "+15550100000", By: "terminal", Added: noon, Denied: true, Configured: true},
	}
	testworld.EqualList(t, l.Entries(), want)
	if info, err := os.Stat(h.Path(file)); err != nil || info.Mode() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
	allow(owner, true) // ends the denial
	if _, changed, err := access.Remove(t.Context(), h, friend); err != nil || !changed {
		t.Errorf("Remove: %v, %v", changed, err)
	}
	if l := mustLoad(t, h, owner); !l.May(owner) || l.May(friend) {
		t.Errorf("%+v", l.Entries())
	}
}

// What a person wrote by hand: a handle in both lists is denied.
func TestAllowedAndDenied(t *testing.T) {
	t.Parallel()
	h := testworld.Home(t)
	const rec = `{"handle":"+15550100","added":"2026-11-23T12:00:00Z","by":"terminal"}`
	mustWrite(t, h, `{"allow":[`+rec+`],"deny":[`+rec+`]}`)
	if l := mustLoad(t, h, "+15550100"); l.May("+15550100") || len(l.Entries()) != 1 {
		t.Errorf("%+v", l.Entries())
	}
}

func TestHandles(t *testing.T) {
	t.Parallel()
	h := testworld.Home(t)
	for _, s := range []string{
		"", " ", "chat123456", "CHAT1", "-1001234567", "iMessage;-;+15550100", "+;chat1", "any;-;a@b", "owner", "@owner", "a@", "@b", "a@b@c", "a b@c", "a@b\nc",
		"+", "+123", "12", "+12345678901234567", strings.Repeat("1", 20), strings.Repeat("a", 250) + "@example.org", "+1555x", "\x00", "a@b\u202ec", "1;2", "mailto:me@example.org", "tel:+15550100", "me@example.org (me)", "٣٤٥٦٧",
	} {
		if stored, _, err := access.Allow(t.Context(), h, s, noon); !errors.Is(err, access.ErrHandle) {
			t.Errorf("Allow(%q) = %q, %v", s, stored, err)
		}
		if s != "" {
			if l, err := access.Load(h, []string{"+15550100", s}); err == nil || l.May("+15550100") || !strings.Contains(err.Error(), "nobody may speak") {
				t.Errorf("configured %q: %v", s, err)
			}
		}
	}
	testworld.Equal(t, h.Mark(file).Exists(), false, "the file was written")
	for _, s := range []string{"chatty@example.org", "7", "+15550100", "555", "1234567890", "ü@example.org"} {
		if _, _, err := access.Allow(t.Context(), h, s, noon); (err == nil) != (s != "7") {
			t.Errorf("Allow(%q): %v", s, err)
		}
	}
}

// Whatever is wrong with the file: nobody may speak, the error names file and key, the file
// stays as it is, and no change replaces it.
func TestWrongFiles(t *testing.T) {
	t.Parallel()
	const rec = `{"handle":"+15550100","added":"2026-11-23T12:00:00Z","by":"terminal"}`
	write := func(text string) func(*testing.T, home.Dir) {
		return func(t *testing.T, h home.Dir) { mustWrite(t, h, text) }
	}
	mode := func(m os.FileMode) func(*testing.T, home.Dir) {
		return func(t *testing.T, h home.Dir) {
			mustWrite(t, h, `{"allow":[`+rec+`]}`)
			testworld.Must(t, os.Chmod(h.Path(file), m))
		}
	}
	for _, tt := range []struct {
		name string
		make func(*testing.T, home.Dir)
		want string
	}{
		{"empty", write(""), "not JSON: it ends in the middle"},
		{"half", write(`{"allow":[` + rec[:30]), `key "allow[0].added": not JSON: it ends in the middle`},
		{"half of the end", write(`{"allow":[` + rec + `]`), "it ends in the middle"},
		{"text", write("allow me"), "not JSON"},
		{"list", write("[]"), "an object is expected"},
		{"null", write("null"), "an object is expected"},
		{"two objects", write("{}{}"), "something follows"},
		{"unknown key", write(`{"allow":[],"owner":["+15550100"]}`), `unknown key "owner"`},
		{"key in another case", write(`{"Allow":[` + rec + `]}`), `unknown key "Allow"`},
		{"key twice", write(`{"deny":[` + rec + `],"deny":[]}`), `key "deny" is there twice`},
		{"handle twice", write(`{"deny":[` + rec + `,` + rec + `]}`), `key "deny[1].handle": "+15550100" is in the list twice`},
		{"null list", write(`{"deny":null}`), `key "deny": a list is expected`},
		{"list of texts", write(`{"deny":["+15550100"]}`), `key "deny[0]": an object is expected`},
		{"number", write(`{"deny":[{"handle":15550100,"added":"2026-11-23T12:00:00Z","by":"terminal"}]}`), `key "deny[0].handle": must be a text`},
		{"null handle", write(strings.Replace(`{"allow":[`+rec+`]}`, `"+15550100"`, "null", 1)), `key "allow[0].handle": must be a text`},
		{"unknown key inside", write(strings.Replace(`{"allow":[`+rec+`]}`, `"by"`, `"note":"","by"`, 1)), `unknown key "allow[0].note"`},
		{"key twice inside", write(strings.Replace(`{"deny":[`+rec+`]}`, `"by"`, `"handle":"+1666","by"`, 1)), `key "deny[0].handle" is there twice`},
		{"no handle", write(`{"deny":[{"added":"2026-11-23T12:00:00Z","by":"terminal"}]}`), `key "deny[0].handle" is missing`},
		{"handle of a group", write(strings.Replace(`{"allow":[`+rec+`]}`, "+15550100", "chat15550100", 1)), `key "allow[0].handle": "chat15550100": not a handle`},
		{"handle in another form", write(strings.Replace(`{"deny":[`+rec+`]}`, "+15550100", "+1 555 0100", 1)), `key "deny[0].handle": "+1 555 0100" must be written "+15550100"`},
		{"by somebody", write(strings.Replace(`{"allow":[`+rec+`]}`, "terminal", "message", 1)), `key "allow[0].by": "message" is neither`},
		{"no time", write(strings.Replace(`{"allow":[`+rec+`]}`, "2026-11-23T12:00:00Z", "yesterday", 1)), `key "allow[0].added": not a time`},
		{"not UTF-8", write("{\"allow\":[]}\xff"), "not valid UTF-8"},
		{"nested", write(strings.Repeat("[", 60_000)), "an object is expected"},
		{"nested inside", write(`{"allow":` + strings.Repeat("[", 60_000)), `key "allow[0]": an object is expected`},
		{"large", write(`{"allow":[]}` + strings.Repeat(" ", 64<<10)), "larger than 65536 bytes"},
		{"everybody can write", mode(0o602), "its mode is 0602, so others can write to it"},
		{"the group can write", mode(0o660), "its mode is 0660"},
		{"symbolic link", func(t *testing.T, h home.Dir) {
			there := filepath.Join(t.TempDir(), "x")
			if err := errors.Join(os.WriteFile(there, []byte(`{"allow":[`+rec+`]}`), 0o600), os.MkdirAll(h.Path("state"), 0o700), os.Symlink(there, h.Path(file))); err != nil {
				t.Fatal(err)
			}
		}, "is a symbolic link"},
		{"directory", func(t *testing.T, h home.Dir) {
			testworld.Must(t, os.MkdirAll(h.Path(file), 0o700))
		}, "not a regular file"},
		{"pipe", func(t *testing.T, h home.Dir) {
			if out, err := exec.Command("mkfifo", "-m", "600", h.Path(file)).CombinedOutput(); err != nil {
				t.Fatalf("%v %s", err, out)
			}
		}, "not a regular file"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := testworld.Home(t)
			testworld.Must(t, os.MkdirAll(h.Path("state"), 0o700))
			tt.make(t, h)
			before, _ := os.Lstat(h.Path(file))
			l, err := access.Load(h, []string{"+15550100", "+15550199"})
			if !errors.Is(err, access.ErrFile) || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), h.Path(file)) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%v, want %s", err, tt.want)
			}
			if l.May("+15550100") || l.May("+15550199") || len(l.Entries()) > 0 {
				t.Error("somebody may speak")
			}
			testworld.Contains(t, advice.Of(err), "mv "+h.Path(file), "advice")
			_, _, aerr := access.Allow(t.Context(), h, "+15550102", noon)
			_, _, derr := access.Deny(t.Context(), h, "+15550102", noon)
			if !errors.Is(aerr, access.ErrFile) || !errors.Is(derr, access.ErrFile) {
				t.Errorf("changes: %v, %v", aerr, derr)
			}
			if after, err := os.Lstat(h.Path(file)); err != nil || !os.SameFile(before, after) || before.ModTime() != after.ModTime() {
				t.Errorf("the file does not stay: %v", err)
			}
			// Moved away, it counts no more.
			testworld.Must(t, os.Rename(h.Path(file), h.Path(file+".aside")))
			if l := mustLoad(t, h, "+15550199"); !l.May("+15550199") || l.May("+15550100") {
				t.Error("moved away, it still counts")
			}
		})
	}
}

// While an editor writes the file anew, a reader sees all of a version, or an error and
// nobody; never the half that is there.
func TestEditedWhileRead(t *testing.T) {
	t.Parallel()
	h := testworld.FastHome(t)
	text := func(n int) string {
		var b strings.Builder
		for i := range 300 {
			fmt.Fprintf(&b, `{"handle":"+1555%d%03d","added":"2026-11-23T12:00:00Z","by":"terminal"},`, n, i)
		}
		return `{"allow":[` + strings.TrimSuffix(b.String(), ",") + `]}`
	}
	mustWrite(t, h, text(1))
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := 0; ; i++ { // an editor that writes in place
			select {
			case <-done:
				return
			default:
				os.WriteFile(h.Path(file), []byte(text(1+i%2)), 0o600)
			}
		}
	})
	whole := 0
	for range 150 {
		l, err := access.Load(h, nil)
		if n := len(l.Entries()); err != nil && n != 0 || err == nil && n != 300 {
			t.Errorf("%d handles, %v", n, err)
		}
		if err == nil {
			whole++
		}
	}
	close(done)
	wg.Wait()
	t.Logf("%d of 150 were whole", whole)
}

// Whatever the file holds: it says who may speak and is written again as it was, or nobody
// may.
func FuzzFile(f *testing.F) {
	for _, s := range []string{
		"", "{}", `{"allow":[],"deny":[]}`, `{"allow":[{"handle":"+15550100","added":"2026-11-23T12:00:00Z","by":"terminal"}]}`,
		`{"deny":[{"handle":"a@b","added":"2026-11-23T12:00:00.5+01:00","by":"pairing"}],"allow":[{"handle":"12345","added":"2026-11-23T12:00:00Z","by":"pairing"}]}`,
		`{"allow":[{"handle":"\ud800@x"`, `{"allow":{}}`, `{"allow":[[]]}`, `{"":[]}`, `{"deny":[],"deny":[]}`,
	} {
		f.Add([]byte(s))
	}
	dir, err := os.MkdirTemp("", "n")
	testworld.Must(f, err)
	f.Cleanup(func() { os.RemoveAll(dir) })
	h, err := home.At(filepath.Join(dir, "h"))
	if err == nil {
		_, err = h.Make()
	}
	testworld.Must(f, err)
	f.Fuzz(func(t *testing.T, data []byte) {
		testworld.Must(t, h.WriteFile(file, data, false))
		l, err := access.Load(h, []string{"+15550199"})
		if err != nil {
			if l.May("+15550199") || strings.ContainsAny(err.Error(), "\n\x1b") {
				t.Fatalf("%q", err)
			}
			return
		}
		for _, e := range l.Entries() {
			if l.May(e.Handle) == e.Denied || chat.Handle(e.Handle) != e.Handle {
				t.Errorf("%+v", e)
			}
		}
		if _, _, err := access.Allow(t.Context(), h, "+4930999999", noon); err != nil && len(data) < 32<<10 {
			t.Fatal(err)
		}
		if _, _, err := access.Remove(t.Context(), h, "+4930999999"); err != nil {
			t.Fatal(err)
		}
		if again, err := access.Load(h, []string{"+15550199"}); err != nil || len(data) < 32<<10 && len(again.Entries()) < len(l.Entries())-1 {
			t.Errorf("written again: %v, %d handles, were %d", err, len(again.Entries()), len(l.Entries()))
		}
	})
}
