// This file words the agents' work for a page: how it is, what landed and was checked, what tasks
// are called, and which comments were sent.
//
// The words are those of the packages that know; here is what a page adds. It keeps no state, so a crash
// leaves nothing.

package dashboard

import (
	"context"
	"strings"

	"netsky/attention"
	"netsky/store"
	"netsky/work"
	"netsky/work/dispatch"
	"netsky/work/git"
	"netsky/work/land"
	"netsky/work/record"
	"netsky/work/task"
)

// A Tree is how the work of one agent is.
type Tree struct {
	work.State
	Mark  string // the word that its glyph and its color are of
	Facts []Fact
	Next  []attention.Command
}

// A Fact is one thing that is true of an agent's work; Toned reports that the mark is of it.
type Fact struct {
	Text  string
	Toned bool
}

// TreeOf words how the work of an agent is.
func TreeOf(st work.State) Tree {
	t := Tree{State: st, Mark: st.State}
	if st.State == "ahead" && (st.Proof == work.Checked || st.Proof == work.Failed) {
		t.Mark = st.Proof
	}
	toned := t.Mark
	if st.Gone {
		toned = "its directory"
	}
	for _, text := range st.Facts() {
		t.Facts = append(t.Facts, Fact{text, strings.HasPrefix(text, toned)})
	}
	if st.Next != "" {
		t.Next = []attention.Command{{Line: st.Next}}
	}
	return t
}

// A Landing is what landed, as the page words it.
type Landing struct {
	record.Landing
	Says string
	Undo []attention.Command
}

// LandingOf words what landed.
func LandingOf(l record.Landing) Landing {
	out := Landing{Landing: l, Says: land.Says(l)}
	if l.State == record.Landed {
		out.Undo = []attention.Command{{Line: "netsky undo " + l.ID}}
	}
	return out
}

// Page is where others merge what was pushed, if it is a page.
func (l Landing) Page() string {
	if !strings.HasPrefix(l.URL, "https://") {
		return ""
	}
	return l.URL
}

// A Check is a run of the check command.
type Check struct {
	record.Check
	Took string
}

// On is the branch that the work was merged into.
func (k Check) On() string { return git.Branch(k.Target) }

// A Task is one on a page.
type Task struct{ dispatch.View }

// Waits reports whether it is to be started once what it needs is closed.
func (t Task) Waits() bool { return t.State == store.TaskOpen && t.Starter != "" }

// Unfinished reports whether a task that needs it can't be started yet.
func Unfinished(k store.Task) bool {
	return k.State != store.TaskDone && k.State != store.TaskCancelled
}

// BriefOf returns the task that a message is the brief of.
func BriefOf(message string) (id string, ok bool) { return task.OfBrief(message) }

// A Given is one time that a task was given to a worker: the brief, and its answer.
type Given = task.Start

// GivenOf finds to whom the task was given.
func GivenOf(ctx context.Context, mail task.Mail, k store.Task) ([]Given, error) {
	return task.Given(ctx, mail, k)
}

// The groups of tasks that have ended, of which the records know one state. Other tasks are in that of their
// state.
const (
	Claimed = "claimed" // which wait for somebody to land or accept them
	Closed  = "closed"
)

// Group is the group of a list that the task is in.
func (t Task) Group() string {
	switch {
	case t.State != store.TaskDone:
		return t.State
	case t.Word == task.Claimed || t.Word == task.Proved:
		return Claimed
	}
	return Closed
}

// Means is what the word says about proof.
func (t Task) Means() string {
	switch t.Word {
	case task.Waiting:
		return "It is started when what it waits for is closed."
	case task.Claimed:
		return "Its worker says that it is done. No check has passed for it as it is now."
	case task.Proved:
		return "The check has passed for what landing its branch would make now."
	case task.Landed:
		return "Its branch has landed since."
	}
	return ""
}

// A Batch is comments that were sent in one message.
type Batch struct {
	Message string
	Count   int
	At      store.Time
}

// Batches groups comments that were sent, by their message.
func Batches(sent []record.Comment) (list []Batch) {
	for _, k := range sent {
		if n := len(list); n > 0 && list[n-1].Message == k.Message {
			list[n-1].Count++
			continue
		}
		list = append(list, Batch{k.Message, 1, k.Ended})
	}
	return list
}
