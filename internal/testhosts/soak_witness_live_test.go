//go:build linux && live

package testhosts_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"netsky/agent"
	"netsky/home"
	"netsky/internal/testhosts"
)

// A message is one that the soak has sent, or tries to.
type message struct {
	id             string
	number         int // of all; those of one sender to one recipient ascend
	from, fromHost string
	to, toHost     string
	text           string
}

// An envelope is what a file of a mailbox holds, as anybody can read it.
type envelope struct {
	ID        string `json:"id"`
	From      string `json:"from"`
	Kind      string `json:"kind"`
	Text      string `json:"text"`
	InReplyTo string `json:"in_reply_to"`
}

// A ledger is what was sent, and what the mailboxes of all hosts hold: files alone say what
// has become of it, netsky is not asked.
type ledger struct {
	mu   sync.Mutex
	sent []*message

	known   map[string]bool       // files that were read, by address and name
	waiting int                   // files that no agent has taken yet
	came    map[string][]envelope // at an address, each file once
	effects map[string][]string   // ids that had their effect at an address, in order
}

func (l *ledger) write(seed uint64, from, fromHost, to, toHost string) *message {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(l.sent) + 1
	m := &message{fmt.Sprintf("soak-%d-%d", seed, n), n, from, fromHost, to, toHost, fmt.Sprintf("message %d of %s at %s", n, from, fromHost)}
	l.sent = append(l.sent, m)
	return m
}

// read reads what is new in all mailboxes.
func (l *ledger) read(s *soak) {
	s.Helper()
	if l.known == nil {
		l.known, l.came = make(map[string]bool), make(map[string][]envelope)
	}
	l.effects, l.waiting = make(map[string][]string), 0
	for _, h := range s.world.Hosts() {
		for _, who := range []string{"owner", "agent0", "agent1", "agent2"} {
			l.readBox(s, h, who)
		}
	}
}

func (l *ledger) readBox(s *soak, h *testhosts.Host, who string) {
	at, box := who+"@"+h.Name, h.Path(".netsky/"+home.Mailbox(agent.ID(who)))
	for _, place := range []string{"inbox", "claimed", "delivered"} { // as a file moves: none is missed
		files, err := os.ReadDir(filepath.Join(box, place))
		if err != nil {
			s.Fatal(err)
		}
		for _, f := range files {
			name := f.Name()
			if strings.HasPrefix(name, ".") || !strings.HasSuffix(name, ".json") {
				continue
			}
			if place != "delivered" && who != "owner" {
				l.waiting++
			}
			key := at + "/" + name
			if l.known[key] {
				continue
			}
			data, err := os.ReadFile(filepath.Join(box, place, name))
			if err != nil {
				continue // it has just moved on, and is found there
			}
			var e envelope
			if err := json.Unmarshal(data, &e); err != nil {
				s.Errorf("%s: %v", key, err)
			}
			l.known[key] = true
			if _, err := os.Stat(filepath.Join(box, place, name+".why")); err != nil { // else it is a second copy, filed without effect
				l.came[at] = append(l.came[at], e)
			}
		}
	}
	seen, _ := os.ReadFile(filepath.Join(box, "seen")) // there is none before the first
	for line := range strings.Lines(string(seen)) {
		if fields := strings.Split(line, "\t"); len(fields) > 2 {
			l.effects[at] = append(l.effects[at], fields[2])
		}
	}
}

// answers returns how often each message was answered, and whether with an error.
func (l *ledger) answers() (times map[string]int, failed map[string]string) {
	times, failed = make(map[string]int), make(map[string]string)
	for _, list := range l.came {
		for _, e := range list {
			if e.Kind == "reply" || e.Kind == "error" {
				times[e.InReplyTo]++
			}
			if e.Kind == "error" {
				failed[e.InReplyTo] = e.Text
			}
		}
	}
	return times, failed
}

// settled reports whether everything has come and been answered, and nothing waits.
func (l *ledger) settled() bool {
	times, _ := l.answers()
	return l.waiting == 0 && !slices.ContainsFunc(l.sent, func(m *message) bool { return times[m.id] == 0 })
}

// missing tells, by sender and receiver, how many messages have not been answered, and how many of them have not come.
func (l *ledger) missing() string {
	times, _ := l.answers()
	open, away := make(map[string]int), make(map[string]int)
	for _, m := range l.sent {
		if times[m.id] > 0 {
			continue
		}
		to := m.to + "@" + m.toHost
		pair := m.from + "@" + m.fromHost + " -> " + to
		open[pair]++
		if !slices.ContainsFunc(l.came[to], func(e envelope) bool { return e.ID == m.id }) {
			away[pair]++
		}
	}
	text := fmt.Sprintf("%d not taken", l.waiting)
	for _, pair := range slices.Sorted(maps.Keys(open)) {
		text += fmt.Sprintf("; %s: %d, %d of them have not come", pair, open[pair], away[pair])
	}
	return text
}

// judge counts what was sent, by what became of it, and logs the first of what is wrong.
func (l *ledger) judge(s *soak) map[string]int {
	count := map[string]int{"sent": len(l.sent), "answered": 0, "lost": 0, "not taken": 0, "doubled": 0, "unanswered": 0, "answered twice": 0, "answered with an error": 0, "changed": 0, "out of order": l.disorder(s)}
	wrong := func(m *message, what, why string) {
		if count[what]++; count[what] <= 10 {
			s.Logf("%s: %s from %s@%s to %s@%s %s", what, m.id, m.from, m.fromHost, m.to, m.toHost, why)
		}
	}
	times, failed := l.answers()
	for _, m := range l.sent {
		at := m.to + "@" + m.toHost
		var copies []envelope
		for _, e := range l.came[at] {
			if e.ID == m.id {
				copies = append(copies, e)
			}
		}
		effects := 0
		for _, id := range l.effects[at] {
			if id == m.id {
				effects++
			}
		}
		switch {
		case len(copies) == 0:
			wrong(m, "lost", "")
		case effects == 0:
			wrong(m, "not taken", "")
		case effects > 1:
			wrong(m, "doubled", fmt.Sprint(effects, " times"))
		case copies[0].Text != m.text || copies[0].From != m.from+"@"+m.fromHost:
			wrong(m, "changed", fmt.Sprintf("%+v", copies[0]))
		}
		switch {
		case times[m.id] == 0:
			wrong(m, "unanswered", "")
		case times[m.id] > 1:
			wrong(m, "answered twice", fmt.Sprint(times[m.id], " times"))
		case failed[m.id] != "":
			wrong(m, "answered with an error", failed[m.id])
		default:
			count["answered"]++
		}
	}
	return count
}

// disorder counts the messages, and the answers, that had their effect after a later one of
// the same sender.
func (l *ledger) disorder(s *soak) (n int) {
	numbers := make(map[string]*message)
	for _, m := range l.sent {
		numbers[m.id] = m
	}
	for at, ids := range l.effects {
		asked := make(map[string]string) // by an answer's id
		for _, e := range l.came[at] {
			if e.Kind == "reply" {
				asked[e.ID] = e.InReplyTo
			}
		}
		last := make(map[string]int)
		for _, id := range ids {
			m, lane := numbers[id], "message "
			if m == nil {
				m, lane = numbers[asked[id]], "answer "
			}
			if m == nil {
				continue
			}
			lane += m.from + "@" + m.fromHost + ">" + m.to + "@" + m.toHost
			if m.number < last[lane] {
				if n++; n <= 10 {
					s.Logf("out of order at %s: %s, %d after %d", at, lane, m.number, last[lane])
				}
			}
			last[lane] = max(last[lane], m.number)
		}
	}
	return n
}

// list is counts in words.
func list(count map[string]int) string {
	var words []string
	for _, what := range slices.Sorted(maps.Keys(count)) {
		words = append(words, fmt.Sprintf("%d %s", count[what], what))
	}
	return strings.Join(words, ", ")
}
