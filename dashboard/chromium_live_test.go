//go:build live

package dashboard_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"netsky/internal/testworld"

	"github.com/chromedp/chromedp"
)

// A browser is one profile of Chromium's for all pages of a test.
type browser struct{ ctx context.Context }

// mustBrowser makes a profile in the Chromium that all tests share.
func mustBrowser(tb testing.TB) browser {
	tb.Helper()
	program := testworld.Got(chromium())(tb)
	ctx, cancel := chromedp.NewContext(program, chromedp.WithNewBrowserContext())
	tb.Cleanup(cancel)
	testworld.Must(tb, chromedp.Do(ctx))
	return browser{ctx}
}

// chromium is NETSKY_TEST_CHROMIUM, else the one on PATH, once it runs.
var chromium = sync.OnceValues(func() (context.Context, error) {
	path := os.Getenv("NETSKY_TEST_CHROMIUM")
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path == "" {
			path, _ = exec.LookPath(name)
		}
	}
	if path == "" {
		return nil, errors.New("no Chromium on PATH, and NETSKY_TEST_CHROMIUM names none: scripts/test installs it")
	}
	var failed error
	for range 3 { // on a busy machine Chromium itself crashes now and then as it starts
		profile, err := os.MkdirTemp("", "n")
		if err != nil {
			return nil, err
		}
		options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.UserDataDir(profile),
			chromedp.Flag("disable-dev-shm-usage", true), chromedp.Flag("force-prefers-reduced-motion", true), // the processor would draw all movement
			chromedp.WSURLReadTimeout(testworld.Patience))
		allocated, end := chromedp.NewExecAllocator(context.Background(), options...)
		ctx, cancel := chromedp.NewContext(allocated)
		failed = chromedp.Do(ctx)
		stop := func() {
			if failed == nil {
				chromedp.Cancel(ctx) // waits until its processes have ended
			}
			cancel()
			end()
			os.RemoveAll(profile)
		}
		if failed == nil {
			endChromium = stop
			return ctx, nil
		}
		stop()
	}
	return nil, failed
})

// A looker is one page of the browser, and what went wrong in it.
type looker struct {
	tb  testing.TB
	w   *world
	ctx context.Context

	mu    sync.Mutex
	wrong []string
}

// mustLook makes a world with something of everything, and opens a page of it.
func mustLook(tb testing.TB) (*world, *looker) {
	tb.Helper()
	w := mustWorld(tb, slowly)
	w.showcase(tb)
	return w, mustBrowser(tb).look(tb, w)
}

// look opens a page that is signed in.
func (b browser) look(tb testing.TB, w *world) *looker {
	tb.Helper()
	t := b.open(tb, w)
	t.goTo(w.link(tb))
	t.waits(`location.pathname === "/" && document.querySelector("#link")`)
	return t
}

// open opens an empty page.
func (b browser) open(tb testing.TB, w *world) *looker {
	tb.Helper()
	ctx, cancel := chromedp.NewContext(b.ctx)
	ctx, end := context.WithTimeout(ctx, 5*testworld.Patience)
	t := &looker{tb: tb, w: w, ctx: ctx}
	tb.Cleanup(func() {
		end()
		cancel()
	})
	t.listens()
	for _, domain := range []string{"Runtime.enable", "Log.enable", "Network.enable", "Page.enable"} {
		t.call(domain, nil, nil)
	}
	// Windows of other tests come and go: none of that is this page's focus, got or lost.
	t.call("Emulation.setFocusEmulationEnabled", map[string]any{"enabled": true}, nil)
	t.size(1280, 800)
	return t
}

// call says a method of Chromium's protocol as it is.
func (t *looker) call(method string, params, result any) {
	t.tb.Helper()
	if params == nil {
		params = struct{}{}
	}
	if result == nil {
		result = &struct{}{}
	}
	testworld.Must(t.tb, chromedp.Do(t.ctx, chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		return target.Call(ctx, method, params, result)
	})))
}

// listens keeps what a page may not do: complain to the console, throw, ask for
// what its policy forbids; and how much it loads.
func (t *looker) listens() {
	t.tb.Helper()
	hear := func(target *chromedp.Target, method string, keep func(data []byte)) {
		events, stop := target.Subscribe(method)
		done := make(chan struct{})
		go func() {
			defer close(done)
			for e := range events {
				t.mu.Lock()
				keep(e)
				t.mu.Unlock()
			}
		}()
		t.tb.Cleanup(func() { stop(); <-done })
	}
	testworld.Must(t.tb, chromedp.Do(t.ctx, chromedp.Func(func(_ context.Context, target *chromedp.Target) error {
		hear(target, "Runtime.exceptionThrown", func(data []byte) { t.wrong = append(t.wrong, string(data)) })
		hear(target, "Runtime.consoleAPICalled", func(data []byte) {
			var e struct{ Type string }
			if json.Unmarshal(data, &e) != nil || e.Type == "error" || e.Type == "warning" || e.Type == "assert" {
				t.wrong = append(t.wrong, string(data))
			}
		})
		hear(target, "Log.entryAdded", func(data []byte) {
			var e struct {
				Entry struct{ Level, Text, URL string }
			}
			if json.Unmarshal(data, &e) != nil || e.Entry.Level == "error" || e.Entry.Level == "warning" {
				t.wrong = append(t.wrong, e.Entry.Text+" "+e.Entry.URL)
			}
		})
		return nil
	})))
}

// clean fails the test if anything went wrong but what one of the words names.
func (t *looker) clean(but ...string) {
	t.tb.Helper()
	t.mu.Lock()
	defer t.mu.Unlock()
	// What the browser notes when a page is left, or gives up, while it connects.
	but = append(but, "WebSocket is closed before the connection is established")
next:
	for _, wrong := range t.wrong {
		for _, word := range but {
			if strings.Contains(wrong, word) {
				continue next
			}
		}
		t.tb.Errorf("in the browser: %s", wrong)
	}
	t.wrong = nil
}

func (t *looker) goTo(url string) {
	t.tb.Helper()
	testworld.Must(t.tb, chromedp.Do(t.ctx, chromedp.Navigate(url)))
}

func (t *looker) open(path string) { t.tb.Helper(); t.goTo("http://" + t.w.addr + path) }

// through signs in at another address, where front passes requests on to the server as it
// likes.
func (t *looker) through(front func(rw http.ResponseWriter, r *http.Request, server http.Handler)) (address string) {
	t.tb.Helper()
	to := testworld.Got(url.Parse("http://" + t.w.addr))(t.tb)
	server := httputil.NewSingleHostReverseProxy(to)
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { front(rw, r, server) }))
	t.tb.Cleanup(s.Close)
	link := testworld.Got(t.w.srv.Link(s.URL))(t.tb)
	t.goTo(link.URL)
	t.waits(`location.pathname === "/" && document.querySelector("#link")`)
	return s.URL
}

func (t *looker) size(width, height int) {
	t.tb.Helper()
	t.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}, nil)
}

// theme is light or dark; still is that the reader wants no movement.
func (t *looker) theme(name string, still bool) {
	t.tb.Helper()
	motion := "no-preference"
	if still {
		motion = "reduce"
	}
	t.call("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{
		{"name": "prefers-color-scheme", "value": name}, {"name": "prefers-reduced-motion", "value": motion},
	}}, nil)
}

// eval is the value of an expression, which may be a promise.
func eval[T any](t *looker, js string) (v T) {
	t.tb.Helper()
	testworld.Must(t.tb, evalInto(t, js, &v))
	return v
}

func evalInto(t *looker, js string, v any) error {
	var result struct {
		Result struct {
			Value json.RawMessage `json:"value"`
		} `json:"result"`
		Exception json.RawMessage `json:"exceptionDetails"`
	}
	err := chromedp.Do(t.ctx, chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		return target.Call(ctx, "Runtime.evaluate", map[string]any{"expression": js, "returnByValue": true, "awaitPromise": true}, &result)
	}))
	if err != nil {
		return err
	}
	if result.Exception != nil {
		return errors.New(js + ": " + string(result.Exception))
	}
	if result.Result.Value == nil {
		return nil
	}
	return json.NewDecoder(bytes.NewReader(result.Result.Value)).Decode(v)
}

// waits waits until an expression is true. A page that goes away in between is
// asked again.
func (t *looker) waits(js string) {
	t.tb.Helper()
	testworld.Wait(t.tb, js, func() bool {
		var ok bool
		return evalInto(t, "Boolean("+js+")", &ok) == nil && ok
	})
}

func (t *looker) click(sel string) {
	t.tb.Helper()
	testworld.Must(t.tb, chromedp.Do(t.ctx, chromedp.Click(chromedp.CSS(sel), chromedp.NodeVisible)))
}

func (t *looker) typeIn(sel, text string) {
	t.tb.Helper()
	testworld.Must(t.tb, chromedp.Do(t.ctx, chromedp.SendKeys(chromedp.CSS(sel), text)))
}

func (t *looker) press(keys string) {
	t.tb.Helper()
	testworld.Must(t.tb, chromedp.Do(t.ctx, chromedp.KeyEvent(keys)))
}

// text is what a page shows of an element.
func (t *looker) text(sel string) string {
	t.tb.Helper()
	return eval[string](t, fmt.Sprintf("document.querySelector(%q)?.innerText ?? ''", sel))
}

// live waits until the page follows what happens.
func (t *looker) live() {
	t.tb.Helper()
	t.waits(`document.querySelector("#link").classList.contains("on")`)
}
