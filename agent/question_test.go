package agent_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"netsky/agent"
	"netsky/internal/testworld"
)

// Nothing that is shown as one line hides where it breaks, or that it was cut.
func TestFlat(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text, want string
		limit      int
		cut        bool
	}{
		{"ls", "ls", 10, false},
		{"  ls\n", "ls", 10, false},
		{"# a\r\nrm\rx\u2028y\u0085z", "# a ⏎ rm ⏎ x ⏎ y ⏎ z", 100, false},
		{"a\t b", "a  b", 10, false},
		{"0123456789", "01234…", 5, true},
		{"€€€", "€…", 5, true},
		{strings.Repeat("x", 100), "xx…", 2, true},
		{"", "", 0, false},
	} {
		if got, cut := agent.Flat(tt.text, tt.limit); got != tt.want || cut != tt.cut {
			t.Errorf("Flat(%q, %d) = %q, %v, want %q, %v", tt.text, tt.limit, got, cut, tt.want, tt.cut)
		}
	}
}

// What is too long is counted, and takes no yes.
func TestBound(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 300<<10)
	for _, q := range []agent.Approval{{Text: long}, {Text: "a", Fields: []agent.Field{{Name: "b", Text: long}, {Name: "c", Text: "d"}}}} {
		before := len(q.Text)
		for _, f := range q.Fields {
			before += len(f.Name) + len(f.Text)
		}
		q.Bound()
		after := len(q.Text)
		for _, f := range q.Fields {
			after += len(f.Name) + len(f.Text)
		}
		if q.Missing == 0 || after+q.Missing != before || q.Closed() == "" || !strings.Contains(q.Whole(), "bytes more, which only its own pane shows]") {
			t.Errorf("%d bytes kept, %d missing, of %d; closed: %q", after, q.Missing, before, q.Closed())
		}
	}
	q := agent.Approval{Text: "ls", Reason: long}
	if q.Bound(); q.Missing != 0 || q.Closed() != "" || len(q.Reason) >= len(long) {
		t.Errorf("of a long reason: %d missing, %d bytes", q.Missing, len(q.Reason))
	}
	q = agent.Approval{Tool: "s.t\nyes abcde", Dir: "/w/x\nyes abcde or no abcde"}
	if q.Bound(); q.Tool != "s.t ⏎ yes abcde" || q.Dir != "/w/x ⏎ yes abcde or no abcde" {
		t.Errorf("%q in %q", q.Tool, q.Dir)
	}
}

// An answer counts as taken only if the program's own files say so.
func TestProof(t *testing.T) {
	t.Parallel()
	const (
		taken = `{"type":"attachment","decision":"deny","id":"t-1"}` + "\n"
		other = `{"type":"attachment","decision":"deny","id":"t-2"}` + "\n"
		past  = `{"type":"user","result":1,"id":"t-1"}` + "\n"
	)
	for _, tt := range []struct {
		name, file, asking    string
		settled, taken, known bool
	}{
		{"nothing yet", "", `waiting`, true, false, false},
		{"another's", other, `waiting`, true, false, false},
		{"taken", other + taken, `waiting`, false, true, true},
		{"taken, with its result", taken + past, `waiting`, true, true, true},
		{"done otherwise", past, `busy`, true, false, true},
		{"asks no more", other, `busy`, true, true, true},
		{"asks no more, which may be old", other, `busy`, false, false, false},
		{"gone", other, ``, true, false, false},
	} {
		dir := t.TempDir()
		p := agent.Proof{
			File: filepath.Join(dir, "log"), Asking: filepath.Join(dir, "now"), Asks: []string{"waiting"},
			Taken: []string{`"decision":"deny"`, `"id":"t-1"`}, Past: []string{`"result"`, `"id":"t-1"`},
		}
		for name, text := range map[string]string{p.File: tt.file, p.Asking: tt.asking} {
			testworld.Must(t, os.WriteFile(name, []byte(text), 0o600))
		}
		if got, known := p.Find(tt.settled); got != tt.taken || known != tt.known {
			t.Errorf("%s: %v, %v, want %v, %v", tt.name, got, known, tt.taken, tt.known)
		}
	}
}
