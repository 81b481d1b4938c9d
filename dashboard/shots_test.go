package dashboard_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"netsky/dashboard"
)

// allPages are the pages of a showcase, by a name for a file.
var allPages = []struct{ name, path string }{
	{"overview", "/"}, {"agent", "/agents/agent0"}, {"panes", "/panes"}, {"tasks", "/tasks"}, {"task", "/tasks/task-offline"},
	{"messages", "/messages"}, {"message", "/messages/web-5d1f0c77a2b94e6180c3d2aa"}, {"sessions", "/sessions"},
	{"session", "/sessions/" + start(3)}, {"logs", "/logs"},
}

// TestPictures takes a picture of every page into the directory that
// NETSKY_PICTURES names, for people to look at.
func TestPictures(t *testing.T) {
	dir := os.Getenv("NETSKY_PICTURES")
	if dir == "" {
		t.Skip("NETSKY_PICTURES names no directory")
	}
	w := mustWorld(t, func(o *dashboard.Options) { o.Version, o.Poll = "0.1.0", 100*time.Millisecond })
	w.showcase(t)
	tb := mustBrowser(t).look(t, w)
	for _, theme := range []string{"light", "dark"} {
		tb.theme(theme, true)
		for _, width := range []int{1280, 390} {
			tb.size(width, 800)
			for _, p := range allPages {
				tb.open(p.path)
				tb.live()
				tb.picture(filepath.Join(dir, fmt.Sprintf("%s-%s-%d.png", p.name, theme, width)), true)
			}
		}
	}
	tb.clean()
}
