package diff_test

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"netsky/bus"
	"netsky/internal/testworld"
	"netsky/store"
	"netsky/work/diff"
	"netsky/work/git"
	"netsky/work/record"
	"netsky/work/tree"
)

// newReview returns the owner's review of a change of agent1's, whose a.txt has three lines.
func newReview(t *testing.T, o bus.Options) (diff.Review, *diff.Change) {
	t.Helper()
	h := testworld.FastHome(t)
	f := testworld.NewRepo(t, filepath.Join(t.TempDir(), "src"))
	r := testworld.Got(git.Open(t.Context(), f.Dir, ""))(t)
	p := testworld.Got(tree.Make(t.Context(), h, "agent1", r, false))(t)
	f.At(p.Dir).Write("a.txt", "1\n2\n</channel>\n")
	c := testworld.Got(diff.Open(t.Context(), h, p.Worktree))(t)
	t.Cleanup(func() { c.Close() })
	b := bus.New(h, o)
	testworld.Must(t, b.Make("agent1"))
	j := store.NewJournal(h)
	t.Cleanup(func() { j.Close() })
	return diff.Review{
		Author: "owner", Bus: b, Record: j.Record,
		Read: func(ctx context.Context, do func(record.Records) error) error {
			db, err := store.OpenRead(ctx, h)
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err != nil {
				return err
			}
			defer db.Close()
			return do(record.Records{DB: db})
		},
	}, c
}

func TestSend(t *testing.T) {
	t.Parallel()
	rv, c := newReview(t, bus.Options{})
	b, keep := rv.Bus, rv.Record
	failing, errFails := 0, errors.New("the disk is full")
	rv.Record = func(ctx context.Context, ops ...store.Op) error {
		if failing--; failing == 0 {
			return errFails
		}
		return keep(ctx, ops...)
	}
	pending := func(want int) []record.Comment {
		t.Helper()
		list, err := rv.Pending(t.Context(), "agent1")
		if err != nil || len(list) != want {
			t.Fatalf("%+v, %v; want %d", list, err, want)
		}
		return list
	}
	mail := func() map[string]string {
		entries := testworld.Got(b.List("agent1", bus.Inbox, 100))(t)
		byID := make(map[string]string)
		for _, e := range entries {
			if before, ok := byID[e.Envelope.ID]; ok && before != e.Envelope.Text {
				t.Errorf("two texts of %s", e.Envelope.ID)
			}
			byID[e.Envelope.ID] = e.Envelope.Text
		}
		return byID
	}
	add := func(line int, old bool, text string) record.Comment {
		t.Helper()
		return testworld.Got(rv.Add(t.Context(), c, "agent1", "a.txt", line, old, text))(t)
	}
	pending(0)
	testworld.ErrorIs(t, testworld.Err(rv.Add(t.Context(), c, "agent1", "a.txt", 9, false, "x")), diff.ErrNoLine)
	add(3, false, "why?")
	add(1, true, "it was right </channel>")
	wrong := add(1, false, "a mistake")
	testworld.Fails(t, testworld.Err(rv.Drop(t.Context(), "agent1", "zz")), "", "an unknown id was dropped")
	testworld.Got(rv.Drop(t.Context(), "agent1", wrong.ID[:6]))(t)
	pending(2)

	// It fails before anything is sent, then after that; what is added meanwhile is another message.
	failing = 1
	if _, err := rv.Send(t.Context(), "agent1"); !errors.Is(err, errFails) || len(mail()) != 0 {
		t.Errorf("%v, sent %v", err, mail())
	}
	failing = 2
	if _, err := rv.Send(t.Context(), "agent1"); !errors.Is(err, errFails) || len(mail()) != 1 {
		t.Errorf("%v, sent %v", err, mail())
	}
	begun := pending(2)
	testworld.Fails(t, testworld.Err(rv.Drop(t.Context(), "agent1", begun[0].ID)), "", "one that may have been sent was dropped")
	add(2, false, "later")
	sent, err := rv.Send(t.Context(), "agent1")
	if err != nil || len(sent) != 2 || sent[0].ID != begun[0].Message || len(mail()) != 2 {
		t.Errorf("%+v, %v, sent %v", sent, err, mail())
	}
	text := mail()[begun[0].Message]
	want := "2 comments on your work:\n\na.txt, line 3:\n> 1: 1\n> 2: 2\n> 3: &lt;/channel>\nwhy?\n\na.txt, line 1 as it was before your changes:\n> 1: one\nit was right &lt;/channel>\n"
	testworld.Equal(t, text, want)
	pending(0)
	if sent, err := rv.Send(t.Context(), "agent1"); err != nil || len(sent) != 0 {
		t.Errorf("%+v, %v", sent, err)
	}
	if _, err := rv.Add(t.Context(), c, "agent1", "a.txt", 1, false, strings.Repeat("x", diff.MaxText+1)); err == nil {
		t.Error("a text that is too long was recorded")
	}
}

// Two who send at once, of whom one knows of a comment more, send each comment once.
func TestSendAtOnce(t *testing.T) {
	t.Parallel()
	rv, c := newReview(t, bus.Options{})
	add := func(line int) {
		t.Helper()
		testworld.Got(rv.Add(t.Context(), c, "agent1", "a.txt", line, false, "why?"))(t)
	}
	add(1)
	first, begun := rv, false
	first.Record = func(ctx context.Context, ops ...store.Op) error {
		if !begun {
			begun = true
			add(2)
			if sent, err := rv.Send(ctx, "agent1"); err != nil || len(sent) != 1 {
				t.Errorf("the second: %+v, %v", sent, err)
			}
		}
		return rv.Record(ctx, ops...)
	}
	testworld.Equal(t, testworld.Err(first.Send(t.Context(), "agent1")), nil)
	list := testworld.Got(rv.Bus.List("agent1", bus.Inbox, 100))(t)
	texts := make(map[string]bool)
	for _, e := range list {
		texts[e.Envelope.Text] = true
	}
	if all := strings.Join(slices.Collect(maps.Keys(texts)), ""); strings.Count(all, "line 1:") != 1 || strings.Count(all, "line 2:") != 1 {
		t.Errorf("sent: %s", all)
	}
	if left, err := rv.Pending(t.Context(), "agent1"); err != nil || len(left) > 0 {
		t.Errorf("left: %+v, %v", left, err)
	}
}

// Comments that could not be sent, as the message is too long, can be dropped, and then the others are sent.
func TestDropUnsent(t *testing.T) {
	t.Parallel()
	rv, c := newReview(t, bus.Options{MaxBytes: 6000})
	var list []record.Comment
	for line := range 2 {
		k := testworld.Got(rv.Add(t.Context(), c, "agent1", "a.txt", line+1, false, strings.Repeat("x", diff.MaxText)))(t)
		list = append(list, k)
	}
	if sent, err := rv.Send(t.Context(), "agent1"); err == nil {
		t.Fatalf("sent %+v", sent)
	}
	testworld.Got(rv.Drop(t.Context(), "agent1", list[0].ID))(t)
	if sent, err := rv.Send(t.Context(), "agent1"); err != nil || len(sent) != 1 || len(sent[0].Comments) != 1 {
		t.Errorf("%+v, %v", sent, err)
	}
}
