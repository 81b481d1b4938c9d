//go:build live

package cli_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"netsky/internal/testworld"
)

// A page is a real Chromium that shows one page.
type page struct {
	testing.TB
	ctx context.Context
}

func mustPage(tb testing.TB) page {
	tb.Helper()
	program, err := exec.LookPath("chromium")
	testworld.Must(tb, err, "chromium is not on the PATH: scripts/test installs it")
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.NoSandbox,
		chromedp.UserDataDir(tb.TempDir()), chromedp.Flag("disable-dev-shm-usage", true), chromedp.Flag("force-prefers-reduced-motion", true), // the processor would draw all movement
		chromedp.WSURLReadTimeout(time.Minute))
	ctx, end := chromedp.NewExecAllocator(context.Background(), options...)
	tb.Cleanup(end)
	ctx, cancel := chromedp.NewContext(ctx)
	tb.Cleanup(func() {
		chromedp.Cancel(ctx) // waits until its processes have ended
		cancel()
	})
	p := page{tb, ctx}
	p.must(chromedp.Do(ctx))
	return p
}

func (p page) must(err error) {
	p.Helper()
	testworld.Must(p, err)
}

func (p page) open(url string) {
	p.Helper()
	p.must(chromedp.Do(p.ctx, chromedp.Navigate(url)))
}

// eval is a JavaScript expression's value as text, "" from a page that is about
// to make room for another.
func (p page) eval(js string) (text string) {
	p.Helper()
	var r struct {
		Result struct {
			Value json.RawMessage `json:"value"`
		} `json:"result"`
	}
	err := chromedp.Do(p.ctx, chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		return t.Call(ctx, "Runtime.evaluate", map[string]any{"expression": "String(" + js + ")", "returnByValue": true}, &r)
	}))
	if err != nil && strings.Contains(err.Error(), "Inspected target navigated") {
		return ""
	}
	p.must(err)
	if len(r.Result.Value) > 0 {
		p.must(json.Unmarshal(r.Result.Value, &text))
	}
	return text
}

// shows waits until the page shows all of these, without being loaded again.
func (p page) shows(want ...string) {
	p.Helper()
	text := ""
	testworld.WaitOr(p, func() bool {
		text = p.eval("document.body.innerText")
		return !slices.ContainsFunc(want, func(w string) bool { return !strings.Contains(text, w) })
	}, func() string { return fmt.Sprintf("%q on the page %s:\n%s", want, p.eval("location.pathname"), text) })
}

// What the owner sees and says in a browser, with the real daemon and agents: the
// page follows what happens by itself, also over the daemon's death.
func TestDashboard(t *testing.T) {
	t.Parallel()
	w := mustWorld(t)
	w.must(t, "netsky", "up", "1", "--type", "demo", "--no-attach")
	link := w.link(t)
	base, _, _ := strings.Cut(link, "/login")
	p := mustPage(t)
	p.open(base + "/")
	p.shows("netsky dashboard") // without the token it says how to come in
	testworld.Lacks(t, p.eval("document.body.innerText"), "agent1", "without the token the page shows")
	p.open(link)
	p.shows("agent0", "agent1", "agentinfinity", "idle", "live")
	testworld.Lacks(t, p.eval("location.href"), "code", "the code stays in the address")

	// The pane changes as the agent works, and the message said here is answered.
	p.open(base + "/agents/agent1")
	p.shows("agent1", "Send")
	p.eval(`(() => { const t = document.querySelector("#text"); t.value = "what is your name?"; t.form.requestSubmit(); })()`)
	p.shows("what is your name?", "My name is agent1", "answered")

	// The daemon dies; another serves the same page on, which comes back by itself.
	who := testworld.Got(w.holder())(t)
	testworld.Must(t, syscall.Kill(who.PID, syscall.SIGKILL))
	w.must(t, "netsky", "watchdog", "tick")
	w.must(t, "netsky", "ask", "agent1", "are you still there?")
	p.shows("are you still there?", "live")
	cmd := w.command(t.Context(), "netsky", "dashboard")
	cmd.Env = append(cmd.Env, "AGENT_N=1")
	if out, err := cmd.CombinedOutput(); err == nil || strings.Contains(string(out), "code") {
		t.Errorf("an agent was given the link: %s", out)
	}
}

// Who is signed in is listed and signed out, and a token that is gone or was open
// to others is replaced, with the word for it, before a link is printed.
func TestDashboardBrowsers(t *testing.T) {
	t.Parallel()
	w := mustWorld(t)
	w.must(t, "netsky", "up", "0", "--type", "demo", "--no-attach")
	link := func(args ...string) string {
		t.Helper()
		out := testworld.Got(w.command(t.Context(), "netsky", append([]string{"dashboard"}, args...)...).Output())(t)
		return strings.TrimSpace(string(out))
	}
	mustContain(t, "browsers", w.must(t, "netsky", "dashboard", "--browsers"), "no browser is signed in")
	p := mustPage(t)
	p.open(link())
	p.shows("agent0", "live")
	list := w.must(t, "netsky", "dashboard", "--browsers")
	mustContain(t, "browsers", list, " seen ", " ago, signed in ", "Chrome, Linux")
	id, _, _ := strings.Cut(list, " ")
	if out, err := w.command(t.Context(), "netsky", "dashboard", "--sign-out", "0000").CombinedOutput(); err == nil {
		t.Errorf("signing nobody out: %s", out)
	}
	mustContain(t, "sign-out", w.must(t, "netsky", "dashboard", "--sign-out", id), "signed out: "+id)
	p.shows("You are signed out")

	p.open(link())
	p.shows("agent0", "live")
	token := filepath.Join(w.home, "run", "token")
	before, err := os.ReadFile(token)
	testworld.Must(t, err)
	testworld.Must(t, os.Remove(token))
	out := w.must(t, "netsky", "dashboard") // with what goes to stderr
	mustContain(t, "dashboard", out, "run/token was missing or readable by others", "/login?code=")
	after, err := os.ReadFile(token)
	if err != nil || string(after) == string(before) {
		t.Errorf("the token was %s, is %s, %v", before, after, err)
	}
	p.open(out[strings.Index(out, "http"):])
	p.shows("agent0", "live")
	mustContain(t, "rotate", w.must(t, "netsky", "dashboard", "--rotate"), "all browsers are signed out", "/login?code=")
	p.shows("not the netsky that this tab was signed in to")
	mustContain(t, "browsers", w.must(t, "netsky", "dashboard", "--browsers"), "no browser is signed in")
	p.open(link())
	p.shows("agent0", "live")
	mustContain(t, "sign-out", w.must(t, "netsky", "dashboard", "--sign-out", "all"), "signed out: 1")
}
