//go:build live

package cli_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/courier"
	"netsky/bus/envelope"
	"netsky/home"
	"netsky/internal/loopmodel/anthropic"
	"netsky/internal/testworld"
)

// A storm is many messages to agents on the real Claude Code, and what must have
// become of them.
type storm struct {
	*testing.T
	w      *world
	model  *anthropic.Server
	home   home.Dir
	bus    *bus.Bus
	random *rand.Rand
	agents []agent.ID
	sent   map[agent.ID][]envelope.Envelope // by who gets it, in order
	held   chan struct{}                    // the model's turns that begin with "hold" end when it is closed
}

// byTool answers with the reply tool; the others say something at the turn's end.
const byTool agent.ID = "agent1"

func mustStorm(t *testing.T, config string, agents ...agent.ID) *storm {
	t.Helper()
	w, model := mustClaude(t)
	w.config(t, config+"[agents]\nruntime = \"claude\"\ndir = \""+filepath.Join(w.dir, "src")+"\"\n[agents.infinity]\nruntime = \"demo\"\n")
	home := testworld.Got(home.At(w.home))(t)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	s := &storm{
		T: t, w: w, model: model, home: home, bus: bus.New(home, bus.Options{}), random: rand.New(rand.NewPCG(seed, 1)),
		agents: agents, sent: make(map[agent.ID][]envelope.Envelope), held: make(chan struct{}),
	}
	testworld.Must(t, s.bus.Make(other))
	model.Handle(s.answer)
	return s
}

// answer is the model: its echo as a reply or in plain text. It costs next to
// nothing, so that no conversation is ever compacted.
func (s *storm) answer(q anthropic.Request) *anthropic.Reply {
	var r *anthropic.Reply
	if agentOf(q) == byTool {
		r = anthropic.ReplyAll(q)
	}
	if r == nil {
		r = anthropic.Directives(q)
	}
	r.Usage = &anthropic.Usage{Input: 10, Output: 10}
	for _, m := range anthropic.Messages(strings.Join(q.News(), "\n")) {
		if strings.HasPrefix(m.Text, "hold") {
			r.Hold = s.held
		}
	}
	return r
}

var itsName = regexp.MustCompile(`You are (agent[0-9]+),`)

func agentOf(q anthropic.Request) agent.ID {
	if m := itsName.FindStringSubmatch(q.System); m != nil {
		return agent.ID(m[1])
	}
	return ""
}

// until waits for a condition.
func (s *storm) until(what string, ok func() bool) {
	s.Helper()
	testworld.WaitOr(s, ok, func() string { return what + "\n" + s.scene() })
}

// scene is what there is to see when something goes wrong.
func (s *storm) scene() string {
	text := s.w.must(s.T, "netsky", "status", "-v")
	for _, id := range s.agents {
		text += "\n" + s.pane(id)
		if list := s.unanswered(id); len(list) > 0 {
			text += fmt.Sprintf("\n%s has not answered %d of %d: %v\n", id, len(list), len(s.sent[id]), list[:min(len(list), 10)])
		}
	}
	return text
}

func (s *storm) pane(id agent.ID) string {
	s.Helper()
	return s.w.must(s.T, "tmux", "-S", s.w.socket(), "capture-pane", "-p", "-t", "="+string(id)+":")
}

// send sends a text; what is none of the owner's asks for an answer.
func (s *storm) send(from, to agent.ID, text string) {
	s.Helper()
	e := envelope.Envelope{
		ID: fmt.Sprintf("m-%s-%03d", to, len(s.sent[to])), From: from, To: to, Text: text, RequiresAck: from != agent.Owner,
	}
	testworld.Got(s.bus.Send(s.Context(), e))(s)
	s.sent[to] = append(s.sent[to], e)
}

// order sends each agent a text of the owner's by the program itself.
func (s *storm) order(text func(id agent.ID) string) {
	s.Helper()
	for _, id := range s.agents {
		e := envelope.Envelope{From: agent.Owner, To: id, Text: text(id)}
		e.ID = strings.TrimSpace(s.w.must(s.T, "netsky", "channel", "send", string(id), e.Text))
		s.sent[id] = append(s.sent[id], e)
	}
}

// burst sends each agent n messages, two of three the owner's. The first has the
// size that is given, the others any from 20 B to 4 KiB, seldom 32.
func (s *storm) burst(n, first int) {
	s.Helper()
	for i := range n {
		for _, id := range s.agents {
			from := agent.Owner
			if i%3 == 2 {
				from = other
			}
			size := int(20 * math.Pow(4096/20, s.random.Float64()))
			if s.random.IntN(12) == 0 {
				size *= 8
			}
			if i == 0 {
				size = first
			}
			s.send(from, id, s.text(size))
		}
	}
}

// text is so many bytes of what people and programs write.
func (s *storm) text(size int) string {
	words := []string{"so ", "the tests ", "pass\n", "\tif a < b && c > d {\n", "\"quoted\" ", "it's ", "<b>bold</b> ", "&lt; ", "größer ", "世界 ", "C:\\temp ", "\n\n"}
	var b strings.Builder
	for b.Len() < size-1 {
		if word := words[s.random.IntN(len(words))]; b.Len()+len(word) < size {
			b.WriteString(word)
		} else {
			b.WriteByte('x')
		}
	}
	return b.String() + "."
}

// answers are all answers of an agent to one of those who write to it, by what
// they answer.
func (s *storm) answers(id, to agent.ID) map[string][]envelope.Envelope {
	s.Helper()
	got := make(map[string][]envelope.Envelope)
	seen := make(map[string]bool) // an answer that is moved on meanwhile is listed twice
	for _, p := range []bus.Place{bus.Inbox, bus.Claimed, bus.Delivered} {
		list := testworld.Got(s.bus.List(to, p, 5000))(s)
		for _, e := range list {
			if e.Err == nil && e.Envelope.From == id && e.Envelope.InReplyTo != "" && !seen[e.Name] {
				seen[e.Name] = true
				got[e.Envelope.InReplyTo] = append(got[e.Envelope.InReplyTo], e.Envelope)
			}
		}
	}
	return got
}

func (s *storm) unanswered(id agent.ID) (list []string) {
	s.Helper()
	got := map[agent.ID]map[string][]envelope.Envelope{}
	for _, e := range s.sent[id] {
		if got[e.From] == nil {
			got[e.From] = s.answers(id, e.From)
		}
		if len(got[e.From][e.ID]) == 0 {
			list = append(list, e.ID)
		}
	}
	return list
}

// settled waits until all has been answered.
func (s *storm) settled(what string) {
	s.Helper()
	s.until(what+": all answered", func() bool {
		return !slices.ContainsFunc(s.agents, func(id agent.ID) bool { return len(s.unanswered(id)) > 0 })
	})
}

// onItsWay waits until each agent's receiver has handed over something of what
// was sent last: its ledger says so.
func (s *storm) onItsWay(last int) {
	s.Helper()
	s.until("handed over", func() bool {
		return !slices.ContainsFunc(s.agents, func(id agent.ID) bool {
			data, err := os.ReadFile(s.home.Path(courier.JournalFile(id)))
			n := len(s.sent[id])
			return err != nil || !slices.ContainsFunc(s.sent[id][n-last:], func(e envelope.Envelope) bool {
				return strings.Contains(string(data), `"`+e.ID+`"`)
			})
		})
	})
}

// asked waits until the model was asked about the last message of each agent.
func (s *storm) asked() {
	s.Helper()
	for _, id := range s.agents {
		last := s.sent[id][len(s.sent[id])-1]
		s.until(string(id)+" is asked about "+last.ID, func() bool {
			return slices.ContainsFunc(s.model.Requests(), func(q anthropic.Request) bool {
				return agentOf(q) == id && count(q, last.ID) > 0
			})
		})
	}
}

// count is how often a message stands in what the model was told.
func count(q anthropic.Request, id string) int {
	return strings.Count(string(q.Body), `id=\"`+id+`\">`)
}

// ended is how each message ended: filed, answered once, and nothing left.
func (s *storm) ended(check func(e, answer envelope.Envelope)) {
	s.Helper()
	for _, id := range s.agents {
		s.until(string(id)+": nothing waits", func() bool {
			a, _ := s.bus.Count(id, bus.Inbox)
			b, _ := s.bus.Count(id, bus.Claimed)
			return a+b == 0
		})
		if n, err := s.bus.Count(id, bus.Poison); err == nil && n > 0 {
			s.Errorf("%s: %d poisoned", id, n)
		}
		list := testworld.Got(s.bus.List(id, bus.Delivered, 5000))(s)
		filed := make(map[string]int)
		for _, e := range list {
			filed[e.Envelope.ID]++
		}
		got := map[agent.ID]map[string][]envelope.Envelope{agent.Owner: s.answers(id, agent.Owner), other: s.answers(id, other)}
		for _, e := range s.sent[id] {
			if filed[e.ID] != 1 {
				s.Errorf("%s lies in %s's delivered/ %d times", e.ID, id, filed[e.ID])
			}
			if n := len(got[e.From][e.ID]); n != 1 {
				s.Errorf("%s of %s: %d answers: %.2000v", e.ID, e.From, n, got[e.From][e.ID])
				continue
			}
			check(e, got[e.From][e.ID][0])
		}
	}
}

// told is what the agent's model was told in the end.
func (s *storm) told(id agent.ID) (last anthropic.Request) {
	for _, q := range s.model.Requests() {
		if agentOf(q) == id {
			last = q
		}
	}
	return last
}

// inOrder checks that the conversation holds each message once and whole, and
// those of one sender in order.
func (s *storm) inOrder(id agent.ID) {
	s.Helper()
	q := s.told(id)
	told := make(map[string]string)
	var order []string
	for _, said := range q.Said {
		for _, m := range anthropic.Messages(said) {
			told[m.ID] = m.Text
			order = append(order, m.ID)
		}
	}
	for _, from := range []agent.ID{agent.Owner, other} {
		var want, have []string
		for _, e := range s.sent[id] {
			if e.From != from {
				continue
			}
			want = append(want, e.ID)
			if n := count(q, e.ID); n != 1 {
				s.Errorf("%s stands in what %s's model was told %d times", e.ID, id, n)
			}
			if told[e.ID] != strings.Trim(e.Text, "\n") {
				s.Errorf("%s: of %d bytes the model was told %d, and not the same:\n%.300q\n%.300q", e.ID, len(e.Text), len(told[e.ID]), e.Text, told[e.ID])
			}
		}
		for _, m := range order {
			if slices.Contains(want, m) {
				have = append(have, m)
			}
		}
		testworld.EqualList(s, have, want, "%s was told of %s's messages in the order", id, from)
	}
}

func isImplicit(e envelope.Envelope) bool { return string(e.Extra["implicit"]) == "true" }

const draft = "a thought that is not sent yet"

// types types into an agent's pane, as a person does who looks at it.
func (s *storm) types(id agent.ID, text string) {
	s.Helper()
	s.w.must(s.T, "tmux", "-S", s.w.socket(), "send-keys", "-t", "="+string(id)+":", "-l", text)
}

var itsDraft = regexp.MustCompile(`(?m)^❯[ \x{a0}]` + draft + ` *$`)

// stands waits until the draft stands in the agent's composer.
func (s *storm) stands(id agent.ID) {
	s.Helper()
	s.until("the draft in the composer of "+string(id), func() bool { return itsDraft.MatchString(s.pane(id)) })
}

// questions are the codes of the questions that wait, by who asks.
func (s *storm) questions() map[agent.ID]agent.Approval {
	s.Helper()
	list := testworld.Got(home.Approvals(s.home).List())(s)
	got := make(map[agent.ID]agent.Approval)
	for _, a := range list {
		got[a.Agent] = a
	}
	return got
}

// approve answers each agent's question about a command that names its file.
func (s *storm) approve(file func(agent.ID) string, deny agent.ID) {
	s.Helper()
	for _, id := range s.agents {
		s.until(string(id)+" asks", func() bool { return strings.Contains(s.questions()[id].Text, file(id)) })
		args := []string{"approve", s.questions()[id].Code}
		if id == deny {
			args = append(args, "--deny")
		}
		s.w.must(s.T, "netsky", args...)
	}
}

// Two hundred messages to a manager and two clones, while they are idle, busy, in
// a tool, at a question, with a person's draft in the composer: each is given to
// the model once, whole and in order, and answered once; the question waits for
// its answer, and the draft stands.
func TestClaudeStorm(t *testing.T) {
	t.Parallel()
	s := mustStorm(t, "[claude]\npermission_mode = \"manual\"\n", "agent0", "agent1", "agent2")
	s.w.mustUp(t, "up", "2", "--no-attach")
	file := func(what string) func(agent.ID) string {
		return func(id agent.ID) string { return filepath.Join(s.w.dir, what+"-"+string(id)) }
	}
	there := func(what string, id agent.ID) bool { _, err := os.Stat(file(what)(id)); return err == nil }

	s.types("agent2", draft) // before anything is said there
	s.stands("agent2")
	s.burst(13, 20)
	s.settled("idle")

	s.order(func(id agent.ID) string { return "hold " + string(id) })
	s.asked()
	s.burst(13, 200<<10)
	s.onItsWay(13)
	s.order(func(agent.ID) string { return "the last while busy" })
	close(s.held)
	s.settled("busy")

	// A tool that runs until it is told to end.
	s.order(func(id agent.ID) string {
		return fmt.Sprintf("loop: shell touch %s; for i in $(seq 1000); do test -e %s && break; sleep 0.1; done", file("runs")(id), file("go")(id))
	})
	s.approve(file("runs"), "")
	for _, id := range s.agents {
		s.until(string(id)+"'s tool runs", func() bool { return there("runs", id) })
	}
	s.burst(13, 30<<10)
	s.onItsWay(13)
	for _, id := range s.agents {
		testworld.Must(t, os.WriteFile(file("go")(id), nil, 0o600))
	}
	s.settled("in a tool")

	s.order(func(id agent.ID) string { return "loop: shell touch " + file("asked")(id) })
	for _, id := range s.agents {
		s.until(string(id)+" asks", func() bool {
			return strings.Contains(s.questions()[id].Text, file("asked")(id)) && strings.Contains(s.pane(id), "Do you want to proceed?")
		})
	}
	s.burst(13, 100)
	s.onItsWay(13)
	for range 5 {
		for _, id := range s.agents {
			testworld.Contains(t, s.pane(id), "Do you want to proceed?", "%s: the question is gone", id)
			testworld.Equal(t, there("asked", id), false, "%s: did what it asks about", id)
		}
	}
	s.approve(file("asked"), "agent2")
	s.settled("asking")
	for _, id := range s.agents {
		testworld.Equal(t, there("asked", id), (id != "agent2"), "%s: what it was answered was not obeyed", id)
	}

	person := s.w.mustScreen(t, "person", "env -u TMUX -u TMUX_PANE sh")
	person.types("netsky attach agent1", "Enter")
	person.shows(`(?m)^ agent1 .*C-b d leaves *$`)
	person.tmux("send-keys", "-t", "=person:", "-l", draft)
	s.types("agent0", draft)
	for _, id := range s.agents {
		s.stands(id)
	}
	s.burst(13, 4096)
	s.settled("beside a draft")

	s.ended(func(e, answer envelope.Envelope) {
		if answer.Kind != envelope.KindReply || isImplicit(answer) != (e.To != byTool) {
			t.Errorf("%s of %s: answered by %s, implicit %v: %.200q", e.ID, e.To, answer.Kind, isImplicit(answer), answer.Text)
		}
	})
	for _, id := range s.agents {
		s.inOrder(id)
		s.stands(id)
	}
	for _, q := range s.model.Requests() {
		if strings.Contains(string(q.Body), draft) {
			t.Errorf("the model of %s was told the draft", agentOf(q))
		}
	}
	t.Logf("%d requests", len(s.model.Requests()))
}
