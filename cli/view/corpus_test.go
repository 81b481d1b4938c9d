package view_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"netsky/agent"
	"netsky/internal/testworld"
)

var update = flag.Bool("update", false, "write the matrix in docs/status.md anew")

// An observation is one row of testdata/status, whose README.md describes the fields: what
// could be seen of an agent at one moment, and how the agent really was then.
type observation struct {
	group string // the file it is from

	Name    string      `json:"name"`
	Is      agent.State `json:"is"`      // the truth
	Why     string      `json:"why"`     // that is the truth
	Asks    bool        `json:"asks"`    // a person is asked something, though Is is not waiting
	Unknown string      `json:"unknown"` // why "unknown" is an acceptable answer, if it is
	Runtime string      `json:"runtime"`

	// The process, the files that netsky itself keeps, and tmux.
	Process  string          `json:"process"` // "" it runs, dead, reused, unnamed
	Keeper   string          `json:"keeper"`  // "" its record is whole; else see keeperOf
	Launch   string          `json:"launch"`  // "" whole, none, torn
	Started  int64           `json:"started"` // relative, in ms; 0: a minute ago
	Wanted   string          `json:"wanted"`  // "" up, down, none
	Session  string          `json:"session"` // "" there, none, other (start)
	Tmux     string          `json:"tmux"`    // "" answers, silent, none
	Lock     string          `json:"lock"`    // who else is at work: up, watchdog
	Receiver string          `json:"receiver"`
	Report   json.RawMessage `json:"report"` // of the receiver; "torn": half of one
	Hang     json.RawMessage `json:"hang"`
	Restarts json.RawMessage `json:"restarts"`

	// What Claude Code shows.
	Registry   json.RawMessage `json:"registry"` // its entry, or none, torn, foreign
	Events     json.RawMessage `json:"events"`   // of the hooks
	Torn       string          `json:"torn"`     // half a line after them
	Transcript []string        `json:"transcript"`
	Screen     string          `json:"screen"` // a file of testdata/screens
	Rows       int             `json:"rows"`   // the pane has only so many rows: the last of the screen
	Width      int             `json:"width"`  // the pane has so many columns, more than the screen had
	Breaker    json.RawMessage `json:"breaker"`

	// What Codex's app-server has sent since its thread was opened.
	Wire []json.RawMessage `json:"wire"`
	// What a person types at a demo.
	Typed string `json:"typed"`
}

// mustCorpus reads all observations.
func mustCorpus(t *testing.T) (list []*observation) {
	t.Helper()
	files := testworld.Files(t, "status")
	names := make(map[string]bool)
	for file, text := range files {
		group, ok := strings.CutSuffix(file, ".jsonl")
		if !ok {
			continue
		}
		for n, line := range strings.Split(strings.TrimSpace(text), "\n") {
			o := &observation{group: group}
			d := json.NewDecoder(strings.NewReader(line))
			d.DisallowUnknownFields()
			testworld.Must(t, d.Decode(o), "testdata/status/%s:%d", file, n+1)
			if o.Why == "" || !slices.Contains(states, o.Is) {
				t.Errorf("testdata/status/%s:%d: the truth %q, because %q", file, n+1, o.Is, o.Why)
			}
			if key := group + " " + o.Name; names[key] {
				t.Errorf("testdata/status/%s:%d: a second %s", file, n+1, o.Name)
			} else {
				names[key] = true
			}
			list = append(list, o)
		}
	}
	slices.SortStableFunc(list, func(a, b *observation) int { return strings.Compare(a.group, b.group) })
	return list
}

// states are those of the matrix, in its order.
var states = []agent.State{
	agent.Starting, agent.Idle, agent.Busy, agent.Waiting, agent.Blocked, agent.Hung, agent.Dead, agent.CrashLooping, agent.Down, agent.Unknown,
}

// enough is how many observations there have to be at least.
const enough = 500

// TestStatusCorpus classifies every observation as `netsky status` does.
func TestStatusCorpus(t *testing.T) {
	list := mustCorpus(t)
	if len(list) < enough {
		t.Errorf("%d observations, want at least %d", len(list), enough)
	}
	began := time.Now()
	said := classify(t, list)
	counts := make(map[[2]agent.State]int)
	for _, o := range list {
		got, ok := said[o]
		if !ok {
			t.Errorf("%s, %s: not in status", o.group, o.Name)
			continue
		}
		counts[[2]agent.State{o.Is, got.State}]++
		calm := got.State == agent.Idle || got.State == agent.Busy
		gone := got.State == agent.Dead || got.State == agent.CrashLooping || got.State == agent.Down
		wrong := ""
		switch {
		case calm && (o.Asks || o.Is == agent.Waiting):
			wrong = "A PERSON IS ASKED"
		case gone && o.lives():
			wrong = "IT LIVES"
		case got.State == o.Is:
		case got.State == agent.Unknown && o.Unknown != "":
		default:
			wrong = "wrong"
		}
		if wrong != "" {
			t.Errorf("%s, %s: %s (%s; %s), %s: is %s, because %s", o.group, o.Name, got.State, got.Evidence, got.Detail, wrong, o.Is, o.Why)
		} else if got.Evidence == "" {
			t.Errorf("%s, %s: %s without evidence", o.group, o.Name, got.State)
		}
	}
	matrix := matrixOf(list, counts)
	t.Logf("%d observations in %v\n%s", len(list), time.Since(began).Round(time.Millisecond), matrix)
	mustPublish(t, matrix)
}

// lives reports whether the program of the observation really runs.
func (o *observation) lives() bool {
	switch {
	case o.Process != "" && o.Process != "unnamed", o.Is == agent.Down, o.Is == agent.Dead, o.Is == agent.CrashLooping:
		return false
	}
	return true
}

// matrixOf formats the counts as the table in docs/status.md.
func matrixOf(list []*observation, counts map[[2]agent.State]int) string {
	var b strings.Builder
	b.WriteString("| really | count |")
	for _, s := range states {
		fmt.Fprintf(&b, " %s |", s)
	}
	b.WriteString("\n|---|---:|" + strings.Repeat("---:|", len(states)) + "\n")
	for _, is := range states {
		n, cells := 0, ""
		for _, say := range states {
			switch c := counts[[2]agent.State{is, say}]; {
			case c == 0:
				cells += " |"
			case is == say:
				cells += fmt.Sprintf(" **%d** |", c)
			default:
				cells += fmt.Sprintf(" %d |", c)
			}
			n += counts[[2]agent.State{is, say}]
		}
		fmt.Fprintf(&b, "| **%s** | %d |%s\n", is, n, cells)
	}
	groups := make(map[string]int)
	for _, o := range list {
		groups[o.group]++
	}
	var words []string
	for g, n := range groups {
		words = append(words, fmt.Sprintf("%s %d", g, n))
	}
	slices.Sort(words)
	fmt.Fprintf(&b, "\n%d observations: %s.\n", len(list), strings.Join(words, ", "))
	return b.String()
}

// mustPublish compares the matrix with the one in docs/status.md.
// `go test ./cli/view -run Corpus -update` writes that.
func mustPublish(t *testing.T, matrix string) {
	t.Helper()
	const begin, end = "<!-- matrix -->\n", "<!-- end -->\n"
	file := filepath.Join("..", "..", "docs", "status.md")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Error(err)
		return
	}
	head, rest, ok := bytes.Cut(data, []byte(begin))
	have, tail, closed := bytes.Cut(rest, []byte(end))
	if !ok || !closed {
		t.Errorf("%s: no place for the matrix", file)
		return
	}
	if string(have) == matrix {
		return
	}
	if !*update || t.Failed() {
		t.Errorf("%s: the matrix is stale: go test ./cli/view -run Corpus -update", file)
		return
	}
	testworld.Equal(t, os.WriteFile(file, slices.Concat(head, []byte(begin), []byte(matrix), []byte(end), tail), 0o644), nil)
}
