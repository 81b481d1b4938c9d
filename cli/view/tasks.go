package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"netsky/bus/envelope"
	"netsky/internal/words"
	"netsky/store"
	"netsky/work/dispatch"
	"netsky/work/task"
)

// A group is the tasks of a list that are alike.
type group struct {
	title string
	words []string
	most  int // that are listed if nothing else is asked for
	since func(store.Task) store.Time
	named bool // each line says what its task is called
}

var groups = []group{
	{"in progress", []string{store.TaskInProgress}, 20, func(k store.Task) store.Time { return k.Started }, false},
	{"waiting for others", []string{task.Waiting}, 20, created, false},
	{"open", []string{store.TaskOpen}, 20, created, false},
	{"blocked", []string{store.TaskBlocked}, 20, func(k store.Task) store.Time { return k.Updated }, false},
	{"claimed", []string{task.Claimed}, 20, ended, false},
	{"proved", []string{task.Proved}, 20, ended, false},
	{"finished", []string{task.Landed, task.Done, store.TaskCancelled}, 5, ended, true},
}

func created(k store.Task) store.Time { return k.Created }
func ended(k store.Task) store.Time   { return cmp.Or(k.Ended, k.Updated) }

// TaskLines returns a list of tasks, in groups, a line for each, at most width columns wide; 0 is no
// limit. Of each group limit are listed; 0 is a few, below 0 all.
func TaskLines(list []dispatch.View, width, limit int, now time.Time) (lines []string) {
	who := len(task.Nobody)
	for _, v := range list {
		who = max(who, len(v.Assignee))
	}
	for _, g := range groups {
		of := slices.DeleteFunc(slices.Clone(list), func(v dispatch.View) bool { return !slices.Contains(g.words, v.Word) })
		if len(of) == 0 {
			continue
		}
		lines = append(lines, fmt.Sprintf("%s: %d", g.title, len(of)))
		most := g.most
		if limit != 0 {
			most = limit
		}
		if limit < 0 {
			most = len(of)
		}
		for _, v := range of[:min(most, len(of))] {
			lines = append(lines, g.line(v, who, width, now))
		}
		if left := len(of) - most; left > 0 {
			lines = append(lines, Cut(fmt.Sprintf("  and %d more: --all lists them", left), width))
		}
	}
	return lines
}

// line describes one task. What keeps it gets at most two fifths of the width.
func (g group) line(v dispatch.View, who, width int, now time.Time) string {
	head := fmt.Sprintf("  %-10s  %d  %-*s  %4s  ", dispatch.Short(v.ID), v.Priority, who, cmp.Or(string(v.Assignee), task.Nobody),
		words.Ago(now.Sub(g.since(v.Task).Time())))
	title, note := plain(v.Title), plain(v.Now)
	if g.named {
		note = strings.TrimSpace(v.Word + " " + note)
	}
	if width <= 0 {
		return strings.TrimRight(head+title+words.Note(note), " ")
	}
	note = Cut(note, max(width*2/5, 8))
	room := width - len(head)
	if note != "" {
		room -= Columns(note) + 2
	}
	return Cut(strings.TrimRight(head+Cut(title, max(room, 8))+words.Note(note), " "), width)
}

// plain returns a text as one line without control characters.
func plain(text string) string {
	return strings.Join(strings.Fields(envelope.Plain(words.FirstLine(text))), " ")
}

// NoUsage says what something cost of which no usage is on record: an agent whose program reports none
// may have used any.
const NoUsage = "not known: no usage is on record"

// TaskStory returns all about one task: who asked, who worked on it, what came of it.
func TaskStory(s dispatch.Story) []string {
	var l lines
	k := s.Task
	l.add("task %s: %s", k.ID, plain(k.Title))
	l.add("  %-10s %s%s", "state", strings.ReplaceAll(s.Word, "_", " "), words.Note(plain(s.Now)))
	asked := cmp.Or(string(k.AskedBy), "nobody") + ", " + Stamp(k.Created)
	if k.Message != "" {
		asked += fmt.Sprintf(", in the message %s (`netsky show %s`)", k.Message, k.Message)
	}
	l.add("  %-10s %s", "asked by", asked)
	l.add("  %-10s %s, priority %d%s", "assigned", cmp.Or(string(k.Assignee), task.Nobody), k.Priority, minutes(k))
	for text := range strings.SplitSeq(strings.TrimRight(envelope.Plain(k.Body), "\n"), "\n") {
		if k.Body != "" {
			l.add("  | %s", text)
		}
	}
	l.tasks("needs", s.Needs)
	l.tasks("needed by", s.NeededBy)
	for _, g := range s.Starts {
		became := string(g.State)
		if g.Answer != "" {
			became = fmt.Sprintf("answered (`netsky show %s`)", g.Answer)
		}
		l.add("  %-10s %s, %s, %s%s", "given to", g.Worker, Stamp(g.Sent), g.Brief, words.Note(became))
	}
	l.became(s)
	for _, c := range s.Cost {
		turns := "turns"
		if c.Turns == 1 {
			turns = "turn"
		}
		l.add("  %-10s %s: %d %s, %d tokens in, %d out, %d from and %d to the cache", "cost", plain(c.Model), c.Turns, turns, c.Input, c.Output, c.CacheRead, c.CacheWrite)
	}
	if len(s.Cost) == 0 && s.Task.Starts > 0 {
		l.add("  %-10s %s", "cost", NoUsage)
	}
	for _, n := range s.Notes {
		l.add("  %-10s %s, %s", "note", plain(n.Author), Stamp(n.Created))
		for text := range strings.SplitSeq(envelope.Plain(n.Text), "\n") {
			l.add("  | %s", text)
		}
	}
	return l
}

func minutes(k store.Task) (text string) {
	if k.EstimateMinutes > 0 {
		text += fmt.Sprintf(", estimate %d min", k.EstimateMinutes)
	}
	if took := k.Took(); took != "" {
		text += ", took " + took
	}
	return text
}

// tasks adds a line for each of some tasks.
func (l *lines) tasks(what string, list []dispatch.View) {
	for _, k := range list {
		state := "removed"
		if k.State != "" {
			state = strings.ReplaceAll(k.Word, "_", " ")
		}
		l.add("  %-10s %s  %s  %s", what, dispatch.Short(k.ID), state, plain(k.Title))
	}
}

// became adds what came of the task, by whose word.
func (l *lines) became(s dispatch.Story) {
	k := s.Task
	if k.State == store.TaskDone {
		at := ""
		if k.Head != "" {
			at = ", at the commit " + k.Head[:min(len(k.Head), 12)]
		}
		l.add("  %-10s %s, %s%s", "closed by", cmp.Or(string(k.ClosedBy), "nobody knows who"), Stamp(ended(k)), at)
	}
	if s.Word == task.Claimed && k.Head == k.Begun {
		l.add("  %-10s nothing was committed for it by then, which a check could prove; `netsky task done %s` accepts it", "unproved", dispatch.Short(k.ID))
	}
	if k.Proof != "" {
		l.add("  proof")
		for text := range strings.SplitSeq(strings.TrimRight(envelope.Plain(k.Proof), "\n"), "\n") {
			l.add("  | %s", text)
		}
	} else if k.State == store.TaskDone {
		l.add("  %-10s the word of %s", "proof", cmp.Or(string(k.ClosedBy), "nobody knows who"))
	}
	for _, c := range s.Checks {
		l.add("  %-10s %s  %s, %s  %s", "check", c.ID, c.State, Stamp(c.Started), plain(c.Command))
	}
	for _, v := range s.Landings {
		l.add("  %-10s %s  %s on %s, %s", "landing", v.ID, v.State, v.Target, Stamp(v.Started))
	}
}
