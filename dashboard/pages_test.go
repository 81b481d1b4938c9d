package dashboard_test

import (
	"html"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

// page gets a page as a browser does.
func (w *world) page(tb testing.TB, path string) answer {
	tb.Helper()
	r := w.request(tb, "GET", path, "")
	r.Header.Set("Accept", "text/html")
	return mustAnswer(tb, r)
}

// mustPage gets a page that must be there, and checks what holds of each.
func (w *world) mustPage(tb testing.TB, path string) string {
	tb.Helper()
	a := w.page(tb, path)
	if a.status != 200 {
		tb.Fatalf("%s: %d %s", path, a.status, a.body)
	}
	checkPage(tb, path, a.body)
	return a.body
}

var (
	hidden  = regexp.MustCompile(`<input type="hidden"[^>]*>`)
	links   = regexp.MustCompile(`href="(/[^"]*)"`)
	voids   = set(`br input link meta`)
	plainly = set(`a body br button code dd details div dl dt footer form h1 h2 h3 head header html input kbd label li link main
		meta nav ol option p pre q script section select span strong summary svg symbol textarea time title ul use path circle rect
		bdi caption progress table tbody td tfoot th thead tr`)
	// no style, no on…, no srcdoc, no formaction
	attributes = set(`autofocus colspan data-done data-have data-next data-of max maxlength open scope action alt aria-current aria-describedby aria-hidden aria-invalid aria-label aria-labelledby aria-live aria-pressed
		autocomplete charset checked class content cx cy d data-above data-ago data-at data-bg data-calm data-copy data-fg data-keep data-key data-live data-needs data-now
		data-known data-pane data-say data-screen data-unseen data-version datetime defer dir fill for height hidden href id lang media method name
		opacity placeholder popover popovertarget r rel required role rows rx ry selected spellcheck src stroke stroke-dasharray stroke-linecap
		stroke-linejoin stroke-width tabindex target title type value viewBox width x y`)
)

func set(words string) map[string]bool {
	m := make(map[string]bool)
	for w := range strings.FieldsSeq(words) {
		m[w] = true
	}
	return m
}

// checkPage checks that a page is whole, and that nothing is in it but what
// templates may write: whatever stands in a record is text.
func checkPage(tb testing.TB, path, body string) {
	tb.Helper()
	if !strings.HasPrefix(body, "<!doctype html>") || !strings.HasSuffix(strings.TrimSpace(body), "</html>") {
		tb.Errorf("%s: not a whole page", path)
	}
	var open []string
	ids, scripts := map[string]bool{}, 0
	for rest := strings.TrimPrefix(body, "<!doctype html>"); ; { // by hand: a pattern takes most of the time under the race detector
		_, after, some := strings.Cut(rest, "<")
		if !some {
			break
		}
		end := tagEnd(after)
		if end < 0 {
			tb.Errorf("%s: a stray <: %.200s", path, after)
			break
		}
		var tag string
		tag, rest = after[:end], after[end+1:]
		if name, closes := strings.CutPrefix(tag, "/"); closes {
			if len(open) == 0 || open[len(open)-1] != name {
				tb.Errorf("%s: </%s> closes %v", path, name, open)
				continue
			}
			open = open[:len(open)-1]
			continue
		}
		name, text := tag, ""
		if i := strings.IndexAny(tag, " \t\n/"); i >= 0 {
			name, text = tag[:i], tag[i:]
		}
		if !plainly[name] {
			tb.Errorf("%s: element %.200s", path, tag)
		}
		if name == "script" {
			scripts++
		}
		if !voids[name] && !strings.HasSuffix(text, "/") {
			open = append(open, name)
		}
		checkAttributes(tb, path, tag, strings.TrimSuffix(text, "/"), ids)
	}
	if len(open) > 0 || scripts != 2 {
		tb.Errorf("%s: open %v, %d scripts", path, open, scripts)
	}
	shown := hidden.ReplaceAllString(body, "") // those hold a filter as it is
	for _, r := range html.UnescapeString(shown) {
		if ' ' <= r && r <= '~' {
			continue
		}
		if unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' {
			tb.Errorf("%s: holds %U", path, r)
		}
	}
}

// tagEnd is where the tag ends that text begins with, -1 if it begins with none.
func tagEnd(text string) int {
	if text == "" || !strings.Contains("/abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", text[:1]) {
		return -1
	}
	for at := 0; ; {
		i := strings.IndexAny(text[at:], `">`)
		switch {
		case i < 0:
			return -1
		case text[at+i] == '>':
			return at + i
		}
		at += i + 1
		i = strings.IndexByte(text[at:], '"')
		if i < 0 {
			return -1
		}
		at += i + 1
	}
}

func checkAttributes(tb testing.TB, path, tag, text string, ids map[string]bool) {
	tb.Helper()
	for text = strings.TrimSpace(text); text != ""; text = strings.TrimSpace(text) {
		name, value, rest := text, "", ""
		if i := strings.IndexAny(text, "= \t\n"); i >= 0 {
			name, rest = text[:i], text[i:]
		}
		if quoted, ok := strings.CutPrefix(rest, `="`); ok {
			value, rest, _ = strings.Cut(quoted, `"`)
			value = html.UnescapeString(value)
		}
		text = rest
		if !attributes[name] {
			tb.Errorf("%s: attribute %s in %.200s", path, name, tag)
		}
		switch name {
		case "id":
			if ids[value] || value == "" {
				tb.Errorf("%s: id %q twice", path, value)
			}
			ids[value] = true
		case "href", "src", "action":
			web := strings.HasPrefix(value, "http://") || strings.HasPrefix(value, "https://")
			if !strings.HasPrefix(value, "/") && !strings.HasPrefix(value, "#") && !web || strings.HasPrefix(value, "//") {
				tb.Errorf("%s: %s leads to %q", path, name, value)
			}
		}
	}
}

// Each page is there, whole, and shows what it is for.
func TestPages(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, nil)
	w.showcase(t)
	for _, tt := range []struct {
		path string
		want []string // in this order
	}{
		{"/", []string{"<title>(2) Overview", "agent2 asks for permission, agent3 is dead</h1>", "2 items need you · 2 busy", "Permission", "asks for permission to use Bash", "git push --force", "netsky approve ", "--deny",
			"Dead", "is dead", "netsky agent 3", "Agents", "card-agent3", "card-agent2", "card-agent0", "reading agent1&#39;s proof", "Check the tables", "2 waiting", "Your messages", "Tide tables work offline", "Recent events", "agent3 exited 2", "Ready", "agent1&#39;s work is checked and can land", "netsky land agent1", "Tasks", "Rebase release/1.4"}},
		{"/agents/agent1", []string{"agent1", "worker", "busy", "running go test", `rel="prev" href="/agents/agent0"`, `rel="next" href="/agents/agent2"`, "Terminal", "go test ./tides", `name="text"`, "Current tasks", "Check the tables", "Waiting in its inbox", "Which commit has", "Messages", "hook: Bash began", "/sessions/" + start(1)}},
		{"/agents/agent3", []string{"dead", "Ended", "exit status 2", "index out of range", "netsky agent 3", "its keeper wrote", "exited 2"}},
		{"/panes", []string{"agent0", "Planning the next step", "agent2", "Do you want to proceed", "agent3", "index out of range"}},
		{"/panes?agent=agent2", []string{"Do you want to proceed"}},
		{"/tasks", []string{"In progress", "Check the tables", "agent1", "Blocked", "Write the release notes", "Claimed", "Offline tide tables"}},
		{"/tasks/task-offline", []string{"Offline tide tables", "claimed", "Bundle harmonics", "Proof", "212 tests", "/messages/msg-plan-01", "asked for a task", "started", "noted", "off by 4 minutes", "40 min, took 29 min", "/sessions/" + start(1)}},
		{"/tasks/task-notes", []string{"blocked", "None yet", "Waits for", "Rebase release/1.4"}},
		{"/tasks/task-release", []string{"Needed by", "Write the release notes"}},
		{"/messages", []string{"Not delivered", "half a report", "failed", "Waiting", "Which commit", "queued", "Delivered and answered", "Ship tideline", "answered"}},
		{"/messages/web-5d1f0c77a2b94e6180c3d2aa", []string{"you", "agent0", "queued", "delivered", "answered", "Timeline", "Ship tideline 1.4", "claimed", "after 1.2 s", "Make the tide tables", "Tide tables work offline now"}},
		{"/messages/msg-owner-01", []string{"Ship tideline", "Tide tables work", "Reply to agent0", `name="in_reply_to" value="msg-owner-01"`}},
		{"/messages/msg-plan-01", []string{">Tasks<", "/tasks/task-offline"}},
		{"/sessions", []string{"Open", "Ended", "exited 2"}},
		{"/sessions/" + start(3), []string{"agent3", "Last lines", "index out of range", "exited 2"}},
		{"/sessions/" + start(1), []string{"Running", "/agents/agent1"}},
		{"/work", []string{"Worktrees", "/work/agent1", "ahead 2", "<strong>checked", "netsky land agent1", "/work/agent2", "dirty 3", "conflicts with agent1 in tides/south.go", "landed", "failed", "clean", "unknown: git status",
			"Landings", "agent3", "landed on main, 8c1f2ab to 1d94e0c, by merge", "netsky undo 3kx7q", "by squash, unchecked", "undone", "pushed 77aa010 for main", "https://example.org/pull/7",
			"Checks", "make test", "running", "passed", "took 2 min", "failed", "exit status 2", "logs/check-c1.log"}},
		{"/work/agent1", []string{"agent1</a>: changes", "as of", "ahead 2", "netsky/agent1", "main", "netsky land agent1", "2 comments wait", "Send 2 comments to agent1", "1 comment sent", "/messages/web-5d1f0c77a2b94e6180c3d2aa", "4 files", "+18", "−4", "tides/south.go", "recording.mov",
			`<caption class="away">Changes in tides/south.go`, "func (c Constituent) Height", `<span class="sk">if</span>`, "−</td>", "Why was this returned", `<span class="sc">// South of`, "not sent", "on the equator itself", "Remove", `\u202eevil\x1b[31m`,
			"south_test.go", "binary: not shown", "renamed from scripts/get.sh", "now executable", "Comments on files that have not changed", "12: var ports", "not in this change"}},
		{"/work/agent1?at=tides/south.go:41", []string{"Comment on line 41", `name="text"`, `name="at" value="tides/south.go:41"`, "Keep comment", "Cancel"}},
		{"/work/agent1?at=tides/south.go:-41", []string{"Comment on line 41 before", `name="at" value="tides/south.go:-41"`}},
		{"/work/agent1?at=a.go:1", []string{`id="at"`, "Comment on line 1 of <bdi>a.go", `id="changes"`}},
		{"/work/agent1?file=tides/south.go", []string{"show all files", "func (c Constituent)"}},
		{"/work/agent2", []string{"conflicts with agent1", "Its directory was deleted"}},
		{"/cost", []string{"Today", "15.37 &#43; not known", "tokens in 3 requests", "Last 7 days", "43.23", "Budgets", "160 % of agent1&#39;s budget", `value="100"`, "it can&#39;t be checked", "agent</th>", "agent1", "24,800", "not known: no price for gpt-5.5"}},
		{"/cost?by=day&since=7d", []string{`aria-current="true">7 days`, "day</th>"}},
		{"/cost?by=model&agent=agent2", []string{"agent</span> agent2", "gpt-5.5", "not known"}},
		{"/tasks", []string{"Claimed", "proved"}},
		{"/tasks/task-offline", []string{"proved", "The check has passed for what landing its branch would make now.", "212 tests"}},
		{"/agents/agent1", []string{"Tokens today", "16,005,300", "14.41"}},
		{"/updates", []string{"To 4c1d9a7", "done</span>", "Steps of the run u-2", "preflight", "3.0 s", "git fetch origin", "restart", "12 s", "records.db", "netsky self rollback",
			"To 91be0d2", "undone</span>", "operating", ", failed", "no answer from the router", "undo", `<a href="/updates">netsky`}},
		{"/logs", []string{"agent2", "asks: Bash git push", "approvals", "/find?q=" + start(3), "records follow the bus"}},
	} {
		body := w.mustPage(t, tt.path)
		at := 0
		for _, want := range tt.want {
			i := strings.Index(body[at:], want)
			if i < 0 {
				t.Errorf("%s: no %q, or not in this order", tt.path, want)
				continue
			}
			at += i
		}
	}
	for path, want := range map[string]int{
		"/agents/agent9": 404, "/agents/owner": 404, "/agents/x": 404, "/agents/agent01": 404, "/tasks/x": 404, "/messages/x": 404, "/sessions/x": 404,
		"/find?q=nothing-has-this&cursor=x": 400, "/find?q=a+b+c+d+e+f+g+h+i": 400, "/find?colour=red": 400, "/tasks?colour=red": 400, "/updates?state=x": 400, "/tasks?state=happy": 400, "/messages?from=me": 400, "/logs?cursor=x": 400,
		"/work/agent9": 404, "/work/owner": 404, "/work/x": 404, "/work/agent1?at=x": 400, "/work/agent1?at=a.go:0": 400, "/work/agent1?at=:3": 400, "/work?x=1": 400,
		"/cost?by=hour": 400, "/cost?since=yesterday": 400, "/cost?agent=x": 400,
		"/panes?agent=x": 400, "/agents/agent1?history=x": 400, "/?x=1": 400, "/static/nothing": 404,
	} {
		if a := w.page(t, path); a.status != want {
			t.Errorf("%s: %d, want %d", path, a.status, want)
		} else if strings.HasPrefix(a.body, "<!doctype html><html lang=en>") {
			continue // of the guard or the routes
		} else {
			checkPage(t, path, a.body)
		}
	}
}
