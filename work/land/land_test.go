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

func TestCheckLandUndo(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, how string
		moved     bool // the target moves before
		want      string
		parents   int
		subject   string
	}{
		{"forward", "", false, land.Forward, 1, "two"},
		{"merge", "", true, land.Merging, 2, "Merge netsky/agent1 into main"},
		{"merge, though not needed", land.Merging, false, land.Merging, 2, "Merge netsky/agent1 into main"},
		{"squash", land.Squash, true, land.Squash, 1, "netsky/agent1: 2 commits"},
		{"rebase", land.Rebase, true, land.Rebase, 1, "two"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			y := newYard(t)
			at := y.clone("agent1")
			first := at.Commit("one", "b.txt", "b\n")
			y.Git("branch", "mark", first)
			y.Git("config", "rebase.updateRefs", "true")
			head := at.Commit("two", "c d.txt", "c\n")
			if tt.moved {
				y.Commit("owner's", "o.txt", "o\n")
			}
			before := y.Git("rev-parse", "main")
			if _, err := y.desk.Land(t.Context(), "agent1", land.LandOptions{How: tt.how}); !errors.Is(err, land.ErrNotYet) || !strings.Contains(err.Error(), "no check has passed") {
				t.Fatalf("without a check: %v", err)
			}
			if k := y.check("agent1"); k.State != record.Passed || k.Known {
				t.Fatalf("check: %+v", k)
			}
			if k := y.check("agent1"); !k.Known {
				t.Errorf("checked again: %+v", k)
			}
			if p := y.state("agent1"); p.Proof != land.Proved {
				t.Errorf("proof: %+v", p)
			}
			l := y.land("agent1", land.LandOptions{How: tt.how})
			if l.How != tt.want || l.State != record.Landed || l.Evidence == "" || len(l.Notes) > 0 {
				t.Errorf("landing: %+v", l)
			}
			testworld.Equal(t, strings.Count(y.Git("log", "-1", "--format=%p", "main"), " ")+1, tt.parents, "parents")
			testworld.Equal(t, y.Git("log", "-1", "--format=%s|%an", "main"), tt.subject+"|Ada", "subject")
			if tt.want == land.Merging || tt.want == land.Squash {
				testworld.Equal(t, y.Git("log", "-1", "--format=%(trailers:only)", "main"), "Netsky-Agent: agent1", "trailer")
			}
			if y.Read("b.txt") != "b\n" || y.Read("c d.txt") != "c\n" || y.Git("status", "--porcelain") != "" || y.Git("rev-parse", "main") != l.After {
				t.Errorf("the owner's files: %s", y.Git("status"))
			}
			if at.Git("rev-parse", "HEAD") != l.After || at.Git("status", "--porcelain", "-b") != "## netsky/agent1" {
				t.Errorf("the agent's: %s", at.Git("log", "--oneline"))
			}
			testworld.Equal(t, y.Git("rev-parse", "mark"), first, "another branch has moved")
			kept, _ := y.Try("rev-parse", "refs/netsky/retired/agent1-"+head[:12])
			testworld.Equal(t, tt.want == land.Squash || tt.want == land.Rebase, (kept == head), "kept: %q", kept)
			testworld.ErrorIs(t, testworld.Err(y.desk.Land(t.Context(), "agent1", land.LandOptions{})), land.ErrNothing, "landed twice")
			u, err := y.desk.Undo(t.Context(), l.ID[:5])
			if err != nil || u.Reverted || y.Git("rev-parse", "main") != before || y.Read("b.txt") != "" || y.Git("status", "--porcelain") != "" {
				t.Errorf("undone: %+v %v\n%s", u, err, y.Git("status"))
			}
			if list, _ := y.records(); len(list) != 1 || list[0].State != record.Undone || list[0].Undo != before {
				t.Errorf("on record: %+v", list)
			}
			testworld.Equal(t, y.Git("rev-parse", "refs/netsky/retired/agent1-"+l.After[:12]), l.After, "what landed")
			testworld.Fails(t, testworld.Err(y.desk.Undo(t.Context(), l.ID)), "", "undone twice")
			y.tidy()
		})
	}
}

func TestUndoBuiltOn(t *testing.T) {
	t.Parallel()
	for _, how := range []string{land.Merging, land.Squash, land.Rebase, ""} {
		t.Run("as "+how, func(t *testing.T) {
			t.Parallel()
			y := newYard(t)
			at := y.clone("agent1")
			at.Commit("one", "b.txt", "b\n")
			at.Commit("two", "c.txt", "c\n", "a.txt", "agent's\n")
			l := y.land("agent1", land.LandOptions{How: how, Unchecked: true})
			testworld.Equal(t, l.Evidence, "", "%+v", l)
			after := y.Commit("later", "later.txt", "later\n")
			u, err := y.desk.Undo(t.Context(), l.ID)
			if err != nil || !u.Reverted {
				t.Fatalf("%+v %v", u, err)
			}
			if y.Git("rev-parse", "main^") != after || y.Read("b.txt")+y.Read("c.txt") != "" || y.Read("a.txt") != "one\n" || y.Read("later.txt") != "later\n" || y.Git("status", "--porcelain") != "" {
				t.Errorf("%s\n%s", y.Git("log", "--oneline"), y.Git("status"))
			}
			y.tidy()
		})
	}
	y := newYard(t)
	y.clone("agent1").Commit("one", "a.txt", "two\n")
	l := y.land("agent1", land.LandOptions{Unchecked: true})
	now := y.Commit("later", "a.txt", "three\n")
	if _, err := y.desk.Undo(t.Context(), l.ID); !errors.Is(err, land.ErrNotYet) || !strings.Contains(err.Error(), "a.txt") || y.Git("rev-parse", "main") != now {
		t.Errorf("a conflict: %v", err)
	}
	y.tidy()
}

func TestConflict(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	y.Commit("lines", "a.txt", "1\n2\n3\n4\n5\n6\n7\n8\n9\n", "sub/x y", "x\n", "gone", "g\n")
	at := y.clone("agent1")
	at.Git("rm", "-q", "gone")
	at.Commit("theirs", "a.txt", "1\nzwei\nzwo\n3\n4\n5\n6\n7\nacht\n9\n", "sub/x y", "agent's\n")
	y.Git("rm", "-q", "sub/x y")
	before := y.Commit("ours", "a.txt", "1\ntwo\n3\n4\n5\n6\n7\neight\n9\n", "gone", "kept\n")
	for _, verb := range []string{"check agent1", "land agent1"} {
		err := run(t.Context(), y.desk, verb)
		conflict := new(land.ConflictError)
		if !errors.As(err, &conflict) || !errors.Is(err, land.ErrNotYet) {
			t.Fatalf("%s: %v", verb, err)
		}
		got := err.Error()
		for _, want := range []string{"agent1: netsky/agent1 and main conflict in 3 files", "\na.txt: lines 2-3, line 9", "\nsub/x y: CONFLICT (modify/delete)", "deleted in main and modified in netsky/agent1"} {
			if !strings.Contains(got, want) {
				t.Errorf("%s: %q is missing in\n%s", verb, want, got)
			}
		}
	}
	if y.Git("rev-parse", "main") != before || y.Git("status", "--porcelain") != "" {
		t.Error("something changed")
	}
	if got := y.told["agent1"]; !strings.Contains(got, "a.txt: lines 2-3") || !strings.Contains(got, "Merge main into your branch") {
		t.Errorf("told: %q", got)
	}
	if p := y.state("agent1"); len(p.Conflicts) != 1 || len(p.Conflicts[0].Files) != 3 || p.Proof != "" {
		t.Errorf("%+v", p)
	}
	y.tidy()
}

// A worker that says more than is true is never shown as proved.
func TestLyingWorker(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	at := y.clone("agent1")
	want := func(state, why string) {
		t.Helper()
		if p := y.state("agent1"); p.Proof != state || !strings.Contains(strings.Join(p.Facts(), ", "), why) {
			t.Errorf("%s (%s), want %s (%s)", p.Proof, p.Facts(), state, why)
		}
	}
	want("", "clean") // nothing done
	if _, tree, err := land.Current(t.Context(), y.home, "agent1"); !errors.Is(err, land.ErrNothing) {
		t.Errorf("what would land of nothing: %s, %v", tree, err)
	}
	at.Commit("red", "broken", "x")
	want(land.Unchecked, "")
	if k := y.check("agent1"); k.State != record.Failed || k.Status != 1 {
		t.Errorf("%+v", k)
	}
	want(land.Failed, "")
	if _, err := y.desk.Land(t.Context(), "agent1", land.LandOptions{}); !errors.Is(err, land.ErrNotYet) || !strings.Contains(err.Error(), "has failed") {
		t.Errorf("%v", err)
	}
	at.Git("rm", "-q", "broken")
	at.Commit("green", "b.txt", "b")
	y.check("agent1")
	want(land.Proved, "")
	at.Write("new.txt", "not committed")
	want(land.Stale, "dirty 1")
	if k := y.check("agent1"); k.Loose.Files != 1 {
		t.Errorf("%+v", k.Loose)
	}
	want(land.Stale, "dirty 1")
	os.Remove(filepath.Join(at.Dir, "new.txt"))
	want(land.Proved, "")
	at.Git("update-index", "--assume-unchanged", "b.txt")
	at.Write("b.txt", "hidden")
	want(land.Stale, "hidden changes in b.txt")
	at.Git("update-index", "--no-assume-unchanged", "b.txt")
	at.Git("checkout", "-q", "b.txt")
	at.Git("switch", "-q", "-c", "other")
	want(land.Stale, "on other")
	at.Git("switch", "-q", "netsky/agent1")
	at.Commit("after the check", "c.txt", "c")
	want(land.Stale, "ahead 3")
	y.check("agent1")
	want(land.Proved, "")
	y.desk.Command.Text += " # stricter"
	want(land.Stale, "ahead 3")
	y.desk.Command.Text = goodCheck
	y.Commit("owner's", "o.txt", "o")
	want(land.Stale, "behind 1")
	testworld.ErrorIs(t, testworld.Err(y.desk.Land(t.Context(), "agent1", land.LandOptions{})), land.ErrNotYet, "stale evidence was enough")
	// What fails once more no longer counts as passed.
	y.check("agent1")
	want(land.Proved, "")
	flaky := y.desk
	os.WriteFile(y.home.Path("flag"), nil, 0o600)
	flaky.Command.Text = "test ! -e " + y.home.Path("flag")
	testworld.Must(t, flaky.Command.Agree(y.home))
	y.desk = flaky
	os.Remove(y.home.Path("flag"))
	y.check("agent1")
	want(land.Proved, "")
	os.WriteFile(y.home.Path("flag"), nil, 0o600)
	if k, err := y.desk.Check(t.Context(), "agent1", land.CheckOptions{Again: true}); err != nil || k.State != record.Failed {
		t.Errorf("%+v %v", k, err)
	}
	want(land.Failed, "")
}
