package store_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"netsky/internal/testworld"
	"netsky/store"
)

func TestFind(t *testing.T) {
	t.Parallel()
	home := testworld.Home(t)
	db := mustOpen(t, home)
	for i := range 5 {
		mustApply(t, db,
			store.UpsertMessage{ID: fmt.Sprint("m-", i), From: "owner", To: "agent1", Text: fmt.Sprint("plan ", i, " of the Bridge"), Time: store.Time(1000 + 10*i)},
			store.UpsertTask{ID: fmt.Sprint("t-", i), Title: "bridge", Body: fmt.Sprint("build ", i), State: store.TaskOpen, AskedBy: "agent0", Created: store.Time(1000 + 10*i), Updated: 5000},
			store.AddNote{ID: fmt.Sprint("n-", i), About: fmt.Sprint("t-", i), Author: "agent1", Text: "on the bridge's piers", Created: store.Time(1005 + 10*i)})
	}
	mustApply(t, db, store.UpsertMessage{ID: "f-1", From: "owner", To: "agent2", Text: strings.Repeat("x ", 1e5) + "needle" + strings.Repeat(" y", 1e5), Time: 9000,
		Metadata: map[string]json.RawMessage{store.MetaFile: json.RawMessage(`"hello.json"`)}})
	for _, tt := range []struct {
		text string
		want string
	}{
		{"PLAN bridge 3", "message m-3"},
		{"build", "task t-4,task t-3,task t-2,task t-1,task t-0"},
		{"piers bridge", "note n-4,note n-3,note n-2,note n-1,note n-0"},
		{"HELLO", "message f-1"},
		{"hello.json", "message f-1"},
		{"m-2", "message m-2"},
		{"pl_n", ""},
		{"%", ""},
		{`\`, ""},
	} {
		l := testworld.Got(db.Find(t.Context(), tt.text, store.Page{}))(t)
		var got []string
		for _, f := range l.Items {
			got = append(got, f.Kind+" "+f.ID)
		}
		testworld.Equal(t, strings.Join(got, ","), tt.want, "Find(%q)", tt.text)
	}
	l := testworld.Got(db.Find(t.Context(), "needle", store.Page{}))(t)
	if f := l.Items[0]; !strings.Contains(f.Text, "needle") || len(f.Text) > 500 || f.File != "hello.json" || f.To != "agent2" {
		t.Errorf("found %+v", f)
	}
	// Page by page each once, in order, also those of the same moment.
	var pages []string
	for p := (store.Page{Limit: 2}); ; {
		l := testworld.Got(db.Find(t.Context(), "bridge", p))(t)
		for _, f := range l.Items {
			pages = append(pages, f.ID)
		}
		if p.Cursor = l.Cursor; p.Cursor == "" {
			break
		}
	}
	want := "n-4,m-4,t-4,n-3,m-3,t-3,n-2,m-2,t-2,n-1,m-1,t-1,n-0,m-0,t-0"
	testworld.Equal(t, strings.Join(pages, ","), want, "pages")
	for _, text := range []string{"", "  ", strings.Repeat("a", 201), strings.Repeat("a ", 9)} {
		testworld.ErrorIs(t, testworld.Err(db.Find(t.Context(), text, store.Page{})), store.ErrSearch, "Find(%.10q)", text)
	}
}

// A person's name of a file stands for the newest message that came by it.
func TestTimelineByFile(t *testing.T) {
	t.Parallel()
	home := testworld.Home(t)
	db := mustOpen(t, home)
	file := map[string]json.RawMessage{store.MetaFile: json.RawMessage(`"hello.json"`)}
	mustApply(t, db,
		store.UpsertMessage{ID: "f-old", From: "owner", To: "agent1", Text: "old", Time: 1000, Metadata: file},
		store.UpsertMessage{ID: "f-new", From: "owner", To: "agent1", Text: "new", Time: 2000, Metadata: file})
	for _, name := range []string{"hello", "hello.json"} {
		l, err := db.Timeline(t.Context(), name)
		if err != nil || l.Subject != (store.Subject{Kind: store.SubjectMessage, ID: "f-new"}) {
			t.Errorf("%s: %+v, %v", name, l.Subject, err)
		}
	}
	l, err := db.Timeline(t.Context(), "owner")
	if err != nil || l.Subject.Kind != store.SubjectActor || len(l.Events) != 2 {
		t.Errorf("owner: %+v, %v", l, err)
	}
	testworld.ErrorIs(t, testworld.Err(db.Timeline(t.Context(), "agent9")), store.ErrNotFound, "agent9")
}
