//go:build live

package dashboard_test

import (
	"fmt"
	"strings"
	"testing"

	"netsky/agent"
	"netsky/bus/envelope"
	"netsky/dashboard/live"
	"netsky/home"
	"netsky/internal/testworld"
	"netsky/store"
	"netsky/view"
)

// tall shows a terminal of 60 rows whose cursor is in one of them.
func (w *world) tall(id agent.ID, cursor int) {
	var b strings.Builder
	for i := range 60 {
		fmt.Fprintf(&b, "row %d\n", i)
	}
	w.panes.show(id, live.Screen{Text: b.String(), Width: 80, Height: 60, CursorY: cursor})
}

// In a small window an agent's page shows its terminal's cursor and the message
// box, also while a question waits.
func TestBrowserAgentInSight(t *testing.T) {
	t.Parallel()
	w, l := mustLook(t)
	l.size(1280, 720)
	for _, id := range []agent.ID{"agent1", "agent2"} { // agent2 asks
		w.tall(id, 40)
		l.open("/agents/" + string(id))
		l.live()
		const cursor = `(g => { const c = g.querySelector(".cursor")?.getBoundingClientRect(), b = g.getBoundingClientRect(); return c && b.height > 100 && c.top >= b.top && c.bottom <= b.bottom && b.bottom < innerHeight })(document.querySelector(".glass"))`
		l.waits(cursor)
		if !eval[bool](l, `(r => r.height > 30 && r.bottom <= innerHeight)(document.querySelector("#text").getBoundingClientRect())`) {
			t.Errorf("%s: the message box is out of sight", id)
		}
		// Whoever scrolls away is left alone.
		eval[any](l, `(g => { g.dispatchEvent(new WheelEvent("wheel", {bubbles: true})); g.scrollTop = 0 })(document.querySelector(".glass")), null`)
		w.tall(id, 41)
		l.waits(`parseFloat(document.querySelector(".cursor").style.top) > parseFloat(document.querySelectorAll("[data-screen] .r")[40].offsetTop)`)
		if at := eval[float64](l, `new Promise(done => requestAnimationFrame(() => setTimeout(() => done(document.querySelector(".glass").scrollTop))))`); at != 0 {
			t.Errorf("%s: the terminal moved to %v under the reader", id, at)
		}
	}
	l.clean()
}

// What confirms an answer is in sight once it is asked for, in a small window and at twice the size, also if
// what is to be allowed is long.
func TestBrowserConfirmInSight(t *testing.T) {
	t.Parallel()
	w, _ := answering(t)
	w.showcase(t)
	asked, err := home.Approvals(w.home).List()
	if err != nil || len(asked) == 0 {
		t.Fatal(asked, err)
	}
	long := asked[0]
	long.Text = strings.Repeat("make the next of many steps\n", 60)
	testworld.Got(home.Approvals(w.home).Ask(long))(t)
	l := mustBrowser(t).look(t, w)
	for _, size := range [][2]int{{1280, 720}, {640, 360}, {390, 700}} {
		l.size(size[0], size[1])
		for _, path := range []string{"/agents/agent2", "/"} {
			l.open(path)
			l.live()
			for i := range 2 {
				eval[any](l, fmt.Sprintf(`document.querySelectorAll(".ask .decide details:first-child summary")[%d].click(), null`, i))
				l.waits(`(b => { const r = b.getBoundingClientRect(), at = document.elementFromPoint(r.left + r.width / 2, r.top + r.height / 2);
					return r.height > 10 && r.top >= 0 && r.bottom < innerHeight + 1 && b.contains(at) })(document.querySelectorAll(".ask .decide details[open] button[type=submit]")[0])`)
				eval[any](l, `document.querySelectorAll(".ask .decide details[open]").forEach(d => d.open = false), null`)
			}
		}
	}
	l.clean()
}

// Several terminals have the whole window, as many beside each other as the reader chooses, and are as high
// as what is in them.
func TestBrowserPanesFit(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, slowly)
	w.showcase(t)
	w.panes.set("agent1", "one\ntwo\nthree"+strings.Repeat("\n", 47))
	l := mustBrowser(t).look(t, w)
	l.size(2560, 1200)
	for _, tt := range []struct {
		path    string
		columns int
	}{{"/panes", 4}, {"/panes?columns=1", 1}, {"/panes?columns=2", 2}, {"/panes?columns=3", 3}} {
		l.open(tt.path)
		l.live()
		testworld.Equal(t, eval[int](l, `new Set([...document.querySelectorAll(".panes > .pane")].map(p => p.offsetLeft)).size`), tt.columns, "%s", tt.path)
		if wide := eval[int](l, `document.querySelector(".panes").offsetWidth`); wide < 2400 {
			t.Errorf("%s: %d of 2560 are used", tt.path, wide)
		}
		l.waits(`(g => { const rows = [...g.querySelectorAll(".r")], three = rows[2]?.getBoundingClientRect(), below = g.getBoundingClientRect().bottom - three?.bottom;
			return rows.length > 40 && three.height > 5 && below >= 0 && below < 120 })(document.querySelector('[data-pane="agent1"]'))`)
	}
	// What comes below is shown.
	w.panes.set("agent1", strings.Repeat("\n", 39)+"at the fortieth row"+strings.Repeat("\n", 10))
	l.waits(`(g => { const r = g.querySelectorAll(".r")[39]?.getBoundingClientRect(); return r && r.bottom <= g.getBoundingClientRect().bottom && g.innerText.includes("fortieth") })(document.querySelector('[data-pane="agent1"]'))`)
	l.clean()
}

// Keys and links lead from one agent to the next, around the list's end.
func TestBrowserAgentNeighbours(t *testing.T) {
	t.Parallel()
	_, l := mustLook(t)
	l.open("/agents/agent0")
	l.live()
	for _, step := range []struct{ key, want string }{{"j", "agent1"}, {"j", "agent2"}, {"k", "agent1"}, {"k", "agent0"}, {"k", "agentinfinity"}, {"j", "agent0"}} {
		l.press(step.key)
		l.waits(`location.pathname === "/agents/` + step.want + `" && document.querySelector("#link").classList.contains("on")`)
	}
	l.click(".turn [rel=next]")
	l.waits(`location.pathname === "/agents/agent1"`)
	l.clean()
}

// A dead agent's page shows what it wrote last and how to start it again.
func TestBrowserAgentEnded(t *testing.T) {
	t.Parallel()
	w, l := mustLook(t)
	l.open("/agents/agent3")
	l.live()
	l.waits(`!document.querySelector("[data-unseen]").hidden`)
	got := l.text(".pane")
	if strings.Contains(got, "no session") || !strings.Contains(got, "index out of range [7]") || !strings.Contains(got, "netsky agent 3") {
		t.Errorf("its terminal shows %s", got)
	}
	// One that ends while it is looked at.
	l.open("/agents/agent1")
	l.live()
	list, _ := w.agents.Agents(t.Context())
	list[1].State = agent.Dead
	w.agents.set(nil, list...)
	l.waits(`document.querySelector(".ended")?.innerText.includes("netsky agent 1")`)
	l.clean()
}

// What is written and not sent survives a reload, for each agent apart, and is
// forgotten once it is sent.
func TestBrowserDraft(t *testing.T) {
	t.Parallel()
	w, l := mustLook(t)
	l.open("/agents/agent1")
	l.live()
	l.typeIn("#text", "half a thought")
	id := eval[string](l, `document.querySelector(".say").elements.id.value`)
	l.open("/agents/agent0")
	testworld.Equal(t, eval[string](l, `document.querySelector("#text").value`), "", "another agent's box holds")
	l.open("/agents/agent1")
	l.waits(`document.querySelector("#text").value === "half a thought"`)
	testworld.Equal(t, eval[string](l, `document.querySelector(".say").elements.id.value`), id, "after a reload its id")
	l.live()
	eval[any](l, `document.querySelector(".say").requestSubmit(), null`)
	l.waits(`document.querySelector("#answer").textContent.includes("inbox")`)
	l.open("/agents/agent1")
	l.live()
	if got := eval[string](l, `document.querySelector("#text").value`); got != "" || len(w.inbox(t, "agent1")) != 1 {
		t.Errorf("after it was sent the box holds %q", got)
	}
	l.clean()
}

// A message whose recipient was changed is one message: once it is sent, neither recipient has it in their
// box again, and the next one has another id.
func TestBrowserDraftMoves(t *testing.T) {
	t.Parallel()
	w, l := mustLook(t)
	l.open("/")
	l.live()
	l.typeIn("#text", "to whom?")
	id := eval[string](l, `document.querySelector(".say").elements.id.value`)
	// As a screen reader or a keyboard extension changes it: no focus, only the change.
	eval[any](l, `(s => { s.value = "agent1"; s.dispatchEvent(new Event("change", { bubbles: true })); return null })(document.querySelector(".say select"))`)
	eval[any](l, `document.querySelector(".say").requestSubmit(), null`)
	l.waits(`document.querySelector("#answer").textContent.includes("Your message to agent1")`)
	for _, path := range []string{"/", "/agents/agent0", "/agents/agent1"} {
		l.open(path)
		l.live()
		testworld.Equal(t, eval[string](l, `document.querySelector("#text").value`), "", "%s: after it was sent the box holds", path)
		if eval[string](l, `document.querySelector(".say").elements.id.value`) == id {
			t.Errorf("%s: the next message would have the id of the sent one", path)
		}
	}
	testworld.Equal(t, len(w.inbox(t, "agent1")), 1, "messages of agent1")
	l.clean()
}

// Back leads from what is above the screen to the screen, on the same page.
func TestBrowserHistoryBack(t *testing.T) {
	t.Parallel()
	_, l := mustLook(t)
	l.open("/agents/agent0")
	l.live()
	testworld.Wait(t, "a click that hits", func() bool { // what comes meanwhile may move what is aimed at
		l.click("[data-above]")
		return eval[bool](l, `location.search === "?history=1000"`)
	})
	l.waits(`document.querySelector(".history")?.innerText.includes("above")`)
	eval[any](l, `history.back(), null`)
	l.waits(`location.pathname === "/agents/agent0" && !location.search && !document.querySelector(".history")`)
	l.waits(`document.querySelector("[data-screen]").innerText.includes("Planning the next step")`)
	eval[any](l, `history.forward(), null`)
	l.waits(`document.querySelector(".history")?.innerText.includes("above")`)
	l.clean()
}

// Moments are shown in the browser's zone, ages by the server's clock.
func TestBrowserTimes(t *testing.T) {
	t.Parallel()
	_, l := mustLook(t)
	l.call("Emulation.setTimezoneOverride", map[string]string{"timezoneId": "Asia/Tokyo"}, nil)
	l.call("Page.addScriptToEvaluateOnNewDocument", map[string]string{"source": "{ const now = Date.now; Date.now = () => now() + 7_200_000 }"}, nil)
	l.open("/messages/web-5d1f0c77a2b94e6180c3d2aa")
	l.live()
	l.waits(`(t => t.textContent.includes(new Date(t.dateTime).toLocaleTimeString("en-GB", {timeZone: "Asia/Tokyo"})))(document.querySelector(".story .clock time"))`)
	l.waits(`document.querySelector("[data-at=full]").textContent.includes("GMT+9") && document.querySelector(".clock time").title.includes("GMT+9")`)
	if got := eval[string](l, `new Promise(done => { const t = document.querySelector("[data-ago]"); t.textContent = "?"; new MutationObserver(() => done(t.textContent)).observe(t, {childList: true, characterData: true, subtree: true}) })`); !strings.HasPrefix(got, "3") || !strings.Contains(got, "min") {
		t.Errorf("two hours ahead, 38 minutes are %q", got)
	}
	l.clean()
}

// On a phone the filters are behind a button, the message box is a line at the
// bottom that grows, and neither needs the script.
func TestBrowserPhone(t *testing.T) {
	t.Parallel()
	_, l := mustLook(t)
	l.size(390, 844)
	for _, script := range []bool{true, false} {
		l.call("Emulation.setScriptExecutionDisabled", map[string]bool{"value": !script}, nil)
		l.open("/messages")
		if script {
			l.live()
		}
		shown := `(f => f && getComputedStyle(f).display !== "none" && f.getBoundingClientRect().height > 50)(document.querySelector("#filters"))`
		if eval[bool](l, shown) {
			t.Error("the filters take the page")
		}
		l.click(".open-filters")
		l.waits(shown)
		l.open("/")
		const box = `(r => [Math.round(innerHeight - r.bottom), Math.round(r.height)])(document.querySelector(".say").getBoundingClientRect())`
		low := eval[[]int](l, box)
		if low[0] != 0 || low[1] > 80 {
			t.Errorf("the message box ends %d above the window's end and is %d high", low[0], low[1])
		}
		testworld.Equal(t, eval[string](l, `document.querySelector("#text").placeholder`), "Message to agent0", "the closed message box says")
		if script {
			const other = `(s => { s.value = "agent1"; s.dispatchEvent(new Event("change", { bubbles: true })); return document.querySelector("#text").placeholder; })(document.querySelector("#to"))`
			testworld.Equal(t, eval[string](l, other), "Message to agent1", "with another chosen, it says")
		}
		l.click("#text")
		l.waits(`document.querySelector(".say").getBoundingClientRect().height > 120 && document.querySelector("#to").checkVisibility()`)
	}
	l.size(1280, 800)
	l.open("/messages")
	if !eval[bool](l, `document.querySelector("#filters").checkVisibility() && !document.querySelector(".open-filters").checkVisibility()`) {
		t.Error("on a desk the filters are behind a button")
	}
	l.clean()
}

// A page that begins to follow what happens moves nothing that is about to be
// touched.
func TestBrowserStandsStill(t *testing.T) {
	t.Parallel()
	_, l := mustLook(t)
	for _, width := range []int{1280, 900, 700, 560, 390, 360, 320} {
		l.size(width, 844)
		l.open("/messages")
		l.live()
		const high = `((kind, text) => {
			const link = document.querySelector("#link"), [c, t] = [link.className, link.textContent];
			link.className = "link " + kind; link.textContent = text;
			const h = document.querySelector("main").getBoundingClientRect().top;
			link.className = c; link.textContent = t;
			return h;
		})`
		loaded, follows := eval[float64](l, high+`("", "as of 23:59:59")`), eval[float64](l, high+`("on", "live")`)
		testworld.Equal(t, loaded, follows, "%d px wide, the page begins", width)
	}
	l.clean()
}

// A reply is written on the page of what it answers; mail is marked as read there.
func TestBrowserReply(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, slowly)
	w.showcase(t)
	testworld.Got(w.bus.Send(t.Context(), envelope.Envelope{ID: "ask-1", From: "agent0", To: agent.Owner, Text: "Which port?"}))(t)
	w.apply(t, store.UpsertMessage{ID: "ask-1", From: "agent0", To: "owner", Text: "Which port?"})
	l := mustBrowser(t).look(t, w)
	l.open("/messages/ask-1")
	l.live()
	testworld.Equal(t, eval[string](l, `document.querySelector("#text").placeholder`), "Reply to agent0", "the box for a reply says")
	l.click(".read button")
	l.waits(`!document.querySelector(".new")`)
	l.typeIn("#text", "7717")
	l.press("\t\r")
	l.waits(`document.querySelector("#answer").textContent.includes("waits in its inbox")`)
	list := w.inbox(t, "agent0")
	if e := list[len(list)-1].Envelope; e.InReplyTo != "ask-1" || e.Kind != envelope.KindReply || e.Text != "7717" {
		t.Errorf("sent %+v", e)
	}
	l.clean()
}

// The browser is asked for notices when the reader wants them and not before; a
// tab that nobody looks at says what is new in its title, its icon and a notice,
// which holds nothing that an agent wrote.
func TestBrowserNotices(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, slowly)
	w.agents.set(nil, view.Agent{ID: "agent1", State: agent.Idle, Wanted: true})
	l := mustBrowser(t).look(t, w)
	l.call("Page.addScriptToEvaluateOnNewDocument", map[string]string{"source": `
		window.asked = 0; window.notices = [];
		window.Notification = class { constructor(title, o) { notices.push(title + ": " + o.body) } close() {} };
		Notification.permission = "default";
		Notification.requestPermission = async () => { asked++; Notification.permission = "granted"; return "granted" };
		Object.defineProperty(document, "hidden", { get: () => !!window.away }); document.hasFocus = () => !window.away;`}, nil)
	l.open("/")
	l.live()
	testworld.Equal(t, eval[int](l, "asked"), 0, "the browser was asked without a click")
	l.click("#notify button")
	l.waits(`asked === 1 && document.querySelector("#notify button").getAttribute("aria-pressed") === "true"`)
	eval[any](l, `window.away = true, null`)
	testworld.Got(home.Approvals(w.home).Ask(agent.Approval{Agent: "agent1", Tool: "Bash", Text: "rm -rf secret", AskedMS: 1}))(t)
	l.waits(`notices.length === 1 && document.title.startsWith("(1) ") && document.querySelector("#icon").getAttribute("href").includes("icon-needs")`)
	testworld.Equal(t, eval[string](l, `notices.join()`), "netsky: agent1 asks for permission", "the notice says")
	l.clean()
}
