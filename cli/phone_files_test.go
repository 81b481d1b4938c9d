//go:build live

package cli_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"netsky/agent"
	"netsky/home"
	"netsky/internal/loopmodel/anthropic"
	"netsky/internal/messagesim"
	"netsky/internal/testworld"
)

// A picture reaches the agent as a file in its mailbox, which the model is told of; of what
// cannot be passed on, the owner and the agent are told.
func TestPhonePicture(t *testing.T) {
	t.Parallel()
	w := mustPhone(t, phoneFreely)
	model := w.addClaude(t)
	w.mustUp(t, "up", "0", "--type", "claude", "--no-attach")
	dir := filepath.Join(filepath.Dir(w.sim.Path), "Attachments", "ab", "01")
	testworld.Must(t, os.MkdirAll(dir, 0o700))
	picture := []byte("\x89PNG\r\n\x1a\n and so on")
	put := func(name string, size int64) messagesim.File {
		path := filepath.Join(dir, name)
		err := os.WriteFile(path, picture, 0o600)
		if err == nil && size > 0 {
			err = os.Truncate(path, size)
		}
		testworld.Must(t, err)
		return messagesim.File{GUID: "at-" + name, Name: name, Path: path, MIME: "image/png", Bytes: max(size, int64(len(picture))), State: 5}
	}
	link := put("link.png", 0)
	link.Path = filepath.Join(dir, "outside.png")
	testworld.Must(t, os.Symlink(filepath.Join(w.dir, "h", "netsky.toml"), link.Path))
	missing := put("missing.png", 0)
	missing.Path = filepath.Join(dir, "none.png")
	loading := put("loading.png", 0)
	loading.State = 1
	w.sim.Insert(messagesim.Message{
		From: ownerHandle, Text: "look at this \ufffc", At: time.Now(),
		Files: []messagesim.File{put("a.png", 0), put("large.png", 17<<20), link, missing, loading},
	})
	w.gets("Not passed on: ")
	w.gets("[agent0] ")

	q, ok := model.Wait(t.Context().Done(), func(q anthropic.Request) bool { return strings.Contains(q.Last(), "look at this") })
	if !ok {
		t.Fatal("the model was not asked")
	}
	found := regexp.MustCompile(`attachments="(attach/[^" ]+\.png)"`).FindStringSubmatch(q.Last())
	if found == nil {
		t.Fatalf("the model is not told of one picture:\n%s", q.Last())
	}
	box := filepath.Join(w.world.home, home.Mailbox(agent.Root))
	if got, err := os.ReadFile(filepath.Join(box, found[1])); err != nil || !bytes.Equal(got, picture) {
		t.Errorf("%s holds %q, %v", found[1], got, err)
	}
	mustContain(t, "the system prompt", q.System, fmt.Sprintf("They are below %s,", box))
	told := ""
	for _, text := range w.texts() {
		if strings.Contains(text, "Not passed on: ") {
			told = text
		}
	}
	for _, name := range []string{"large.png", "link.png", "missing.png", "loading.png"} {
		mustContain(t, "what the owner is told", told, name)
		mustContain(t, "what the model is told", q.Last(), name)
	}
	mustContain(t, "what the owner is told", told, "larger than 16 MiB", "missing.png: its file is not there", "loading.png: still being transferred")
	testworld.Len(t, testworld.Got(os.ReadDir(filepath.Join(box, "attach")))(t), 1, "attach/ holds")
}
