// Package attention lists what needs the owner: approvals, dialogs, hosts that ask to join, logins and limits, budgets that are used up, agents
// that do not get ready, hang, crash or are down though they are wanted up, a mistake in netsky.toml, the
// daemon, alerts that did not reach the owner, questions to them, work that conflicts, and
// unreadable messages.
// Every surface shows this list in these words: `netsky needs`, `netsky` alone, status, and
// the dashboard.
//
// The list is derived from the sources of truth each time and stored nowhere: the pending
// approvals, the agents' states, the breakers, the owner's mailbox and the last forecast. So an item is gone
// as soon as what it is about is settled, wherever that was done, and a crash leaves
// nothing. How an item was settled is in the logs, written by whoever settled it.
//
// A Teller, of which one runs, tells the owner by mail of what is so, once it has been so for long enough, and takes
// that back when it is over; of a conflict it tells the agents. What was told is in
// state/attention.json; nothing on the list depends on that.
//
// A code stands for the same thing as long as it stands; an approval's is its own. A digest
// stands for the exact words as well: an answer that carries it can't be taken for another
// question's.
package attention

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"netsky/agent"
	"netsky/cost/breaker"
	"netsky/home"
	"netsky/link"
	"netsky/link/team"
	"netsky/store"
	"netsky/view"
	"netsky/work/merge"
)

// A Need is one thing that needs the owner.
type Need struct {
	Code    string     `json:"code"` // five letters
	Kind    Kind       `json:"kind"`
	About   string     `json:"about"`            // an agent, agents, an account, or the daemon
	Agents  []agent.ID `json:"agents"`           // whom it concerns
	Title   string     `json:"title"`            // after the agents' names: "waits at a dialog"
	Text    string     `json:"text"`             // exact: the command to allow, the dialog, the fault, the question
	Closed  string     `json:"closed,omitempty"` // why only its pane can take a yes
	Reason  string     `json:"reason,omitempty"`
	Dir     string     `json:"dir,omitempty"`
	Message string     `json:"message,omitempty"` // the id of the message that asks a question
	Budget  string     `json:"budget,omitempty"`  // the key of the budget that is used up
	Options []string   `json:"options"`           // the answers that netsky takes, if any
	Digest  string     `json:"digest"`            // of what a yes refers to
	Since   store.Time `json:"since,omitzero"`
	// Otherwise says what happens if nothing is done.
	Otherwise string    `json:"otherwise"`
	Command   string    `json:"command"` // settles it, or is the next step
	Commands  []Command `json:"commands"`

	Host string     `json:"host,omitempty"` // that it is on, "" for this one
	AsOf store.Time `json:"as_of,omitzero"` // when that host was last heard of, if it is not up
	// There is the item as it is on that host, where an answer takes its code and its digest; nil for one of this host.
	There *Need `json:"-"`

	id   []string // what identifies it among those of its kind
	away bool     // Dir is none of the agent's own
}

// A Command is one to type in a terminal.
type Command struct {
	Does string `json:"does"`
	Line string `json:"line"`
}

// The options of an approval, and of a budget; a dialog that netsky can answer has "allow" and Deny.
const (
	Allow = "allow once"
	Deny  = "deny"
	More  = "allow as much again" // of a budget
)

// Sources are what the list is derived from.
type Sources struct {
	Now       time.Time
	Agents    []view.Agent
	Approvals []agent.Approval    // without those that are answered
	Dirs      map[agent.ID]string // where the agents with approvals were started
	Answered  []agent.ID          // agents that have just got an answer to theirs, or are about to
	Breakers  []breaker.State     // the tripped ones
	Questions []Asked
	Joins     []team.Request
	Failed    []Failure     // alerts that did not reach the owner
	Conflicts []merge.Known // between branches that have not landed
	Mistake   string        // what is wrong in netsky.toml, with its name; Prevents is what that prevents
	Prevents  string
	Daemon    string // DaemonRuns, DaemonHung, DaemonGone, or "": it is not wanted
	Ticks     bool   // the ticker runs, which starts another daemon
	Blind     Blind
	Hosts     []Host       // the other hosts of the team, if they tell this one
	Link      *link.Report // how the link to them is; nil without a team
}

// What may be wrong with the daemon.
const (
	DaemonRuns = "running"
	DaemonHung = "hung"
	DaemonGone = "not running"
)

// Collect lists what needs the owner, by kind and then by age. It adds to the sources
// the pending approvals, the breakers, the failed alerts and the owner's questions. What
// can't be read is in the error; the rest is listed.
func Collect(ctx context.Context, h home.Dir, mail *Mail, s Sources) ([]Need, error) {
	var failed []string
	note := func(what string, err error) {
		if err != nil {
			failed = append(failed, what+": "+err.Error())
		}
	}
	var err error
	s.Approvals, s.Answered, err = Approvals(h)
	note("approvals", err)
	s.Dirs = make(map[agent.ID]string)
	for _, q := range s.Approvals {
		if la, err := h.LoadLaunch(q.Agent); err == nil {
			s.Dirs[q.Agent] = la.Dir
		}
	}
	s.Answered = append(s.Answered, home.Approvals(h).JustSettled(justSettled)...)
	s.Breakers, err = breaker.List(h)
	note("accounts", err)
	s.Joins, err = team.Requests(h)
	note("hosts that ask to join", err)
	s.Failed, err = Failed(h)
	note("alerts", err)
	s.Questions, err = mail.Questions(ctx)
	note("questions to you", err)
	s.Blind = LoadBlind(h)
	s.Conflicts, err = merge.Load(h)
	note("conflicts", err)
	s.Hosts, err = Hosts(h, s.Now)
	note("hosts", err)
	s.Link, err = LinkOf(h)
	note("link", err)
	if len(failed) > 0 {
		err = fmt.Errorf("%s", strings.Join(failed, "; "))
	}
	return List(s), err
}

// justSettled is for how long after an answer the question may still be on a program's
// screen, where it is no other one: Codex takes up to 6 s.
const justSettled = 10 * time.Second

// Approvals returns the requests that wait for an answer, and the agents that are about to
// read one.
func Approvals(h home.Dir) (list []agent.Approval, answered []agent.ID, err error) {
	all, err := home.Approvals(h).List()
	for _, q := range all {
		if _, ok, _ := home.Approvals(h).Answered(q.Code); ok {
			answered = append(answered, q.Agent)
		} else {
			list = append(list, q)
		}
	}
	return list, answered, err
}

// List derives the list.
func List(s Sources) []Need {
	list := s.approvals()
	list = append(list, s.dialogs()...)
	list = append(list, s.joins()...)
	list = append(list, s.accounts()...)
	list = append(list, s.budgets()...)
	for _, a := range s.Agents {
		list = append(list, s.agent(a)...)
	}
	if s.Mistake != "" {
		list = append(list, s.mistake())
	}
	if n, ok := s.daemon(); ok {
		list = append(list, n)
	}
	if n, ok := s.unreached(); ok {
		list = append(list, n)
	}
	if n, ok := s.link(); ok {
		list = append(list, n)
	}
	for _, q := range s.Questions {
		list = append(list, q.need())
	}
	for _, k := range s.Conflicts {
		list = append(list, conflict(k))
	}
	list = append(list, s.elsewhere()...)
	slices.SortStableFunc(list, func(x, y Need) int {
		if x.Kind != y.Kind {
			return slices.Index(kinds, x.Kind) - slices.Index(kinds, y.Kind)
		}
		return int(min(max(x.Since-y.Since, -1), 1))
	})
	taken := make(map[string]bool)
	for i := range list {
		n := &list[i]
		for try := 0; n.Code == "" || taken[n.Code]; try++ {
			n.Code = codeOf(append([]string{string(n.Kind), fmt.Sprint(try)}, n.id...)...)
		}
		taken[n.Code] = true
		n.finish()
	}
	return list
}

// finish adds what follows from the rest.
func (n *Need) finish() {
	if n.There != nil {
		return
	}
	if len(n.Options) > 0 {
		does := "Allow once"
		switch n.Kind {
		case Dialog: // what it allows may last
			does = "Allow"
		case Budget:
			does = "Allow as much again"
		}
		n.Commands = append([]Command{
			{does, "netsky approve " + n.Code}, {"Deny", "netsky approve " + n.Code + " --deny"},
		}, n.Commands...)
	} else {
		n.Options = []string{}
	}
	n.Command = n.Commands[0].Line
	text := n.Text
	if n.Kind == Link { // it changes all the time, and is still the same trouble
		text = ""
	}
	what, _ := json.Marshal([]any{n.Code, n.Kind, n.About, n.Title, text, n.Dir, n.Options}) // strings always encode
	sum := sha256.Sum256(what)
	n.Digest = hex.EncodeToString(sum[:])
}

// Find returns the item with the code.
func Find(list []Need, code string) (Need, bool) {
	i := slices.IndexFunc(list, func(n Need) bool { return n.Code == code })
	if i < 0 {
		return Need{}, false
	}
	return list[i], true
}

// codeOf makes five letters of the parts. It omits l, as the codes of approvals do.
func codeOf(parts ...string) string {
	const letters = "abcdefghijkmnopqrstuvwxyz"
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	code := make([]byte, 5)
	for i := range code {
		code[i] = letters[int(sum[i])%len(letters)]
	}
	return string(code)
}
