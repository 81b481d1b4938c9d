//go:build live

package dashboard_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"netsky/agent"
	"netsky/home"
	"netsky/internal/testworld"
	"netsky/store"
	"netsky/view"
)

// Every link of every page leads somewhere, and looking changes nothing (row 35).
func TestPagesCrawl(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, nil)
	w.showcase(t)
	before := w.fingerprint(t)
	seen := map[string]bool{"/": true}
	for todo := []string{"/"}; len(todo) > 0; todo = todo[1:] {
		path, _, _ := strings.Cut(todo[0], "#")
		a := w.page(t, path)
		switch {
		case a.status == 303 && strings.HasPrefix(path, "/find?"):
			if to := a.header.Get("Location"); !seen[to] {
				seen[to] = true
				todo = append(todo, to)
			}
			continue
		case a.status != 200:
			t.Errorf("%s: %d", path, a.status)
		}
		if !strings.HasPrefix(a.header.Get("Content-Type"), "text/html") {
			continue
		}
		checkPage(t, path, a.body)
		for _, m := range links.FindAllStringSubmatch(a.body, -1) {
			to := html.UnescapeString(m[1])
			if page, at, _ := strings.Cut(to, "?at="); at != "" { // each line has one
				if seen[page+"?at="] {
					continue
				}
				seen[page+"?at="] = true
			}
			if !seen[to] {
				seen[to] = true
				todo = append(todo, to)
			}
		}
	}
	if len(seen) < 60 {
		t.Errorf("%d pages found", len(seen))
	}
	testworld.Equal(t, w.fingerprint(t), before, "looking has changed a file")
	t.Logf("%d addresses", len(seen))
}

// fingerprint is what all files of the home hold, but for the database's own.
func (w *world) fingerprint(tb testing.TB) string {
	tb.Helper()
	sum := sha256.New()
	testworld.Must(tb, filepath.WalkDir(w.home.Root(), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasSuffix(path, "-shm") {
			return err
		}
		data, err := os.ReadFile(path)
		fmt.Fprintf(sum, "%s %x\n", path, sha256.Sum256(data))
		return err
	}))
	return hex.EncodeToString(sum.Sum(nil))
}

// Row 34: whatever stands in any field is text on every page.
func TestRow34Pages(t *testing.T) {
	t.Parallel()
	for name, evil := range testworld.Files(t, "web") {
		w := mustWorld(t, nil)
		text := strings.ReplaceAll(evil, "\x00", "")
		task := fmt.Sprint("t-", name, text)
		w.apply(t,
			store.UpsertActor{ID: "agent1", Runtime: text, Dir: text, Objective: text},
			store.StartSession{Start: "s-1" + text, Actor: "agent1", Runtime: text, Tmux: text, Thread: text},
			store.EndSession{Start: "s-1" + text, Reason: text, LastLines: text, Signal: text},
			store.UpsertMessage{ID: "m-1" + text, From: "agent1", To: "agent0", Text: text, Kind: text, Thread: text, Via: text, Start: text, InReplyTo: "m-2",
				Attachments: []string{text}, Metadata: map[string]json.RawMessage{text: raw(t, map[string]string{text: text})}},
			store.UpsertDelivery{Message: "m-1" + text, Target: "agent0", State: store.Poisoned, Reason: text},
			store.UpsertMessage{ID: "m-2", From: "agent0", To: "owner", Text: text + strings.Repeat(" long", 400)},
			store.UpsertTask{ID: task, Title: text, Body: text, AskedBy: "owner", Assignee: "agent1", Proof: text, Message: "m-1" + text, State: store.TaskInProgress, Started: 1},
			store.AddNote{ID: "n-1", About: task, Author: text, Text: text},
			store.UpsertUpdate{ID: "u" + text, State: text, Repository: text, Revision: text, Commands: []string{text}, Backup: text, RollbackHint: text, Error: text},
			store.AddLog{Text: text, Part: text, About: text, Level: text, Fields: map[string]any{text: text}},
		)
		testworld.Got(home.Approvals(w.home).Ask(agent.Approval{Agent: "agent1", Tool: text, Text: text, Reason: text, Dir: text}))(t)
		w.agents.set(errors.New(text), view.Agent{ID: "agent1", State: agent.State(text), Evidence: text, Detail: text, Runtime: text, Dir: text, Model: text, Poison: 1})
		w.page(t, "/")
		w.agents.set(nil, view.Agent{ID: "agent1", State: agent.State(text), Evidence: text, Detail: text, Runtime: text, Dir: text, Model: text, Poison: 1})
		w.panes.set("agent1", text+"\n\x1b]8;;"+text+"\x1b\\link\x1b]8;;\x1b\\ \x1b[38;2;1;2;3m"+text)
		for _, path := range []string{
			"/", "/agents/agent1", "/panes", "/tasks", "/tasks/" + url.PathEscape(task), "/messages", "/messages/" + url.PathEscape("m-1"+text), "/messages/m-2",
			"/sessions", "/sessions/" + url.PathEscape("s-1"+text), "/logs", "/updates", "/messages?text=" + url.QueryEscape(text), "/messages?thread=" + url.QueryEscape(text),
			"/logs?part=" + url.QueryEscape(text) + "&about=" + url.QueryEscape(text), "/tasks?text=" + url.QueryEscape(text),
		} {
			w.mustPage(t, path)
		}
		find := "/find?q=" + url.QueryEscape("x-"+text)
		checkPage(t, find, w.page(t, find).body)
		for _, path := range []string{"/tasks/" + url.PathEscape("x-"+text), "/messages?from=" + url.QueryEscape(text)} {
			if a := w.page(t, path); a.status < 400 {
				t.Errorf("%s: %d", path, a.status)
			} else {
				checkPage(t, path, a.body)
			}
		}
		w.stop()
	}
}
