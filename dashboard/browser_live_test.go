//go:build live

package dashboard_test

import (
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"netsky/agent"
	"netsky/daemon/observe"
	"netsky/dashboard"
	"netsky/dashboard/live"
	"netsky/home"
	"netsky/internal/testworld"
	"netsky/spawn/demo"
	"netsky/store"
	"netsky/view"
)

// demo runs a demo agent, and mirrors the bus into the records as the daemon
// does.
func (w *world) demo(tb testing.TB, id agent.ID) {
	tb.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 2)
	go func() {
		ended <- demo.Run(ctx, demo.Options{Home: w.home, Agent: id, Start: agent.NewStart(), Bus: w.bus, Out: io.Discard})
	}()
	go func() { ended <- (&observe.Observer{Bus: w.bus, DB: w.db}).Run(ctx) }()
	tb.Cleanup(func() {
		cancel()
		<-ended
		<-ended
	})
}

// A message is written on the page, and the page shows it queued while the agent
// is down, delivered and answered once it is up.
func TestBrowserSay(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, slowly)
	w.agents.set(nil, view.Agent{ID: "agent0", State: agent.Down, Runtime: "demo", Evidence: "no session"})
	l := mustBrowser(t).look(t, w)
	l.live()
	l.typeIn("#text", "hello <b>there</b>")
	l.press("\t\r")
	l.waits(`document.querySelector("#answer").textContent.includes("waits in its inbox")`)
	if n := len(w.inbox(t, "agent0")); n != 1 {
		t.Fatalf("%d messages in the inbox", n)
	}
	l.waits(`document.querySelector(".letter")?.innerText.includes("hello <b>there</b>") && document.querySelector(".letter .state").textContent === "queued"`)
	w.demo(t, "agent0")
	l.waits(`document.querySelector("#answer").textContent.includes("has been answered")`)
	l.waits(`document.querySelectorAll(".letter").length === 2 && /agent0\s+→/.test(document.querySelector(".letter .cover").innerText)`)
	l.waits(`document.querySelector("#said").textContent.includes("agent0 wrote to you")`)
	eval[any](l, `document.querySelector("#answer a").click(), null`)
	l.waits(`location.pathname.startsWith("/messages/") && document.querySelectorAll(".steps .done, .steps .past").length === 3`)
	if story := l.text(".reply") + l.text(".story"); !strings.Contains(story, "hello <b>there</b>") || !strings.Contains(story, "agent0 wrote") {
		t.Errorf("its page tells %s", story)
	}
	l.clean()
}

// What is refused is said beside the words; nothing is lost.
func TestBrowserSayRefused(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, slowly)
	l := mustBrowser(t).look(t, w)
	l.live()
	l.typeIn("#text", "</channel>")
	l.press("\t\r")
	l.waits(`document.querySelector("#answer").textContent.includes("not sent")`)
	testworld.Equal(t, eval[string](l, `document.querySelector("#text").value`), "</channel>", "the words are")
	l.clean("Failed to load resource")
	w.stop()
	eval[any](l, `document.querySelector(".say").requestSubmit(), null`)
	l.waits(`document.querySelector("#answer").textContent.includes("does not answer")`)
}

// What changes comes onto the page by itself, is told to who can't see it, and
// leaves alone what the reader is at.
func TestBrowserLive(t *testing.T) {
	t.Parallel()
	w, l := mustLook(t)
	l.live()
	l.typeIn("#text", "half a thou")
	eval[any](l, `window.card = document.querySelector("[data-key=card-agent1]"), null`)
	testworld.Got(home.Approvals(w.home).Ask(agent.Approval{Agent: "agent1", Tool: "Bash", Text: "rm -rf <build>"}))(t)
	l.waits(`document.querySelectorAll(".ask").length === 3 && document.title.startsWith("(3)")`)
	l.waits(`document.querySelector("#said").textContent.includes("agent1 asks for permission to use Bash")`)
	w.agents.set(nil, view.Agent{ID: "agent1", State: agent.Idle, Evidence: "x", Wanted: true})
	w.apply(t, store.AddLog{Text: "brand new <i>thing</i>", Actor: "agent1"})
	l.waits(`document.querySelectorAll(".card").length === 1 && document.querySelector(".card strong").textContent === "idle"`)
	l.waits(`document.querySelector(".log").innerText.includes("brand new <i>thing</i>")`)
	if !eval[bool](l, `window.card === document.querySelector(".card") && document.activeElement.id === "text"`) {
		t.Error("the card was made anew, or the focus is gone")
	}
	testworld.Equal(t, eval[string](l, `document.querySelector("#text").value`), "half a thou", "the words are")
	l.clean()
}

// A comment is written at its line, stays while news come, is kept and then sent; a file that the reader
// has closed stays closed.
func TestBrowserComment(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, nil)
	w.showcase(t)
	l := mustBrowser(t).look(t, w)
	l.open("/work/agent1")
	l.live()
	l.click(".file:nth-of-type(2) > summary")
	news := func(text string) {
		t.Helper()
		w.apply(t, store.UpsertMessage{ID: text, From: "agent0", To: "owner", Text: text})
		w.work.mu.Lock()
		w.work.states[0].Ahead++
		ahead := w.work.states[0].Ahead
		w.work.mu.Unlock()
		l.waits(fmt.Sprintf(`document.querySelector(".tree-head").innerText.includes("ahead %d")`, ahead))
	}
	news("first")
	w.work.mu.Lock()
	c := w.work.changes["agent1"]
	c.Tree = "another"
	w.work.changes["agent1"] = c
	w.work.mu.Unlock()
	news("second")
	if eval[bool](l, `document.querySelector(".file:nth-of-type(2)").open`) || !eval[bool](l, `document.querySelector(".file").open`) {
		t.Error("a file was opened or closed")
	}
	l.click(`a[href*="south.go%3A43"]`)
	l.waits(`document.activeElement.id === "remark"`)
	l.live()
	l.typeIn("#remark", "what is h?")
	news("third")
	testworld.Equal(t, eval[string](l, `document.querySelector("#remark").value`), "what is h?", "the text")
	key := eval[string](l, `document.querySelector(".ask-form").elements.key.value`)
	l.open("/work/agent1?at=tides/south.go:43") // a reload loses nothing
	l.live()
	l.waits(`document.querySelector("#remark").value === "what is h?"`)
	testworld.Equal(t, eval[string](l, `document.querySelector(".ask-form").elements.key.value`), key, "after a reload its key")
	l.open("/work/agent1?at=tides/south.go:41")
	l.live()
	testworld.Equal(t, eval[string](l, `document.querySelector("#remark").value`), "", "another line's box holds")
	l.open("/work/agent1?at=tides/south.go:43")
	l.live()
	l.click(".ask-form button")
	l.waits(`location.search === "" && [...document.querySelectorAll("tr.said .words")].some((e) => e.textContent === "what is h?")`)
	l.click(".waits button")
	l.waits(`!document.querySelector(".waits") && document.querySelector(".remarks").innerText.includes("3 comments sent")`)
	l.open("/work/agent1?at=tides/south.go:43")
	l.live()
	testworld.Equal(t, eval[string](l, `document.querySelector("#remark").value`), "", "once kept, the comment is in its box again")
	l.typeIn("#remark", "no")
	l.click(".ask-form a")
	l.waits(`location.search === ""`)
	l.open("/work/agent1?at=tides/south.go:43")
	l.live()
	testworld.Equal(t, eval[string](l, `document.querySelector("#remark").value`), "", "once cancelled, the comment is in its box again")
	l.clean()
}

// A page goes on by itself after a daemon's restart, with what came meanwhile.
func TestBrowserReconnect(t *testing.T) {
	t.Parallel()
	w, l := mustLook(t)
	l.open("/agents/agent0")
	l.live()
	w.stop()
	l.waits(`document.querySelector("#link").textContent.startsWith("as of ")`)
	w.apply(t, store.AddLog{Text: "came while nobody looked", Actor: "agent0"})
	w.panes.set("agent0", "another screen")
	w.serve(t, dashboard.Options{Home: w.home, Records: func() (dashboard.Reader, error) { return w.db, nil },
		Agents: w.agents, Panes: w.panes, Bus: w.bus, Token: w.token, Version: "v1"})
	l.live()
	l.waits(`document.querySelector(".log").innerText.includes("came while nobody looked")`)
	l.waits(`document.querySelector("[data-screen]").innerText.includes("another screen")`)
	l.clean("ERR_CONNECTION_REFUSED", "WebSocket connection", "ERR_")
	// Another version brings another page.
	w.stop()
	w.serve(t, dashboard.Options{Home: w.home, Records: func() (dashboard.Reader, error) { return w.db, nil },
		Agents: w.agents, Panes: w.panes, Bus: w.bus, Token: w.token, Version: "v2"})
	l.waits(`document.body.dataset.version === "v2"`)
}

// Where a websocket does not pass, SSE does.
func TestBrowserSSE(t *testing.T) {
	t.Parallel()
	w, l := mustLook(t)
	l.call("Page.addScriptToEvaluateOnNewDocument", map[string]string{"source": "delete window.WebSocket"}, nil)
	l.open("/agents/agent1")
	l.live()
	w.panes.set("agent1", "by another way")
	l.waits(`document.querySelector("[data-screen]").innerText.includes("by another way")`)
	w.apply(t, store.AddLog{Text: "and a log", Actor: "agent1"})
	l.waits(`document.querySelector(".log").innerText.includes("and a log")`)
	l.clean()
}

// Terminals are drawn as they change, several at once, exactly coloured, and
// whatever is in them is text.
func TestBrowserPanes(t *testing.T) {
	t.Parallel()
	w, l := mustLook(t)
	l.open("/panes")
	l.live()
	testworld.Wait(t, "four panes are looked at", func() bool { return w.panes.watched() == 4 })
	for i := range 20 {
		for _, id := range []agent.ID{"agent0", "agent1", "agent2"} {
			w.panes.set(id, fmt.Sprintf("row\n%s at %d\n\x1b[38;2;18;52;86mexact\x1b[0m \x1b[1;31mred <img src=x onerror=alert(1)>\x1b[0m <img src=x> 漢字\n\x1b]8;;https://example.org/\x1b\\a link\x1b]8;;\x1b\\", id, i))
		}
	}
	for _, id := range []string{"agent0", "agent1", "agent2"} {
		l.waits(fmt.Sprintf(`document.querySelector('[data-pane="%s"]').innerText.includes("%s at 19")`, id, id))
	}
	testworld.Equal(t, eval[string](l, `(s => [getComputedStyle(s.querySelector("[class*=f]")).color, getComputedStyle(s.querySelector(".b.f1")).fontWeight,
		s.querySelector("a").href, s.querySelectorAll("img").length, s.querySelector(".ws").firstChild.textContent, s.querySelectorAll(".r").length].join("|"))(document.querySelector("[data-screen]"))`), "rgb(18, 52, 86)|700|https://example.org/|0|漢|4", "drawn")
	// An agent that comes up comes onto the page, with its terminal.
	list, _ := w.agents.Agents(t.Context())
	w.panes.set("agent4", "I have just come")
	w.agents.set(nil, append(list, view.Agent{ID: "agent4", State: agent.Idle, Evidence: "x"})...)
	l.waits(`document.querySelector('[data-pane="agent4"]')?.innerText.includes("I have just come")`)
	// Another thing has changed, too: what has come and gone between two looks at
	// the agents is no news to a page that was fetched meanwhile.
	left := slices.Clone(list)
	left[1].Detail += " and so on"
	w.agents.set(nil, left...)
	testworld.Wait(t, "it is not looked at any more", func() bool { return w.panes.watched() == 4 })
	// The same, drawn by the server, has the same look.
	drawn := eval[string](l, `document.querySelector("[data-screen]").innerText`)
	l.open("/panes?agent=agent0")
	if got := l.text("[data-screen]"); strings.TrimRight(got, "\n") != strings.TrimRight(drawn, "\n") {
		t.Errorf("the server draws %q, the script %q", got, drawn)
	}
	testworld.Equal(t, eval[string](l, `getComputedStyle(document.querySelector("[data-screen] [class*=f]")).color`), "rgb(18, 52, 86)", "the server's exact colour")
	testworld.Wait(t, "one pane is looked at", func() bool { return w.panes.watched() == 1 })
	// What is above the screen comes when it is asked for, and the screen lives on.
	l.open("/agents/agent0")
	l.live()
	l.click("[data-above]")
	l.waits(`document.querySelector(".history")?.innerText.includes("above")`)
	w.panes.set("agent0", "below")
	l.waits(`document.querySelector("[data-screen]").innerText.includes("below") && document.querySelector(".history").innerText.includes("above")`)
	w.panes.mu.Lock()
	delete(w.panes.screens, "agent0")
	w.panes.mu.Unlock()
	l.open("/agents/agent0")
	l.waits(`document.querySelector("[data-unseen]").innerText.includes("no session")`)
	l.clean()
}

// A pane that scrolls shows the same as one that has just come.
func TestBrowserScrolls(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, slowly)
	w.showcase(t)
	screen := func(first int) string {
		rows := []string{"head"}
		for i := range 20 {
			rows = append(rows, fmt.Sprintf("\x1b[3%dmline %d ✻\x1b[m", (first+i)%8, first+i))
		}
		return strings.Join(append(rows, "foot"), "\n")
	}
	w.panes.set("agent1", screen(0))
	l := mustBrowser(t).look(t, w)
	l.open("/agents/agent1")
	l.live()
	for _, first := range []int{1, 4, 3, 19, 60, 61} {
		w.panes.set("agent1", screen(first))
		var want []string
		for _, r := range new(live.Renderer).Render(screen(first)) {
			want = append(want, plain(r.Row))
		}
		l.waits(fmt.Sprintf(`[...document.querySelectorAll("[data-screen] .r")].map((r) => r.textContent).join("\n") === %q`, strings.Join(want, "\n")))
	}
	l.clean()
}

// Above the screen stands what has left it since, or a mark where rows may be
// missing.
func TestBrowserScrollBack(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, slowly)
	w.showcase(t)
	screen := func(first int) string {
		var rows []string
		for i := range 20 {
			rows = append(rows, fmt.Sprintf("line %d", first+i))
		}
		return strings.Join(rows, "\n")
	}
	w.panes.set("agent1", screen(0))
	l := mustBrowser(t).look(t, w)
	l.open("/agents/agent1?history=1000")
	l.live()
	shows := func(last int, above string) {
		t.Helper()
		l.waits(fmt.Sprintf(`document.querySelector("[data-screen] .r:nth-of-type(20)")?.textContent === "line %d"`, last))
		testworld.Equal(t, eval[string](l, `[...document.querySelectorAll(".history .r")].map((r) => r.textContent).join("|")`), above, "above line %d there", last-19)
	}
	shows(19, "above")
	w.panes.set("agent1", screen(2))
	shows(21, "above|line 0|line 1")
	w.panes.set("agent1", screen(3))
	shows(22, "above|line 0|line 1|line 2")
	w.panes.set("agent1", screen(500))
	shows(519, "above|line 0|line 1|line 2|⋯ rows may be missing here: reload to see them")
	l.clean()
}

// Each character has its cells on the page too, whatever the font, drawn by the
// script or by the server; lines and grounds meet.
func TestBrowserCells(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, slowly)
	w.showcase(t)
	rows := []struct {
		text string
		at   int // the cell of the bar
	}{
		{"0123456789|", 10}, {"✻ ⏺ ⎿ x ⠋⠙|", 10}, {"👨\u200d👩\u200d👧👩\u200d🌾漢字|", 8}, {"❤\ufe0f⚠\ufe0f▶\ufe0f1\ufe0f\u20e3\ue0b0\uf121|", 6}, {"👍🏽🇩🇪✅|", 8},
		{"e\u0301a\u0302\x1b[4m漢✻\x1b[24m|", 5}, {"╭──┬━━╮▐▛█▌░|", 12}, {"\x1b[48;5;22m+ ✻ x \x1b[1m漢  \x1b[22m|", 10}, {"\x1b[48;5;22m- x     |\x1b[49m", 8},
	}
	var text strings.Builder
	for _, r := range rows {
		text.WriteString(r.text + "\n")
	}
	w.panes.set("agent1", text.String())
	l := mustBrowser(t).look(t, w)
	for _, script := range []bool{true, false} {
		l.call("Emulation.setScriptExecutionDisabled", map[string]bool{"value": !script}, nil)
		l.open("/agents/agent1")
		if script {
			l.live()
		}
		l.waits(`document.querySelectorAll("[data-screen] .r").length >= 9`)
		places := eval[[][3]float64](l, `(() => {
			const rows = [...document.querySelectorAll("[data-screen] .r")], one = document.createRange();
			one.setStart(rows[0].firstChild, 0); one.setEnd(rows[0].firstChild, 10);
			const left = one.getBoundingClientRect().left, cell = one.getBoundingClientRect().width / 10;
			return rows.map((r) => {
				const walk = document.createTreeWalker(r, NodeFilter.SHOW_TEXT);
				let n, bar = 0;
				while ((n = walk.nextNode())) if (n.data.includes("|")) {
					const at = document.createRange();
					at.setStart(n, n.data.indexOf("|")); at.setEnd(n, n.data.indexOf("|") + 1);
					bar = (at.getBoundingClientRect().left - left) / cell;
				}
				const box = r.getBoundingClientRect(), seams = [...r.querySelectorAll(":scope > [class*=g]")].map((x) => x.getBoundingClientRect());
				return [bar, box.top, seams.some((x) => Math.abs(x.top - box.top) > .1 || Math.abs(x.bottom - box.bottom) > .1) ? -1 : box.bottom];
			});
		})()`)
		for i, r := range rows {
			if got := places[i][0]; math.Abs(got-float64(r.at)) > .2 {
				t.Errorf("script %v: %q has its bar in cell %.2f, want %d", script, r.text, got, r.at)
			}
			if i > 0 && math.Abs(places[i][1]-places[i-1][2]) > .1 {
				t.Errorf("script %v: a seam above %q: %v", script, r.text, places[i-1:i+1])
			}
		}
		if got := eval[int](l, `[...document.querySelectorAll("[data-screen] [class^=x]")].filter((x) => getComputedStyle(x).backgroundImage !== "none").length`); got != 12 {
			t.Errorf("script %v: %d lines and blocks are drawn, want 12", script, got)
		}
	}
	l.clean()
}

// A page that has just come is not fetched again until something changes, and then
// once.
func TestBrowserFetchesOnce(t *testing.T) {
	t.Parallel()
	w, l := mustLook(t)
	l.call("Page.addScriptToEvaluateOnNewDocument", map[string]string{"source": `window.told = [];
		window.WebSocket = class extends WebSocket { constructor(...of) { super(...of); this.addEventListener("message", (e) => told.push(JSON.parse(e.data))) } }`}, nil)
	const (
		greeted = `["hello", "agent:agentinfinity", "approvals", "records"].every((key) => told.some((e) => e.key === key))` // what each newcomer is told
		late    = `performance.now() > 30_000`                                                                               // it may have fallen back to SSE
	)
	for _, path := range []string{"/", "/logs", "/agents/agent1"} {
		testworld.Wait(t, "a page that keeps its connection", func() bool {
			l.open(path)
			if l.waits(greeted + "||" + late); !eval[bool](l, greeted) {
				return false
			}
			text := fmt.Sprintf("news for %s at %v", path, time.Now())
			w.apply(t, store.AddLog{Text: text, Actor: "agent1"})
			l.waits(fmt.Sprintf("document.body.innerText.includes(%q)", text))
			if eval[int](l, `told.filter((e) => e.proof).length`) > 1 {
				return false // a page that had lost its server is fetched again; on a busy machine it may
			}
			if n := eval[int](l, `performance.getEntriesByType("resource").filter((e) => e.initiatorType === "fetch" && !/\/(session|healthz)$/.test(e.name)).length`); n != 1 {
				t.Errorf("%s was fetched %d times for one change", path, n)
			}
			return true
		})
	}
	l.clean("WebSocket")
}

// A page whose update fails once shows what is new all the same.
func TestBrowserFetchesAgain(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, slowly)
	w.showcase(t)
	broken := make(chan bool, 1)
	l := mustBrowser(t).open(t, w)
	l.through(func(rw http.ResponseWriter, r *http.Request, server http.Handler) {
		if r.Header.Get("Netsky-Update") != "" {
			select {
			case broken <- true:
				rw.Header().Set("Content-Length", "10")
				rw.WriteHeader(http.StatusOK) // one that breaks off before its headers is fetched again by the browser itself
				rw.(http.Flusher).Flush()
				panic(http.ErrAbortHandler)
			default:
			}
		}
		server.ServeHTTP(rw, r)
	})
	l.live()
	w.apply(t, store.AddLog{Text: "news that come late", Actor: "agent1"})
	l.waits(`document.body.innerText.includes("news that come late")`)
	testworld.Equal(t, len(broken), 1, "no update failed")
}

// Without the script every page is whole, and the message is sent all the same.
func TestBrowserWithoutScript(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, slowly)
	w.showcase(t)
	l := mustBrowser(t).open(t, w)
	l.call("Emulation.setScriptExecutionDisabled", map[string]bool{"value": true}, nil)
	l.goTo(w.link(t))
	l.click("#login button")
	l.waits(`location.pathname === "/" && document.readyState === "complete"`)
	l.open("/agents/agent1")
	if got := l.text("#link") + l.text("[data-screen]"); !strings.Contains(got, "as of") || !strings.Contains(got, "tideline/tides/offline") {
		t.Errorf("the page shows %s", got)
	}
	l.typeIn("#text", "no script, éß")
	l.click(".send button")
	l.waits(`location.pathname.startsWith("/messages/web-") && document.readyState === "complete"`)
	if got := l.text("main"); !strings.Contains(got, "no script, éß") || !strings.Contains(got, "queued") {
		t.Errorf("its page shows %s", got)
	}
	testworld.Equal(t, len(w.inbox(t, "agent1")), 1, "messages in the inbox")
	l.open("/messages")
	eval[any](l, `document.querySelector("#f-state").value = "queued", null`)
	l.click(".go button")
	l.waits(`document.readyState === "complete" && new URLSearchParams(location.search).get("state") === "queued" && document.querySelectorAll(".letter").length === 2`)
	l.clean()
}
