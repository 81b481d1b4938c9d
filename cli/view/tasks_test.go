package view_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"netsky/agent"
	"netsky/cli/view"
	"netsky/internal/testworld"
	"netsky/store"
	"netsky/work/dispatch"
	"netsky/work/record"
	"netsky/work/task"
)

// many are two hundred tasks in all that tasks can be at, with titles that some agent has chosen.
func many(now time.Time) (list []dispatch.View) {
	words := []string{store.TaskInProgress, task.Waiting, store.TaskBlocked, task.Claimed, task.Proved, task.Landed, task.Done, store.TaskCancelled}
	for i := range 200 {
		v := dispatch.View{Word: store.TaskOpen}
		if i%4 == 0 {
			v.Word = words[i/4%len(words)]
		}
		v.ID, v.Title, v.Priority = fmt.Sprintf("t-%016x", i), strings.Repeat([]string{"größer ", "仕事の題 "}[i%2], i%20)+"\x1b[31mred\n2nd", i%10
		v.Created = store.At(now.Add(-time.Duration(i*i) * time.Minute))
		v.Started, v.Updated, v.Ended = v.Created, v.Created, v.Created
		v.Assignee = []agent.ID{"agent1", "agentinfinity", ""}[i%3]
		v.Now = strings.Repeat("it needs a reason ", i%5)
		list = append(list, v)
	}
	return list
}

// A list of two hundred tasks fits a terminal: no line is wider, no group hides the next, and the
// little that is being done comes first.
func TestTaskLines(t *testing.T) {
	t.Parallel()
	now := time.Now()
	list := many(now)
	for _, width := range []int{0, 40, 79, 80, 200} {
		lines := view.TaskLines(list, width, 0, now)
		var heads []string
		for _, l := range lines {
			if n := view.Columns(l); width > 0 && n > width {
				t.Errorf("%d columns, of %d: %s", n, width, l)
			}
			if strings.ContainsAny(l, "\x1b\n") {
				t.Errorf("control characters: %q", l)
			}
			if !strings.HasPrefix(l, " ") {
				heads = append(heads, l)
			}
		}
		want := "[in progress: 7 waiting for others: 7 open: 150 blocked: 6 claimed: 6 proved: 6 finished: 18]"
		testworld.Equal(t, fmt.Sprint(heads), want, "%d columns", width)
		if len(lines) > 80 {
			t.Errorf("%d lines", len(lines))
		}
	}
	count := func(limit int) int { return len(view.TaskLines(list, 80, limit, now)) }
	if n := count(-1); n != 207 {
		t.Errorf("all: %d lines", n)
	}
	if n := count(2); n != 28 { // seven groups, each with a head, two lines, and how many are left
		t.Errorf("two of each: %d lines", n)
	}
	if n := len(view.TaskLines(nil, 80, 0, now)); n != 0 {
		t.Errorf("of none: %d lines", n)
	}
}

// Each finished task says what it is called.
func TestFinishedIsNamed(t *testing.T) {
	t.Parallel()
	for _, word := range []string{task.Landed, task.Done, store.TaskCancelled} {
		lines := view.TaskLines([]dispatch.View{{Task: store.Task{ID: "t-0123456789", Title: "x"}, Word: word}}, 80, 0, time.Now())
		if len(lines) != 2 || !strings.HasSuffix(lines[1], "  x  "+word) {
			t.Errorf("%s: %q", word, lines)
		}
	}
}

// Nothing that is only claimed is called done, whatever it says of itself.
func TestClaimedIsNotDone(t *testing.T) {
	t.Parallel()
	k := store.Task{ID: "t-0123456789abcdef", Title: "x", State: store.TaskDone, ClosedBy: "agent1", Assignee: "agent1", Head: strings.Repeat("a", 40), Proof: "go test: ok"}
	v := dispatch.View{Task: k, Word: task.Claimed}
	text := strings.Join(view.TaskLines([]dispatch.View{v}, 80, 0, time.Now()), "\n") + "\n" +
		strings.Join(view.TaskStory(dispatch.Story{View: v, Needs: []dispatch.View{v}, NeededBy: []dispatch.View{v}}), "\n")
	if strings.Contains(text, "done") || strings.Count(text, "claimed") < 4 {
		t.Errorf("%s", text)
	}
	for _, want := range []string{"closed by  agent1", "at the commit aaaaaaaaaaaa", "| go test: ok"} {
		testworld.Contains(t, text, want)
	}
}

// A task for which nothing was committed stays claimed whatever lands later: the owner's word ends that.
func TestClaimedWithoutCommits(t *testing.T) {
	t.Parallel()
	k := store.Task{ID: "t-0123456789abcdef", Title: "x", State: store.TaskDone, ClosedBy: "agent1", Begun: "a", Head: "a"}
	for word, want := range map[string]bool{task.Claimed: true, task.Done: false} {
		text := strings.Join(view.TaskStory(dispatch.Story{View: dispatch.View{Task: k, Word: word}}), "\n")
		if strings.Contains(text, "`netsky task done t-01234567` accepts it") != want {
			t.Errorf("%s: %s", word, text)
		}
	}
}

func TestCostIsCounted(t *testing.T) {
	t.Parallel()
	for turns, want := range map[int]string{1: "claude: 1 turn, 2 tokens in", 3: "claude: 3 turns, 2 tokens in"} {
		s := dispatch.Story{View: dispatch.View{Task: store.Task{ID: "t-0123456789abcdef", Title: "x"}}, Cost: []record.Cost{{Model: "claude", Turns: turns, Input: 2}}}
		testworld.Contains(t, strings.Join(view.TaskStory(s), "\n"), want)
	}
}
