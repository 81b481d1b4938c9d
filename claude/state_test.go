package claude_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"netsky/claude"
	"netsky/home"
	"netsky/internal/testworld"
)

const aSession = "0b5c2a34-6d1f-4a6b-9c33-0123456789ab"

func TestState(t *testing.T) {
	t.Parallel()
	g := mustRig(t)
	testworld.Equal(t, testworld.Got(claude.LoadState(g.home, "agent1"))(t), (claude.State{}), "LoadState of none")
	want := claude.State{Session: aSession, Transcript: "/t", Dir: "/d", Start: "s", Used: true}
	testworld.Must(t, claude.SaveState(g.home, "agent1", want))
	testworld.Equal(t, testworld.Got(claude.LoadState(g.home, "agent1"))(t), want, "LoadState")
	if info, err := os.Stat(g.home.Path(claude.StateFile("agent1"))); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("its file: %v, %v", info, err)
	}
	for range 2 {
		testworld.Equal(t, claude.Forget(g.home, "agent1"), nil)
	}
	testworld.ErrorIs(t, testworld.Err(g.home.ReadFile(claude.StateFile("agent1"), 1)), fs.ErrNotExist, "after Forget")
	for _, text := range []string{"", "{", "{}", `{"session": "--help"}`, `{"session": "../../../0b5c2a34-6d1f-4a6b-9c33-012"}`, `{"session": "0b5c2a34-6d1f-4a6b-9c33-0123456789aZ"}`} {
		testworld.Must(t, g.home.WriteFile(claude.StateFile("agent1"), []byte(text), false))
		if s, err := claude.LoadState(g.home, "agent1"); err == nil || s != (claude.State{}) {
			t.Errorf("LoadState of %q = %v, %v", text, s, err)
		}
	}
}

// TestConversation decides which conversation a start has.
func TestConversation(t *testing.T) {
	t.Parallel()
	const other = "1b5c2a34-6d1f-4a6b-9c33-0123456789ab"
	for _, tt := range []struct {
		name   string
		before func(*rig)
		resume string // asked for
		want   string // the conversation that goes on; "" is a fresh one
		lost   string // why aSession does not
		err    string
	}{
		{name: "first"},
		{name: "again", want: aSession, before: func(g *rig) { g.state(g.work); g.converse(aSession, aTurn) }},
		{name: "gone", lost: "no file of it in", before: func(g *rig) { g.state(g.work) }},
		{name: "gone, for its period", lost: "nothing was written to for 7 days", before: func(g *rig) {
			g.state(g.work)
			g.mustWrite(filepath.Join(g.config, "settings.json"), `{"cleanupPeriodDays": 7}`)
		}},
		{name: "empty", lost: "no file of it in", before: func(g *rig) { g.state(g.work); g.converse(aSession, "") }},
		{name: "without a message", lost: "no file of it in", before: func(g *rig) { g.state(g.work); g.converse(aSession, `{"type":"mode"}`+"\n") }},
		{name: "a directory", lost: "no file of it in", before: func(g *rig) {
			g.state(g.work)
			os.MkdirAll(filepath.Join(g.config, "projects/x", aSession+".jsonl"), 0o700)
		}},
		{name: "elsewhere", before: func(g *rig) { g.state("/elsewhere"); g.converse(aSession, aTurn) }},
		{name: "of another login", lost: ", and Claude Code looks in ", before: func(g *rig) {
			g.state(g.work)
			g.mustWrite(filepath.Join(g.work, "projects/x", aSession+".jsonl"), aTurn)
		}},
		{name: "damaged", before: func(g *rig) {
			g.converse(aSession, aTurn)
			g.home.WriteFile(claude.StateFile("agent1"), []byte(`{"session"`), false)
		}},
		{name: "asked for", resume: other, want: other, before: func(g *rig) { g.state(g.work); g.converse(aSession, aTurn); g.converse(other, aTurn) }},
		{name: "asked for, elsewhere", resume: aSession, want: aSession, before: func(g *rig) { g.state("/elsewhere"); g.converse(aSession, aTurn) }},
		{name: "asked for, not there", resume: other, err: "no conversation " + other},
		{name: "asked for, none", resume: "--help", err: `"--help" is not a Claude Code session id`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			g := mustRig(t)
			g.mustFake("2.1.329", loggedIn)
			if tt.before != nil {
				tt.before(g)
			}
			l := g.launch("agent1")
			l.Resume = tt.resume
			err := g.runtime.Prepare(g.ctx, &l)
			if tt.err != "" {
				mustMention(t, "Prepare", err, tt.err)
				return
			}
			testworld.Must(t, err)
			fresh := word(l.Argv, "--session-id")
			if word(l.Argv, "--resume") != tt.want || l.Resume != tt.want || (fresh == "") != (tt.want != "") || fresh == aSession {
				t.Errorf("resume %q, fresh %q, Resume %q; want %q", word(l.Argv, "--resume"), fresh, l.Resume, tt.want)
			}
			s, err := claude.LoadState(g.home, "agent1")
			if err != nil || s.Session != fresh+tt.want || s.Dir != g.work || s.Start != l.Start || s.Used != (tt.want != "") {
				t.Errorf("state = %+v, %v", s, err)
			}
			if got := l.Lost; (got.Conversation == aSession) != (tt.lost != "") || !strings.Contains(got.Why, tt.lost) || s.Lost != got {
				t.Errorf("lost %+v, on file %+v; want %q", got, s.Lost, tt.lost)
			}
			if tt.resume != "" {
				return
			}
			again := g.launch("agent1")
			if err := g.runtime.Prepare(g.ctx, &again); err != nil || again.Lost != l.Lost {
				t.Errorf("the next start, of a conversation that is not used yet: lost %+v, %v; want %+v", again.Lost, err, l.Lost)
			}
		})
	}
}

// state puts the conversation on record as begun in a directory.
func (g *rig) state(dir string) {
	g.Helper()
	testworld.Must(g, claude.SaveState(g.home, "agent1", claude.State{Session: aSession, Transcript: filepath.Join(g.work, "projects/x", aSession+".jsonl"), Dir: dir, Start: "old", Used: true}))
}

// TestDamagedKept keeps what it does not understand for a person to see.
func TestDamagedKept(t *testing.T) {
	t.Parallel()
	g := mustRig(t)
	g.mustFake("2.1.329", loggedIn)
	testworld.Must(t, g.home.WriteFile(claude.StateFile("agent1"), []byte("my notes"), false))
	g.mustPrepare("agent1")
	if data, err := g.home.ReadFile(claude.StateFile("agent1")+".bad", 1<<10); string(data) != "my notes" {
		t.Errorf("kept %q, %v", data, err)
	}
}

// TestNoLinks writes through no link below the home.
func TestNoLinks(t *testing.T) {
	t.Parallel()
	g := mustRig(t)
	g.mustFake("2.1.329", loggedIn)
	outside := filepath.Join(g.work, "outside")
	testworld.Must(t, os.Mkdir(outside, 0o700))
	testworld.Must(t, os.Symlink(outside, g.home.Path(home.Channels, "agent1")))
	l := g.launch("agent1")
	if err := g.runtime.Prepare(g.ctx, &l); !errors.Is(err, home.ErrLink) || !strings.Contains(err.Error(), "agent1") {
		t.Errorf("Prepare = %v", err)
	}
	if list, _ := os.ReadDir(outside); len(list) > 0 {
		t.Errorf("wrote %v outside", list)
	}
}
