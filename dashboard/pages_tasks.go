package dashboard

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"netsky/store"
)

var taskStates = []string{store.TaskOpen, store.TaskInProgress, store.TaskBlocked, store.TaskDone, store.TaskCancelled}

// ofTasks is how many tasks of a group are shown where all groups are.
const ofTasks = 20

func (t *tasks) page(ctx context.Context, sh *shell, q *query) (string, error) {
	sh.Title, sh.Section = "Tasks", "tasks"
	f := q.tasks()
	fields := []field{
		{Name: "state", Label: "State", Options: taskStates},
		{Name: "assignee", Label: "Assigned to", Options: sh.names(false)},
		{Name: "asked_by", Label: "Asked by", Options: sh.names(true)},
		{Name: "text", Label: "Title contains"},
	}
	var b listBody
	var err error
	if f.State == "" && f.Cursor == "" {
		b, err = t.byState(ctx, q, f, fields)
	} else {
		f.Limit = onPageOr(f.Limit)
		var l store.List[store.Task]
		l, err = readList(ctx, t.records, q, f, Reader.Tasks)
		b = q.list("/tasks", nil, len(l.Items), l.Cursor, fields...)
		if err == nil {
			err = b.group(q, "state", t.groups(ctx), anys(t.called(ctx, l.Items)), groupOf)
		}
	}
	sh.Body = b
	return "tasks", err
}

// tasksByState is the list of all tasks: the newest of each state, so that a long list of those that wait for
// nobody hides none of the others. The list of one state has the rest.
func (t *tasks) byState(ctx context.Context, q *query, f store.TaskFilter, fields []field) (b listBody, err error) {
	most := cmp.Or(f.Limit, ofTasks)
	f.Limit = max(f.Limit, onPage) // of those that have ended, which are claimed is known once they are read
	var all []store.Task
	more := make(map[string]bool)
	for _, f.State = range taskStates {
		l, err := readList(ctx, t.records, q, f, Reader.Tasks)
		if err != nil {
			return q.list("/tasks", nil, 0, "", fields...), err
		}
		all, more[f.State] = append(all, l.Items...), l.Cursor != ""
	}
	b = q.list("/tasks", nil, len(all), "", fields...)
	groups := t.groups(ctx)
	if err := b.group(q, "state", groups, anys(t.called(ctx, all)), groupOf); err != nil {
		return b, err
	}
	for i := range b.Groups {
		g := &b.Groups[i]
		of := groups[slices.IndexFunc(groups, func(o grouper) bool { return o.states[0] == g.group })]
		state := cmp.Or(of.only, g.group)
		if more[state] {
			g.All += "+"
			if of.count != nil && !b.Any {
				if g.All, err = counted(of.count, state); err != nil {
					return b, err
				}
			}
		}
		if more[state] || len(g.Items) > most {
			g.Items, g.More = g.Items[:min(len(g.Items), most)], "All that are "+strings.ReplaceAll(state, "_", " ")
		}
	}
	return b, nil
}

// taskGroups are the groups of tasks, those that need attention first.
func (t *tasks) groups(ctx context.Context) []grouper {
	count := func(state string) (int, bool, error) {
		db, err := t.records()
		if err != nil {
			return 0, false, err
		}
		l, err := db.Tasks(ctx, store.TaskFilter{State: state, Page: store.Page{Limit: countTo}})
		return len(l.Items), l.Cursor != "", err
	}
	group := func(state string) grouper {
		return grouper{title: stateTitle(state), states: []string{state}, count: count}
	}
	ended := func(word string) grouper { // which of them are in it, is known of those on the page
		return grouper{title: stateTitle(word), states: []string{word}, tone: word, only: store.TaskDone}
	}
	closed := ended(Closed)
	closed.tone = store.TaskDone
	return []grouper{
		group(store.TaskInProgress), group(store.TaskBlocked), ended(Claimed), group(store.TaskOpen), closed, group(store.TaskCancelled),
	}
}

func groupOf(t any) string { return t.(Task).Group() }
