//go:build live

package dashboard_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"netsky/agent"
	"netsky/dashboard"
	"netsky/home"
	"netsky/internal/testworld"
	"netsky/store"
	"netsky/work/land"
	"netsky/work/merge"
)

// allPages are the pages of a showcase, by a name for a file.
var allPages = []struct{ name, path string }{
	{"overview", "/"}, {"agent", "/agents/agent0"}, {"panes", "/panes"}, {"tasks", "/tasks"}, {"task", "/tasks/task-offline"},
	{"messages", "/messages"}, {"message", "/messages/web-5d1f0c77a2b94e6180c3d2aa"}, {"sessions", "/sessions"},
	{"session", "/sessions/" + start(3)}, {"logs", "/logs"}, {"find", "/find?q=south"}, {"note", "/notes/note-1"},
	{"work", "/work"}, {"changes", "/work/agent1"}, {"comment", "/work/agent1?at=tides/south.go:41"}, {"cost", "/cost?by=model"}, {"updates", "/updates"},
}

// mustAxe is the source of axe-core, the accessibility rules that most others
// are measured by: NETSKY_TEST_AXE names its axe.min.js.
func mustAxe(tb testing.TB) string {
	tb.Helper()
	path := os.Getenv("NETSKY_TEST_AXE")
	if path == "" {
		tb.Fatal("NETSKY_TEST_AXE is not set: scripts/test installs axe-core")
	}
	data := testworld.Got(os.ReadFile(path))(tb)
	return string(data)
}

const axeRun = `axe.run({runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"], resultTypes: ["violations"]}).then(r =>
	r.violations.flatMap(v => v.nodes.map(n => v.id + ": " + n.target.join(" ") + ": " + n.any.concat(n.all, n.none).map(c => c.message).join("; "))))`

// fonts are the looks of letters that a page must bear, whatever is installed: as
// this machine has them, all as wide as an m, and spaced as WCAG 1.4.12 has it.
var fonts = []string{"", "* { font-family: monospace !important; }", "* { letter-spacing: .12em !important; word-spacing: .16em !important; }"}

// fits makes the window as wide, and fails the test if the page is wider, with any of fonts.
func (t *looker) fits(width int) {
	t.tb.Helper()
	t.size(width, 800)
	t.waits(fmt.Sprintf(`matchMedia("(width: %dpx)").matches`, width))
	for _, css := range fonts {
		var wide struct {
			Width int
			Which []string
		}
		testworld.Must(t.tb, json.Unmarshal([]byte(eval[string](t, fmt.Sprintf(`((css, max) => {
			const sheet = new CSSStyleSheet();
			sheet.replaceSync(css);
			document.adoptedStyleSheets = [sheet];
			const Width = document.documentElement.scrollWidth;
			const Which = [...document.querySelectorAll("body *")].filter(e => e.getBoundingClientRect().right > max && !e.closest(".glass, pre, nav"));
			document.adoptedStyleSheets = [];
			return JSON.stringify({ Width, Which: Which.slice(-4).map(e => e.outerHTML.slice(0, 140)) });
		})(%q, %d)`, css, width))), &wide))
		if wide.Width > width {
			t.tb.Errorf("%.40s is %d wide at %d, with %q: %s", eval[string](t, "location.pathname"), wide.Width, width, css, strings.Join(wide.Which, "\n"))
		}
	}
}

// Every page, in both themes and on a phone: no rule of accessibility is broken,
// nothing is wider than the window, also once that is another, the console stays empty.
func TestBrowserPages(t *testing.T) {
	t.Parallel()
	axe := mustAxe(t)
	_, l := mustLook(t)
	for _, at := range []struct {
		theme       string
		width, then int
	}{{"light", 1280, 1920}, {"dark", 390, 320}} {
		l.theme(at.theme, true)
		for _, p := range allPages {
			l.size(at.width, 800)
			l.open(p.path)
			l.live()
			l.fits(at.width)
			eval[any](l, axe+"; null")
			for _, v := range eval[[]string](l, axeRun) {
				t.Errorf("%s, %s, %d: %s", p.path, at.theme, at.width, v)
			}
			l.fits(at.then)
		}
	}
	l.clean()
}

// Names, words and figures as long as can be make no page wider than the window.
func TestBrowserLongWords(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, slowly)
	w.showcase(t)
	word, now := strings.Repeat("Donaudampfschifffahrtsgesellschaft", 12), store.At(time.Now())
	id := strings.Repeat("x", 128)
	list := testworld.Got(w.agents.Agents(t.Context()))(t)
	for i := range list {
		list[i].Detail, list[i].Evidence, list[i].Dir, list[i].Model, list[i].Runtime = word, word, word, word, word[:32]
	}
	list[0].ID, list[0].Inbox, list[0].Claimed, list[0].Poison = "agent9999", 99_999, 99_999, 99_999
	w.agents.set(nil, list...)
	w.apply(t,
		store.UpsertTask{ID: id, Title: word, Body: strings.Repeat(word+" ", 30), Proof: word, State: store.TaskInProgress, Priority: 1 << 40, AskedBy: "agentinfinity", Assignee: "agent1", Created: 1, Updated: 1, Started: 1},
		store.UpsertMessage{ID: id, From: "agentinfinity", To: "agentinfinity", Kind: word[:32], Text: strings.Repeat(word+"\n", 200), Thread: id, Via: word, Time: now, Attachments: []string{word}},
		store.UpsertDelivery{Message: id, Target: "agentinfinity", State: store.Failed, Reason: word, Time: now},
		store.EndSession{Start: start(1), State: agent.Dead, Reason: word, LastLines: word, Time: now},
		store.AddNote{ID: "n", About: id, Author: "agentinfinity", Text: strings.Repeat(word+"\n", 200), Created: now},
		store.UpsertUpdate{ID: word + ".01", State: word, Repository: word, Revision: word, Commands: []string{word}, Backup: word, RollbackHint: word, Error: word},
		store.AddLog{Key: "long", Part: word, Actor: "agentinfinity", About: id, Text: word, Level: store.LevelError, Time: now, Fields: map[string]any{word: word}})
	testworld.Got(home.Approvals(w.home).Ask(agent.Approval{Agent: "agent1", Start: start(1), Tool: word, Text: strings.Repeat(word, 20), Reason: word, Dir: word, AskedMS: int64(now)}))(t)
	l := mustBrowser(t).look(t, w)
	for _, widths := range [][]int{{1280}, {390, 360, 320}} {
		for _, path := range []string{"/", "/agents/agent1", "/panes", "/tasks", "/tasks/" + id, "/messages", "/messages/" + id, "/messages?thread=" + id, "/sessions", "/sessions/" + start(1), "/logs", "/updates", "/find?q=" + word[:34], "/notes/n"} {
			l.size(widths[0], 800)
			l.open(path)
			for _, width := range widths {
				l.fits(width)
			}
		}
	}
	l.clean("404")
}

// Commands, however long, are lines of text at any width: none is squeezed to a column of letters, and none
// squeezes what is beside it.
func TestBrowserCommands(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, slowly)
	w.showcase(t)
	w.conflicts(t, merge.Conflict{Agents: []agent.ID{"agent1", "agent2"}, Files: []string{"tides/south.go"}},
		merge.Conflict{Agents: []agent.ID{"agent3"}, Target: "main", Files: []string{"tides/ports.go"}})
	for i := range w.work.states {
		w.work.states[i].Next = land.Resolve(string(w.work.states[i].Agent), "main")
	}
	l := mustBrowser(t).look(t, w)
	for _, path := range []string{"/", "/agents/agent1", "/agents/agent3", "/work", "/work/agent1"} {
		l.open(path)
		l.live()
		for _, width := range []int{390, 600, 800, 1280} {
			l.fits(width)
			for _, wrong := range eval[[]string](l, `[...document.querySelectorAll(".commands code, .tree .text, .ask .line .words")].flatMap(e => {
				const range = document.createRange();
				range.selectNodeContents(e);
				const lines = new Set([...range.getClientRects()].map(r => Math.round(r.bottom / 8))).size, box = e.getBoundingClientRect();
				return e.innerText.length / lines < Math.min(e.innerText.length, 14) ? [lines + " lines, " + Math.round(box.width) + " wide: " + e.innerText] : [];
			})`) {
				t.Errorf("%s at %d: %s", path, width, wrong)
			}
			for _, wrong := range eval[[]string](l, `[...document.querySelectorAll(".row.tree")].filter(e => e.offsetHeight > 180).map(e => e.offsetHeight + " high: " + e.innerText)`) {
				t.Errorf("%s at %d: %s", path, width, wrong)
			}
		}
	}
	l.clean()
}

// Nothing on a page moves when its script begins to run: all that it shows has its place before.
func TestBrowserLoadsStill(t *testing.T) {
	t.Parallel()
	_, l := mustLook(t)
	for _, size := range [][2]int{{1280, 800}, {390, 844}} {
		l.size(size[0], size[1])
		for _, path := range []string{"/", "/messages", "/messages/msg-owner-01", "/agents/agent0", "/panes", "/sessions", "/logs"} {
			var places [2]string
			for i, blocked := range [][]string{{"*.js*"}, {}} {
				l.call("Network.setBlockedURLs", map[string]any{"urls": blocked}, nil)
				l.open(path)
				if i == 1 {
					l.live()
				}
				places[i] = eval[string](l, `[...document.querySelectorAll("body *")].filter((e) => e.offsetHeight && /^(H[1-3]|SECTION|ARTICLE|TABLE|FORM|FOOTER|PRE|UL|OL|DL)$/.test(e.tagName))
					.map((e) => e.tagName + "." + e.className + " " + Math.round(e.getBoundingClientRect().top + scrollY)).join("\n")`)
			}
			testworld.Equal(t, places[0], places[1], "%s, %d: before the script runs and after", path, size[0])
		}
	}
	l.clean("ERR_BLOCKED_BY_CLIENT")
}

// slowly has a poll as the daemon has it: a page should be at rest while it is
// examined.
func slowly(o *dashboard.Options) { o.Poll = 100 * time.Millisecond }

// The checks above can fail: a page that breaks what they ask for is found out.
func TestBrowserChecksBite(t *testing.T) {
	t.Parallel()
	axe := mustAxe(t)
	_, l := mustLook(t)
	l.live()
	l.clean()
	eval[any](l, axe+"; null")
	eval[any](l, `document.querySelector("h1").style.color = "#eee", document.querySelector("#text").labels[0].remove(), null`)
	found := strings.Join(eval[[]string](l, axeRun), "\n")
	testworld.Contains(t, found, "color-contrast", "axe found only")
	eval[any](l, `document.body.insertAdjacentHTML("beforeend", "<p style='color:red'>x<img src=http://127.0.0.1:1/x onerror=alert(1)>"), null`)
	testworld.Wait(t, "the policy's reports", func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		all := strings.Join(l.wrong, "\n")
		return strings.Contains(all, "style-src") && strings.Contains(all, "img-src") && strings.Contains(all, "script-src")
	})
}

// A page is light, paints soon, and nothing on it moves by itself when news come.
func TestBrowserWeight(t *testing.T) {
	t.Parallel()
	w, l := mustLook(t)
	for _, p := range allPages {
		l.call("Network.clearBrowserCache", nil, nil)
		l.open(p.path)
		l.live()
		l.waits(`performance.getEntriesByName("first-contentful-paint").length`)
		// What the page consists of: an update that comes at that moment is none of it.
		n := eval[float64](l, `performance.getEntries().filter((e) => e.entryType === "navigation" || e.entryType === "resource" && e.initiatorType !== "fetch")
			.reduce((sum, e) => sum + e.transferSize, 0)`) / 1000
		paint := eval[float64](l, `performance.getEntriesByName("first-contentful-paint")[0].startTime`)
		t.Logf("%s: %.0f kB, first paint after %.0f ms", p.path, n, paint)
		if n > 150 {
			t.Errorf("%s: %.0f kB, want at most 150", p.path, n)
		}
	}
	l.open("/")
	l.live()
	eval[any](l, `window.moved = [], new PerformanceObserver((list) => moved.push(...list.getEntries().map((e) => [e.value, e.startTime, ...e.sources.map((s) => s.node?.className ?? s.node?.data)])))
		.observe({ type: "layout-shift", buffered: true }), null`)
	list, _ := w.agents.Agents(t.Context())
	for i, s := range []agent.State{agent.Idle, agent.Busy, agent.Starting, agent.Busy, agent.Idle} {
		list[0].State, list[0].Detail, list[0].Since, list[0].Inbox = s, strings.Repeat("what it does ", i), store.At(time.Now()), i
		w.agents.set(nil, list...)
		w.apply(t, store.AddLog{Text: "something happened", Actor: "agent0"})
		l.waits(`document.querySelector("[data-key=card-agent0] .is strong").textContent === "` + string(s) + `"`)
	}
	// A line of the log moves those under it, and no more.
	if jumps := eval[float64](l, `moved.reduce((sum, e) => sum + e[0], 0)`); jumps > 0.1 {
		t.Errorf("the page jumped by %.3f: %s", jumps, eval[string](l, `JSON.stringify(moved)`))
	} else {
		t.Logf("the page jumped by %.3f", jumps)
	}
	l.clean()
}

// All that a mouse can do, keys can: the way to the page, to the message, to the
// search, and one sees where one is.
func TestBrowserKeys(t *testing.T) {
	t.Parallel()
	_, l := mustLook(t)
	l.live()
	focused := func() string {
		return eval[string](l, `(e => e.id || e.className || e.textContent)(document.activeElement)`)
	}
	l.press("\t")
	testworld.Equal(t, focused(), "skip", "first")
	l.press("\r")
	l.waits(`location.hash === "#main"`)
	key := func(name string) { // as one event, so that the page may keep it from the field it leads to
		l.call("Input.dispatchKeyEvent", map[string]any{"type": "keyDown", "key": name, "text": name}, nil)
		l.call("Input.dispatchKeyEvent", map[string]any{"type": "keyUp", "key": name}, nil)
	}
	key("/")
	testworld.Equal(t, focused(), "text", "/ leads to")
	l.press("/f")
	testworld.Equal(t, eval[string](l, `document.querySelector("#text").value`), "/f", "typed")
	eval[any](l, `document.activeElement.blur(), null`)
	key("f")
	testworld.Equal(t, focused(), "find", "f leads to")
	// Each stop is seen: an outline, or its cover's.
	eval[any](l, `document.activeElement.blur(), scrollTo(0, 0), null`)
	stops := map[string]bool{}
	for range 60 {
		l.press("\t")
		var s struct {
			What    string
			Visible bool
		}
		testworld.Must(t, json.Unmarshal([]byte(eval[string](l, `(e => JSON.stringify({What: e.outerHTML.slice(0, 90), Visible:
			e === document.body || ["", "::after"].some(p => { const s = getComputedStyle(e, p || null); return s.outlineStyle !== "none" && parseFloat(s.outlineWidth) >= 2 })}))(document.activeElement)`)), &s))
		if !s.Visible {
			t.Errorf("focus is not seen on %s", s.What)
		}
		stops[s.What] = true
	}
	if len(stops) < 40 {
		t.Errorf("%d stops", len(stops))
	}
	l.theme("light", true)
	testworld.Equal(t, eval[int](l, `document.getAnimations().filter(a => a.playState === "running").length`), 0, "movements for who wants none")
	l.theme("light", false)
	moves := eval[string](l, `[...new Set(document.getAnimations().filter(a => a.playState === "running")
		.map(a => a.animationName + (a.effect.getTiming().iterations === Infinity ? " for ever" : "")))].sort().join()`)
	testworld.Equal(t, moves, "call,shake,turn for ever", "what moves")
	l.clean()
}
