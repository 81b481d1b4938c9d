//go:build pictures

package dashboard_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"netsky/agent"
	"netsky/dashboard"
)

// TestPictures takes a picture of every page into the directory that
// NETSKY_PICTURES names, for people to look at, and the two of the documents:
// go test -tags pictures -run Pictures ./dashboard
func TestPictures(t *testing.T) {
	dir := os.Getenv("NETSKY_PICTURES")
	if dir == "" {
		t.Fatal("NETSKY_PICTURES names no directory")
	}
	w := mustWorld(t, func(o *dashboard.Options) { o.Version, o.Poll = "0.1.0", 100*time.Millisecond })
	w.showcase(t)
	l := mustBrowser(t).look(t, w)
	for _, theme := range []string{"light", "dark"} {
		l.theme(theme, true)
		for _, width := range []int{1280, 390} {
			l.size(width, 800)
			for _, p := range allPages {
				l.open(p.path)
				l.live()
				l.picture(filepath.Join(dir, fmt.Sprintf("%s-%s-%d.png", p.name, theme, width)), true)
			}
		}
	}
	// A quieter moment, for the documents.
	list, err := w.agents.Agents(t.Context())
	mustDo(t, err)
	list[3].State, list[3].Detail, list[3].Evidence = agent.Idle, "", "its own word: nothing to do"
	w.agents.set(nil, list...)
	l.theme("light", true)
	l.size(1280, 960)
	l.open("/")
	l.live()
	const noGutter = `document.documentElement.style.scrollbarGutter = "auto", null`
	eval[any](l, noGutter)
	l.picture(filepath.Join(dir, "dashboard-overview.png"), false)
	l.theme("dark", true)
	l.size(1280, 940)
	l.open("/agents/agent1")
	l.live()
	eval[any](l, noGutter)
	l.picture(filepath.Join(dir, "dashboard-agent.png"), false)
	l.clean()
}

func (t *looker) picture(file string, full bool) {
	t.tb.Helper()
	a := chromedp.CaptureScreenshot()
	if full {
		a = chromedp.FullScreenshot(100)
	}
	data, err := chromedp.Run(t.ctx, a)
	mustDo(t.tb, err)
	mustDo(t.tb, os.WriteFile(file, data, 0o644))
}
