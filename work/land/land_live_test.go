//go:build live

package land_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"netsky/internal/testworld"
	"netsky/work/land"
	"netsky/work/record"
)

// A landing that git has merged by keeping both sides is taken back all the same, or it is said that it is not.
func TestUndoUnion(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	const lines = "1\n2\n3\n4\n5\n"
	y.Commit("attributes", ".gitattributes", "*.log merge=union\n", "x.log", lines)
	y.clone("agent1").Commit("one", "x.log", lines+"agent's\n")
	l := y.land("agent1", land.LandOptions{Unchecked: true})
	y.Commit("later", "x.log", lines+"agent's\nlater\n")
	if _, err := y.desk.Undo(t.Context(), l.ID); !errors.Is(err, land.ErrNotYet) || !strings.Contains(err.Error(), "x.log") {
		t.Errorf("%v", err)
	}
	y.Commit("elsewhere", "x.log", "mine\n"+lines+"agent's\n")
	if _, err := y.desk.Undo(t.Context(), l.ID); err != nil || y.Read("x.log") != "mine\n"+lines {
		t.Errorf("%q, %v", y.Read("x.log"), err)
	}
	y.clone("agent2").Commit("two", "b.txt", "b\n")
	l = y.land("agent2", land.LandOptions{Unchecked: true})
	y.Git("revert", "--no-edit", l.After)
	now := y.Git("rev-parse", "HEAD")
	if _, err := y.desk.Undo(t.Context(), l.ID); !errors.Is(err, land.ErrNotYet) || !strings.Contains(err.Error(), "would change nothing") || y.Git("rev-parse", "HEAD") != now {
		t.Errorf("%v", err)
	}
	y.tidy()
}

// What is checked is what is stored, whatever the agent has git show in its place.
func TestReplaced(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	y.desk.Command.Text = "grep -q good b.txt"
	testworld.Must(t, y.desk.Command.Agree(y.home))
	at := y.clone("agent1")
	at.Commit("bad", "b.txt", "bad")
	at.Write("x", "good")
	at.Git("replace", at.Git("rev-parse", "HEAD:b.txt"), at.Git("hash-object", "-w", "x"))
	os.Remove(filepath.Join(at.Dir, "x"))
	if k := y.check("agent1"); k.State != record.Failed {
		t.Errorf("%+v", k)
	}
	// What the owner has committed meanwhile does not count as the agent's.
	y.Commit("the owner's", "o.txt", "o")
	at.Git("replace", "--graft", "netsky/agent1", "main")
	y.Write(".git/info/grafts", at.Git("rev-parse", "HEAD")+" "+y.Git("rev-parse", "main")+"\n")
	if l := y.land("agent1", land.LandOptions{Unchecked: true}); l.How != land.Merging || y.Read("o.txt") != "o" {
		t.Errorf("%+v", l)
	}
}
