package claude_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"netsky/agent"
	"netsky/claude"
	"netsky/home"
	"netsky/internal/proc"
	"netsky/internal/testworld"
)

// A still is a session made of files: its process is the test's own, and its
// pane shows what it is told to.
type still struct {
	testing.TB
	*claude.Session
	top     string
	screen  string
	screens []string // shown first, one look each
	mix     string   // what somebody types before a paste
	keys    []string // that were pressed
	typed   func(keys ...string)
}

func mustStill(tb testing.TB) *still {
	tb.Helper()
	h := testworld.Home(tb)
	top := filepath.Dir(h.Root())
	s := &still{TB: tb, top: top, screen: emptyBox}
	s.Session = &claude.Session{Home: h, Agent: "agent1", Start: "now", PID: os.Getpid(), ConfigDir: filepath.Join(top, "config"), Pane: s}
	tb.Cleanup(func() { s.Close() })
	return s
}

func (s *still) Screen(context.Context) (string, error) {
	if len(s.screens) > 0 {
		s.screen, s.screens = s.screens[0], s.screens[1:]
	}
	return s.screen, nil
}

func (s *still) Keys(_ context.Context, keys ...string) error {
	s.keys = append(s.keys, keys...)
	if s.typed != nil {
		s.typed(keys...)
	}
	return nil
}

func (s *still) Paste(_ context.Context, text string) error {
	s.keys = append(s.keys, text)
	s.screen = strings.Replace(emptyBox, "❯\u00a0", "❯\u00a0"+s.mix+text, 1)
	return nil
}

// register writes the process's entry in the registry.
func (s *still) register(fields string) {
	s.Helper()
	self := proc.Self()
	s.write(fmt.Sprintf(`{"pid":%d,"procStart":"%d","sessionId":"s-1","cwd":"/w"%s}`, self.PID, self.Start, fields))
}

func (s *still) write(entry string) {
	s.Helper()
	dir := filepath.Join(s.ConfigDir, "sessions")
	testworld.Must(s, os.MkdirAll(dir, 0o700))
	testworld.Must(s, os.WriteFile(filepath.Join(dir, strconv.Itoa(s.PID)+".json"), []byte(entry), 0o600))
}

func (s *still) happened(list ...agent.Event) {
	s.Helper()
	for _, e := range list {
		if e.Start == "" {
			e.Start = "now"
		}
		testworld.Must(s, home.Events(s.Home).Append("agent1", e))
	}
}

const (
	rule     = "────────────────────────────────────────"
	emptyBox = "● hello\n\n" + rule + "\n❯\u00a0\x1b[7m \x1b[0m\n" + rule + "\n  ⏸ manual mode on\n"
	dialog   = "● hello\n\n" + rule + "\n Bash command\n\n   touch x\n\n Do you want to proceed?\n ❯ 1. Yes\n   2. No\n\n Esc to cancel · Tab to amend\n"
)

func TestFindSession(t *testing.T) {
	t.Parallel()
	s := mustStill(t)
	find := func() (claude.Registered, error) { return claude.FindSession(s.ConfigDir, s.PID) }
	testworld.ErrorIs(t, testworld.Err(find()), fs.ErrNotExist, "without an entry")
	s.register(`,"status":"busy","waitingFor":"x","statusUpdatedAt":7,"messagingSocketPath":"/s","new":[1]`)
	r, err := find()
	if err != nil || r.Status != "busy" || r.Session != "s-1" || r.Dir != "/w" || r.Socket != "/s" || r.StatusMS != 7 {
		t.Errorf("FindSession = %+v, %v", r, err)
	}
	for name, entry := range map[string]string{
		"another process": fmt.Sprintf(`{"pid":%d,"procStart":"1","status":"idle"}`, s.PID),
		"another number":  `{"pid":1,"status":"idle"}`,
	} {
		s.write(entry)
		if r, err := find(); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: FindSession = %+v, %v, want %v", name, r, err, fs.ErrNotExist)
		}
	}
	for name, entry := range map[string]string{"half written": `{"pid":`, "empty": "", "too large": strings.Repeat(" ", 1<<20)} {
		s.write(entry)
		if r, err := find(); err == nil || errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: FindSession = %+v, %v, want another error", name, r, err)
		}
	}
	testworld.ErrorIs(t, testworld.Err(claude.FindSession(s.ConfigDir, 1<<30)), fs.ErrNotExist, "of no process")
}

func TestSessionState(t *testing.T) {
	t.Parallel()
	now := time.Now()
	ago := func(d time.Duration) int64 { return now.Add(-d).UnixMilli() }
	const registry, hook, pane = "claude's session registry", "hook", "pane"
	failed := func(ms int64, reason agent.Reason) []agent.Event {
		return []agent.Event{{MS: ms, Event: agent.EventStopFailed, Error: "x", Fault: &agent.Fault{Reason: reason, Text: "some words"}}}
	}
	full := agent.Fault{Reason: agent.ContextFull, Text: "some words"}
	retry := func(reason agent.Reason, text string) agent.Fault { return agent.Fault{Reason: reason, Text: text} }
	limit := agent.Fault{Reason: agent.UsageLimit, Text: "until then", UntilMS: now.Add(time.Hour).UnixMilli()}
	began := agent.Event{MS: ago(time.Hour), Event: agent.EventSessionStart}
	for _, c := range []struct {
		name   string
		status string // "-" is no entry
		events []agent.Event
		screen string
		want   agent.Report
	}{
		{"idle", `,"status":"idle"`, nil, emptyBox, agent.Report{State: agent.Idle, Evidence: registry}},
		{"shell", `,"status":"shell"`, nil, emptyBox, agent.Report{State: agent.Idle, Evidence: registry, Detail: "a command runs in the background"}},
		{"the hook is ahead", `,"status":"idle","statusUpdatedAt":1`, []agent.Event{{Event: agent.EventPrompt}}, emptyBox, agent.Report{State: agent.Busy, Evidence: hook}},
		{"a prompt that was blocked", `,"status":"idle","statusUpdatedAt":1`, []agent.Event{{MS: ago(time.Minute), Event: agent.EventPrompt}}, emptyBox, agent.Report{State: agent.Idle, Evidence: registry}},
		{"busy", `,"status":"busy"`, nil, emptyBox, agent.Report{State: agent.Busy, Evidence: registry}},
		{"a tool", `,"status":"busy"`, []agent.Event{
			{Event: agent.EventTool, ID: "1", Tool: "Read", Text: "/a"}, {Event: agent.EventTool, ID: "2", Tool: "Bash", Text: "go test ./…"},
			{Event: agent.EventToolDone, ID: "1", Tool: "Read", Text: "/a"},
		}, emptyBox, agent.Report{State: agent.Busy, Evidence: registry + ", " + hook, Detail: "Bash: go test ./…"}},
		{"another start's tool", `,"status":"busy"`, []agent.Event{{Start: "before", Event: agent.EventTool, Tool: "Bash"}}, emptyBox, agent.Report{State: agent.Busy, Evidence: registry}},
		{"an interrupted turn's tool", `,"status":"busy"`, []agent.Event{{Event: agent.EventTool, Tool: "Bash"}, {Event: agent.EventPrompt}}, emptyBox, agent.Report{State: agent.Busy, Evidence: registry}},
		{"a permission", `,"status":"waiting","waitingFor":"permission prompt"`, []agent.Event{{Event: agent.EventPermission, Tool: "Bash", Text: "rm x", ID: "abcde"}}, dialog,
			agent.Report{State: agent.Waiting, Evidence: registry + ", " + hook, Detail: "permission: Bash: rm x", Dialog: "permission"}},
		{"a permission without a hook", `,"status":"waiting","waitingFor":"permission prompt"`, nil, dialog,
			agent.Report{State: agent.Waiting, Evidence: registry + ", " + pane, Detail: "permission: …", Dialog: "permission"}},
		{"something that nothing tells", `,"status":"waiting","waitingFor":"goal proposal"`, nil, emptyBox, agent.Report{State: agent.Waiting, Evidence: registry, Detail: "goal proposal"}},
		{"not logged in, before any turn", `,"status":"idle"`, []agent.Event{began}, "Not logged in · run /login\n" + emptyBox[len("● hello\n\n"):],
			agent.Report{State: agent.Blocked, Evidence: pane, Detail: "login: not logged in", Dialog: "login", Fault: retry(agent.Login, "not logged in")}},
		{"not logged in, which a turn has shown", `,"status":"idle"`, failed(ago(time.Minute), agent.Login), "Not logged in · run /login\n" + emptyBox[len("● hello\n\n"):],
			agent.Report{State: agent.Idle, Evidence: registry}},
		{"not logged in", `,"status":"idle"`, failed(0, agent.Login), emptyBox, agent.Report{State: agent.Idle, Evidence: registry}},
		{"a limit", `,"status":"idle"`, failed(0, agent.UsageLimit), emptyBox, agent.Report{State: agent.Idle, Evidence: registry}},
		{"the service is down", `,"status":"idle"`, failed(0, agent.Overloaded), emptyBox, agent.Report{State: agent.Idle, Evidence: registry}},
		{"context full", `,"status":"idle"`, failed(0, agent.ContextFull), emptyBox,
			agent.Report{State: agent.Blocked, Evidence: hook, Detail: "context full: some words", Fault: full}},
		{"long context full", `,"status":"idle"`, failed(ago(11*time.Minute), agent.ContextFull), emptyBox, agent.Report{State: agent.Idle, Evidence: registry}},
		{"compacted", `,"status":"idle"`, append(failed(0, agent.ContextFull), agent.Event{Event: agent.EventSessionStart, Text: "compact"}), emptyBox, agent.Report{State: agent.Idle, Evidence: registry}},
		{"a turn that was short enough", `,"status":"idle"`, append(failed(0, agent.ContextFull), agent.Event{Event: agent.EventStop}), emptyBox, agent.Report{State: agent.Idle, Evidence: registry}},
		{"a request of its own", `,"status":"idle"`, []agent.Event{{Event: agent.EventStopFailed, Error: "invalid_request"}}, emptyBox, agent.Report{State: agent.Idle, Evidence: registry}},
		{"tries again", `,"status":"busy","statusUpdatedAt":1`, nil, "✻ 529 Overloaded · retrying in 4s · attempt 4/10\n  ⎿  If it persists, check status.claude.com.\n\n" + emptyBox,
			agent.Report{State: agent.Busy, Evidence: registry + ", " + pane, Detail: "retrying, attempt 4 of 10: vendor overloaded", Fault: retry(agent.Overloaded, "529 Overloaded"), Attempt: 4, Of: 10}},
		{"hears nothing", `,"status":"busy","statusUpdatedAt":1`, nil, "✻ Waiting for API response · will retry in 4m 15s · check your network\n\n" + emptyBox,
			agent.Report{State: agent.Busy, Evidence: registry + ", " + pane, Detail: "retrying: vendor not reachable", Fault: retry(agent.Network, "Waiting for API response")}},
		{"waits for a limit", `,"status":"busy","statusUpdatedAt":1`, nil, "✻ 5-hour limit reached · retrying in 4s (5:16pm) · attempt 4/10\n\n" + emptyBox,
			agent.Report{State: agent.Blocked, Evidence: registry + ", " + pane, Detail: "retrying, attempt 4 of 10: usage limit", Fault: retry(agent.UsageLimit, "5-hour limit reached"), Attempt: 4, Of: 10}},
		{"tries again, says the model", `,"status":"busy","statusUpdatedAt":1`, nil, "  ✻ 5-hour limit reached · retrying in 4s\n\n" + emptyBox, agent.Report{State: agent.Busy, Evidence: registry}},
		{"a limit's menu before the registry knows", `,"status":"busy","statusUpdatedAt":1`, []agent.Event{{MS: ago(time.Second), Event: agent.EventStopFailed, Error: "x", Fault: &limit}}, limitMenu,
			agent.Report{State: agent.Blocked, Evidence: pane, Detail: "usage limit: What do you want to do?", Dialog: "usage limit", Fault: limit}},
		{"starting", "-", nil, "", agent.Report{State: agent.Starting, Evidence: pane}},
		{"its first moment", "", nil, emptyBox, agent.Report{State: agent.Starting, Evidence: pane}},
		{"a dialog at the start", "-", nil, dialog, agent.Report{State: agent.Waiting, Evidence: pane, Detail: "permission: …", Dialog: "permission"}},
		{"an old release, idle", "-", []agent.Event{began}, emptyBox, agent.Report{State: agent.Idle, Evidence: pane}},
		{"an old release, busy", "-", []agent.Event{began}, strings.Replace(emptyBox, "mode on", "mode on · esc to interrupt", 1), agent.Report{State: agent.Busy, Evidence: pane}},
		{"a new word", `,"status":"dreaming"`, []agent.Event{began}, emptyBox, agent.Report{State: agent.Idle, Evidence: pane, Detail: "status dreaming"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := mustStill(t)
			s.screen = c.screen
			if c.status != "-" {
				if !strings.Contains(c.status, "statusUpdatedAt") {
					c.status += fmt.Sprintf(`,"statusUpdatedAt":%d`, time.Now().Add(time.Second).UnixMilli())
				}
				s.register(c.status)
			}
			s.happened(c.events...)
			got := s.State(t.Context())
			if words, ok := strings.CutSuffix(c.want.Detail, "…"); ok && words == "permission: " && strings.HasPrefix(got.Detail, words) {
				c.want.Detail = got.Detail // the screen's words are another test's
			}
			testworld.Equal(t, got, c.want, "State")
		})
	}
}

// A login since the session began lets a message through, although the screen still says
// that there is none.
func TestStateLoggedIn(t *testing.T) {
	t.Parallel()
	s := mustStill(t)
	s.screen = "Not logged in · run /login\n" + emptyBox[len("● hello\n\n"):]
	s.register(`,"status":"idle"`)
	s.happened(agent.Event{MS: time.Now().Add(-time.Minute).UnixMilli(), Event: agent.EventSessionStart})
	testworld.Must(t, s.Home.SaveLaunch(agent.Launch{Agent: "agent1", Start: "now", Env: []string{"CLAUDE_CONFIG_DIR=" + s.ConfigDir}}))
	if got := s.State(t.Context()); got.State != agent.Blocked || got.Fault.Reason != agent.Login {
		t.Errorf("State = %+v, want blocked by the login", got)
	}
	testworld.Must(t, os.WriteFile(filepath.Join(s.ConfigDir, ".credentials.json"), []byte("{}"), 0o600))
	testworld.Equal(t, s.State(t.Context()).State, agent.Idle, "after a login State")
}

// A release that records its retries is believed before its screen.
func TestStateRecordedRetry(t *testing.T) {
	t.Parallel()
	s := mustStill(t)
	s.register(`,"status":"busy","statusUpdatedAt":1`)
	s.screen = "✻ API error · retrying in 4s · attempt 4/10\n\n" + emptyBox
	file := filepath.Join(s.top, "c.jsonl")
	s.happened(agent.Event{MS: 1, Event: agent.EventPrompt, Transcript: file})
	for _, tt := range []struct {
		lines, evidence, want string
	}{
		{prompt("t-1", "m-1"), "pane", "retrying, attempt 4 of 10: vendor overloaded"},
		{prompt("t-1", "m-1") + "\n" + `{"type":"system","subtype":"api_error","error":{"status":429,"message":"x"},"retryAttempt":5,"maxRetries":10}` + "\n" + other,
			"conversation", "retrying, attempt 5 of 10: rate limit"},
		{prompt("t-1", "m-1") + "\n" + `{"type":"system","subtype":"api_error","error":{"message":"ECONNREFUSED"},"retryAttempt":2,"maxRetries":10}`,
			"conversation", "retrying, attempt 2 of 10: vendor not reachable"},
		{`{"type":"system","subtype":"api_error","error":{"status":429},"retryAttempt":5,"maxRetries":10}` + "\n" + prompt("t-2", "m-1"),
			"pane", "retrying, attempt 4 of 10: vendor overloaded"},
	} {
		testworld.Must(t, os.WriteFile(file, []byte(tt.lines+"\n"), 0o600))
		if got := s.State(t.Context()); got.Detail != tt.want || !strings.HasSuffix(got.Evidence, ", "+tt.evidence) {
			t.Errorf("%s\nState = %+v, want %q by %s", tt.lines, got, tt.want, tt.evidence)
		}
	}
}

const limitMenu = "  ⎿  You've hit your 5-hour limit · resets 1:44am (UTC)\n\n▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔\n  What do you want to do?\n\n" +
	"  ❯ 1. Stop and wait for limit to reset\n    2. Wait here, then continue automatically at 1:44am\n    3. Upgrade your plan\n\n  Enter to confirm · Esc to cancel\n"

// The dialog that a usage limit opens is closed, once, and nothing else is.
func TestLimitDialogIsClosed(t *testing.T) {
	t.Parallel()
	now := time.Now().UnixMilli()
	waiting := func(ms int64) string {
		return fmt.Sprintf(`,"status":"waiting","waitingFor":"dialog open","statusUpdatedAt":%d`, ms)
	}
	limit := agent.Fault{Reason: agent.UsageLimit}
	for _, tt := range []struct {
		name, status, screen string
		fault                agent.Fault
		keys                 string
	}{
		{"of the failed turn", waiting(now), limitMenu, limit, "[Escape]"},
		{"opened by a person", waiting(now + 60_000), limitMenu, limit, "[]"},
		{"after another failure", waiting(now), limitMenu, agent.Fault{Reason: agent.RateLimit}, "[]"},
		{"another dialog", waiting(now), dialog, limit, "[]"},
		{"gone already", fmt.Sprintf(`,"status":"idle","statusUpdatedAt":%d`, now), limitMenu, limit, "[]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := mustStill(t)
			s.screen = tt.screen
			s.register(tt.status)
			s.happened(agent.Event{MS: now, Event: agent.EventStopFailed, Fault: &tt.fault})
			c := s.Courier()
			first := c.State(t.Context())
			c.State(t.Context())
			testworld.Equal(t, fmt.Sprint(s.keys), tt.keys, "keys")
			if tt.name == "of the failed turn" && (first.State != agent.Blocked || first.Fault.Reason != agent.UsageLimit || first.Takes) {
				t.Errorf("State = %+v, want blocked by the limit", first)
			}
		})
	}
}

// A socket that is not Claude Code's own, or not there, is not talked to.
func TestPushRefused(t *testing.T) {
	t.Parallel()
	s := mustStill(t)
	listen := func(name string) string {
		l := testworld.Got(net.Listen("unix", filepath.Join(s.top, name)))(t)
		t.Cleanup(func() { l.Close() })
		return l.Addr().String()
	}
	file := filepath.Join(s.top, "file")
	testworld.Must(t, os.WriteFile(file, nil, 0o600))
	gone := filepath.Join(s.top, "gone")
	l := testworld.Got(net.ListenUnix("unix", &net.UnixAddr{Name: gone}))(t)
	l.SetUnlinkOnClose(false)
	l.Close()
	open := filepath.Join(s.top, "open")
	testworld.Must(t, os.Mkdir(open, 0o700))
	inOpen := listen("open/s")
	testworld.Must(t, os.Chmod(open, 0o777))
	link := filepath.Join(s.top, "link")
	testworld.Must(t, os.Symlink(listen("s"), link))
	for name, socket := range map[string]string{
		"none": "", "not there": s.top + "/none", "a file": file, "nobody listens": gone, "a link": link, "a directory of everybody's": inOpen,
	} {
		s.register(fmt.Sprintf(`,"status":"idle","messagingSocketPath":%q`, socket))
		err := s.Push(t.Context(), "hello")
		var r interface{ Refused() bool }
		if !errors.As(err, &r) || !r.Refused() {
			t.Errorf("%s: Push = %v, want it refused", name, err)
		}
	}
}

func TestPushWire(t *testing.T) {
	t.Parallel()
	s := mustStill(t)
	l := testworld.Got(net.Listen("unix", filepath.Join(s.top, "s")))(t)
	defer l.Close()
	s.register(fmt.Sprintf(`,"status":"idle","messagingSocketPath":%q`, l.Addr().String()))
	text := strings.Repeat("<&>\n\"", 40<<10)
	lines := make(chan string, 1)
	go func() {
		conn, err := l.Accept()
		if err != nil {
			lines <- err.Error()
			return
		}
		defer conn.Close()
		line, _ := bufio.NewReader(conn).ReadString('\n')
		lines <- line
	}()
	testworld.Must(t, s.Push(t.Context(), text), "Push")
	var got struct {
		Type    string
		Message struct{ Role, Content string }
	}
	line := <-lines
	if err := json.Unmarshal([]byte(line), &got); err != nil || got.Type != "user" || got.Message.Role != "user" || got.Message.Content != text {
		t.Errorf("the line of %d bytes is not the message: %v", len(line), err)
	}
}

// A session that takes nothing is not waited for beyond the context.
func TestPushHangs(t *testing.T) {
	t.Parallel()
	s := mustStill(t)
	l := testworld.Got(net.Listen("unix", filepath.Join(s.top, "s")))(t)
	defer l.Close()
	s.register(fmt.Sprintf(`,"status":"idle","messagingSocketPath":%q`, l.Addr().String()))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	testworld.ErrorIs(t, s.Push(ctx, strings.Repeat("x", 8<<20)), context.DeadlineExceeded, "Push")
}

func TestInterruptRefused(t *testing.T) {
	t.Parallel()
	s := mustStill(t)
	for _, status := range []string{`,"status":"idle"`, `,"status":"shell"`, `,"status":"waiting","waitingFor":"dialog open"`, ``} {
		s.register(status)
		if err := s.Interrupt(t.Context()); err == nil || len(s.keys) > 0 {
			t.Errorf("Interrupt of a session %s = %v, keys %v, want none pressed", status, err, s.keys)
		}
	}
	s.register(`,"status":"busy"`)
	s.typed = func(...string) { s.register(`,"status":"idle"`) }
	if err := s.Interrupt(t.Context()); err != nil || len(s.keys) != 1 || s.keys[0] != "Escape" {
		t.Errorf("Interrupt = %v, keys %v, want one Escape", err, s.keys)
	}
}

// TestInterruptKeysOf presses the keys that the person's own settings leave for ending a
// turn, the next only if the one before had no effect.
func TestInterruptKeysOf(t *testing.T) {
	t.Parallel()
	insert := strings.Replace(emptyBox, "  ⏸", "  -- INSERT -- ⏸", 1)
	chat := func(bindings string) string {
		return `{"bindings": [{"context": "Global", "bindings": {"escape": null}}, {"context": "Chat", "bindings": {` + bindings + `}}]}`
	}
	for _, tt := range []struct{ name, screen, file, keys string }{
		{"plain", emptyBox, "", "Escape"},
		{"another key too", emptyBox, chat(`"ctrl+q": "chat:cancel"`), "Escape"},
		{"another key", emptyBox, chat(`"escape": null, "ctrl+q": "chat:cancel"`), "C-q"},
		{"a chord", emptyBox, chat(`"esc": "chat:undo", "Ctrl+X alt+f5": "chat:cancel"`), "C-x M-F5"},
		{"no key", emptyBox, chat(`"escape": null, "hyper+q": "chat:cancel"`), "C-c"},
		{"no file", emptyBox, `{"bindings": 7}`, "Escape"},
		{"vim", insert, "", "C-c"},
		{"vim without Ctrl+C", insert, "", "C-c Escape Escape"},
		{"vim, another key", insert, chat(`"escape": null, "f2": "chat:cancel"`), "C-c F2"},
		{"vim in the text", strings.Replace(emptyBox, "hello", "-- INSERT --", 1), "", "Escape"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := mustStill(t)
				s.register(`,"status":"busy"`)
				s.screen = tt.screen
				if tt.file != "" {
					testworld.Must(t, os.WriteFile(filepath.Join(s.ConfigDir, "keybindings.json"), []byte(tt.file), 0o600))
				}
				s.typed = func(...string) {
					if len(s.keys) >= len(strings.Fields(tt.keys)) {
						s.register(`,"status":"idle"`)
					}
				}
				if err := s.Interrupt(t.Context()); err != nil || strings.Join(s.keys, " ") != tt.keys {
					t.Errorf("Interrupt = %v, keys %v, want %s", err, s.keys, tt.keys)
				}
			})
		})
	}
}

func TestPointRefused(t *testing.T) {
	t.Parallel()
	box := func(inside string) string { return "● x\n\n" + rule + "\n" + inside + "\n" + rule + "\n  footer\n" }
	for name, c := range map[string]struct{ status, screen, why string }{
		"busy":          {`,"status":"busy"`, emptyBox, "not idle: busy"},
		"waiting":       {`,"status":"waiting","waitingFor":"dialog open"`, emptyBox, "not idle: waiting, dialog open"},
		"no status":     {``, emptyBox, "not idle"},
		"dialog":        {`,"status":"idle"`, dialog, "a dialog is open: permission"},
		"blank screen":  {`,"status":"idle"`, "\n\n", "no composer"},
		"shell":         {`,"status":"idle"`, box("!\u00a0ls"), "no composer"},
		"draft":         {`,"status":"idle"`, box("❯\u00a0hello\x1b[7m \x1b[0m"), "a draft"},
		"cursor on it":  {`,"status":"idle"`, box("❯\u00a0\x1b[7mh\x1b[0mello"), "a draft"},
		"one letter":    {`,"status":"idle"`, box("❯\u00a0\x1b[7mh\x1b[0m"), "a draft"},
		"blanks after":  {`,"status":"idle"`, box("❯\u00a0\x1b[7mh\x1b[0m   "), "a draft"},
		"a blank":       {`,"status":"idle"`, box("❯\u00a0 \x1b[7m \x1b[0m"), "a draft"},
		"empty lines":   {`,"status":"idle"`, box("❯\u00a0\n  \x1b[7m \x1b[0m"), "a draft"},
		"half a ghost":  {`,"status":"idle"`, box("❯\u00a0/cl\x1b[7me\x1b[0;2mar\x1b[0m"), "a draft"},
		"coloured text": {`,"status":"idle"`, box("❯\u00a0\x1b[38;5;2mhello\x1b[0m\x1b[7m \x1b[0m"), "a draft"},
		"its beginning": {`,"status":"idle"`, box("❯\u00a02 messages wait for you\x1b[7m \x1b[0m"), "a draft"},
	} {
		s := mustStill(t)
		s.register(c.status)
		s.screen = c.screen
		if err := s.Point(t.Context(), 2); err == nil || !strings.Contains(err.Error(), c.why) || len(s.keys) > 0 {
			t.Errorf("%s: Point = %v, keys %v, want refused: %s", name, err, s.keys, c.why)
		}
	}
}

// A line of ours that an Escape has brought back is submitted, not typed again.
func TestPointResumes(t *testing.T) {
	t.Parallel()
	s := mustStill(t)
	s.register(`,"status":"idle"`)
	const text = "3 messages wait for you: call the inbox tool"
	s.screen = strings.Replace(emptyBox, "❯\u00a0", "❯\u00a03 messages wait for you: call\n  the inbox tool", 1)
	s.typed = func(...string) { s.happened(agent.Event{Event: agent.EventPrompt, Text: text}) }
	if err := s.Point(t.Context(), 5); err != nil || len(s.keys) != 1 || s.keys[0] != "Enter" {
		t.Errorf("Point = %v, keys %v, want one Enter", err, s.keys)
	}
}

// What Claude suggests into an empty composer is no draft.
func TestPointSuggestion(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for name, suggestion := range map[string]string{
			"none":                 "\x1b[7m \x1b[0m",
			"nothing at all":       "",
			"faint":                "\x1b[7m\x1b[39mP\x1b[0;2m\x1b[39m\x1b[49mress up to edit queued messages\x1b[0m",
			"faint, no cursor":     "\x1b[2mResend your message to try again\x1b[22m",
			"faint by other words": "\x1b[7mR\x1b[27;2mesend\x1b[22m",
			"curly underline":      "\x1b[7mP\x1b[0;2m\x1b[4:3mress up to \x1b[58:2::255:0:0medit queued messages\x1b[0m",
		} {
			s := mustStill(t)
			s.register(`,"status":"idle"`)
			s.screen = "● x\n\n" + rule + "\n❯\u00a0" + suggestion + "\n" + rule + "\n  footer\n"
			const text = "1 message waits for you: call the inbox tool"
			s.typed = func(...string) { s.happened(agent.Event{Event: agent.EventPrompt, Text: text}) }
			if err := s.Point(t.Context(), 1); err != nil || len(s.keys) != 2 || s.keys[0] != text || s.keys[1] != "Enter" {
				t.Errorf("%s: Point = %v, keys %q, want the line and Enter", name, err, s.keys)
			}
		}
	})
}

// Who types while we look is not disturbed.
func TestPointWhileTyping(t *testing.T) {
	t.Parallel()
	s := mustStill(t)
	s.register(`,"status":"idle"`)
	s.screens = []string{emptyBox, strings.Replace(emptyBox, "❯\u00a0", "❯\u00a0h", 1)}
	if err := s.Point(t.Context(), 1); err == nil || len(s.keys) > 0 {
		t.Errorf("Point = %v, keys %v, want refused", err, s.keys)
	}
}

// What somebody typed between our look and our paste is not sent off.
func TestPointMixed(t *testing.T) {
	t.Parallel()
	s := mustStill(t)
	s.register(`,"status":"idle"`)
	s.mix = "rm -rf "
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := s.Point(ctx, 1); err == nil || len(s.keys) != 1 {
		t.Errorf("Point = %v, keys %q, want no Enter", err, s.keys)
	}
}

// A lost Enter is pressed once more, and no third time.
func TestPointEnterLost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := mustStill(t)
		s.register(`,"status":"idle"`)
		if err := s.Point(t.Context(), 1); err == nil || len(s.keys) != 3 {
			t.Errorf("Point = %v, keys %q, want two Enters and an error", err, s.keys)
		}
	})
}

func TestPermissionWait(t *testing.T) {
	t.Parallel()
	never := func() (bool, bool) { return false, false }
	for _, c := range []struct {
		name   string
		status string
		after  []agent.Event
		answer func() (bool, bool)
		want   claude.Outcome
	}{
		{"allowed", `,"status":"waiting"`, nil, func() (bool, bool) { return true, true }, claude.Allowed},
		{"denied", `,"status":"waiting"`, nil, func() (bool, bool) { return false, true }, claude.Denied},
		{"the tool ran", `,"status":"waiting"`, []agent.Event{{Event: agent.EventToolDone, Session: "s-1", Tool: "Bash", Text: "rm x", Input: "rm-x"}}, never, claude.AllowedAtPane},
		{"the turn stopped", `,"status":"waiting"`, []agent.Event{{Event: agent.EventStop, Session: "s-1"}}, never, claude.AtPane},
		{"the session ended", `,"status":"waiting"`, []agent.Event{{Event: agent.EventSessionEnd, Session: "s-1"}}, never, claude.AtPane},
		{"another tool ran", `,"status":"waiting"`, []agent.Event{{Event: agent.EventToolDone, Session: "s-1", Tool: "Bash", Text: "rm x", Input: "rm-y"}}, never, claude.Unanswered},
		{"another session's tool", `,"status":"waiting"`, []agent.Event{{Event: agent.EventToolDone, Session: "s-2", Tool: "Bash", Text: "rm x", Input: "rm-x"}}, never, claude.Unanswered},
		{"another start's stop", `,"status":"waiting"`, []agent.Event{{Event: agent.EventStop, Session: "s-1", Start: "before"}}, never, claude.Unanswered},
		{"nobody", `,"status":"waiting"`, nil, never, claude.Unanswered},
		{"the dialog is not up yet", `,"status":"busy"`, nil, never, claude.Unanswered},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := mustStill(t)
				s.register(c.status)
				s.happened(agent.Event{Event: agent.EventStop, Session: "s-1"}) // before the question
				w := claude.PermissionWait{Home: s.Home, Agent: "agent1", Start: "now", ConfigDir: s.ConfigDir, PID: s.PID, Session: "s-1", Call: "rm-x"}
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
				if c.want != claude.Unanswered {
					cancel()
					ctx, cancel = context.WithTimeout(t.Context(), testworld.Patience)
				}
				defer cancel()
				looks := 0
				got, _ := w.Wait(ctx, func() (bool, bool) {
					if looks++; looks == 1 {
						s.happened(c.after...)
					}
					return c.answer()
				})
				testworld.Equal(t, got, c.want, "Wait")
			})
		})
	}
}

// A session that waited and goes on has its answer.
func TestPermissionWaitLeaves(t *testing.T) {
	t.Parallel()
	s := mustStill(t)
	s.register(`,"status":"waiting"`)
	w := claude.PermissionWait{Home: s.Home, Agent: "agent1", Start: "now", ConfigDir: s.ConfigDir, PID: s.PID, Session: "s-1", Call: "rm-x"}
	looks := 0
	got, _ := w.Wait(t.Context(), func() (bool, bool) {
		switch looks++; looks {
		case 1, 3: // between two dialogs it is busy for a moment
			s.register(`,"status":"busy"`)
		case 2:
			s.register(`,"status":"waiting"`)
		}
		return false, false
	})
	if got != claude.AtPane || looks < 5 {
		t.Errorf("Wait = %v after %d looks, want it to last beyond the moment between two dialogs", got, looks)
	}
}

// A hook may have been killed before it told which conversation this is.
func TestHoldsWithoutHooks(t *testing.T) {
	t.Parallel()
	s := mustStill(t)
	file := filepath.Join(s.top, "conversation.jsonl")
	line := `{"type":"user","message":{"content":"<channel source=\"agent\" id=\"m-1\">\nhello\n</channel>"}}` + "\n"
	testworld.Must(t, os.WriteFile(file, []byte(line), 0o600))
	state := claude.State{Session: "0b9a4b0e-6d0a-4b53-9d3e-5d8f1f6f3a11", Transcript: file, Start: s.Start, Used: true}
	for _, start := range []string{s.Start, "before"} {
		state.Start = start
		testworld.Must(t, claude.SaveState(s.Home, s.Agent, state))
		if got, want := s.Holds("m-1"), start == s.Start; got != want {
			t.Errorf("of the start %q: Holds = %v, want %v", start, got, want)
		}
	}
}

// TestInterruptEarly: a turn that is ended before its prompt's hook has run would begin
// once more.
func TestInterruptEarly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := mustStill(t)
		now := time.Now().UnixMilli()
		s.register(fmt.Sprintf(`,"status":"busy","statusUpdatedAt":%d`, now))
		s.happened(agent.Event{Event: agent.EventPrompt, MS: now - 1000, Text: "before"})
		var noted atomic.Bool
		s.typed = func(...string) {
			switch {
			case !noted.Load():
				t.Error("an Escape before the turn had begun")
			case len(s.keys) == 1:
				s.happened(agent.Event{Event: agent.EventPrompt, MS: now + 20, Text: "this"}) // all the same
			default:
				s.register(`,"status":"idle"`)
			}
		}
		done := make(chan struct{})
		time.AfterFunc(200*time.Millisecond, func() {
			defer close(done)
			noted.Store(true)
			s.happened(agent.Event{Event: agent.EventPrompt, MS: now + 10, Text: "this"})
		})
		defer func() { <-done }()
		if err := s.Interrupt(t.Context()); err != nil || len(s.keys) != 2 {
			t.Errorf("Interrupt = %v, keys %v, want two Escapes", err, s.keys)
		}
	})
}

// TestInterruptMeanwhile: the turn ends, or waits for an answer, while an interrupt waits
// until it has begun or ended. An Escape would mean something else then.
func TestInterruptMeanwhile(t *testing.T) {
	t.Parallel()
	const asks = `,"status":"waiting","waitingFor":"dialog open"`
	for _, tt := range []struct {
		name string
		from int64        // when its status became busy
		does func(*still) // while it is being waited for
		then func(*still) // at an Escape
		keys int
		want string
	}{
		{"a dialog opens", 0, func(s *still) { s.register(asks) }, nil, 0, "waiting for an answer"},
		{"the next turn runs", 0, func(s *still) {
			now := time.Now().UnixMilli()
			s.happened(agent.Event{Event: agent.EventStop, MS: now}, agent.Event{Event: agent.EventPrompt, MS: now + 1, Text: "next"})
			s.register(fmt.Sprintf(`,"status":"busy","statusUpdatedAt":%d`, now))
		}, nil, 0, ""},
		{"the clock is set back", time.Hour.Milliseconds(), nil, func(s *still) { s.register(`,"status":"idle"`) }, 1, ""},
		{"it begins again, and a dialog opens", -time.Hour.Milliseconds(), nil, func(s *still) {
			s.happened(agent.Event{Event: agent.EventPrompt, MS: time.Now().UnixMilli(), Text: "this"})
			s.register(asks)
		}, 1, "waiting for an answer"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := mustStill(t)
				s.happened(agent.Event{Event: agent.EventPrompt, MS: 1, Text: "this"})
				s.register(fmt.Sprintf(`,"status":"busy","statusUpdatedAt":%d`, time.Now().UnixMilli()+tt.from))
				if tt.then != nil {
					s.typed = func(...string) { tt.then(s) }
				} else {
					done := make(chan struct{})
					time.AfterFunc(200*time.Millisecond, func() { defer close(done); tt.does(s) })
					defer func() { <-done }() // it writes into the home, which goes with the test
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				err := s.Interrupt(ctx)
				if len(s.keys) != tt.keys || tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
					t.Errorf("Interrupt = %v, keys %v, want %q and %d keys", err, s.keys, tt.want, tt.keys)
				}
				testworld.Equal(t, ctx.Err(), nil, "it waited for ever")
			})
		})
	}
}
