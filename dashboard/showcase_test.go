package dashboard_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"netsky/agent"
	"netsky/home"
	"netsky/internal/testworld"
	"netsky/store"
	"netsky/view"
)

// showcase fills a world with an afternoon's work: every state, every kind of
// record, and what leads from one to the next.
func (w *world) showcase(tb testing.TB) {
	tb.Helper()
	now := time.Now()
	ago := func(d time.Duration) store.Time { return store.At(now.Add(-d)) }
	const min = time.Minute
	for _, id := range []agent.ID{"agent1", "agent2", "agent3", "agentinfinity"} {
		testworld.Must(tb, w.bus.Make(id))
	}
	for i, id := range []agent.ID{"agent0", "agent1", "agent2", "agent3", "agentinfinity"} {
		w.apply(tb,
			store.UpsertActor{ID: id, Runtime: "claude", Dir: "~/src/tideline", Desired: store.DesiredUp, Updated: ago(3 * time.Hour)},
			store.StartSession{Start: start(i), Actor: id, Runtime: "claude", Tmux: string(id), PID: 41200 + i, Thread: fmt.Sprintf("0a1b2c3d-000%d", i), State: agent.Idle, Started: ago(3 * time.Hour)})
	}
	w.apply(tb, store.UpsertActor{ID: "agent0", Objective: "Ship tideline 1.4: offline tide tables, and no regressions.", Updated: ago(2 * time.Hour)})
	w.apply(tb, store.EndSession{Start: start(3), State: agent.Dead, Status: new(2), Reason: "the program ended", LastLines: "panic: runtime error: index out of range [7]\n\ngoroutine 1 [running]:\nmain.main()", Time: ago(4 * min)})
	w.tasksAndMail(tb, ago)
	w.logsAndNotes(tb, ago)
	w.updates(tb, ago)
	w.showAgents(now)
	w.showWork(tb, now)
	testworld.Got(home.Approvals(w.home).Ask(agent.Approval{
		Agent: "agent2", Start: start(2), Tool: "Bash", Text: "git push --force-with-lease origin release/1.4", Reason: "The branch was rebased onto main after review.",
		Dir: "~/src/tideline", AskedMS: now.Add(-95 * time.Second).UnixMilli(),
	}))(tb)
}

func start(n int) string { return fmt.Sprintf("%d7c4e1f09ab3d52%d", n, n) }

func (w *world) showAgents(now time.Time) {
	ago := func(d time.Duration) store.Time { return store.At(now.Add(-d)) }
	one := func(id agent.ID, n int, state agent.State, since time.Duration, detail, evidence string) view.Agent {
		return view.Agent{ID: id, State: state, Since: ago(since), Detail: detail, Evidence: evidence, Runtime: "claude", Model: "opus", Dir: "~/src/tideline", Start: start(n), PID: 41200 + n, Wanted: true}
	}
	boss := one("agent0", 0, agent.Busy, 42*time.Second, "reading agent1's proof and planning the next step", "its own word: a turn runs")
	boss.Claimed = 1
	worker := one("agent1", 1, agent.Busy, 6*time.Minute, "running go test ./tides/...", "hook: Bash began")
	worker.Inbox = 2
	w.agents.set(nil, boss, worker,
		one("agent2", 2, agent.Waiting, 95*time.Second, "Bash: git push --force-with-lease", "it asked for leave"),
		one("agent3", 3, agent.Dead, 4*time.Minute, "exited 2: index out of range [7]", "its keeper wrote how it ended"),
		one("agentinfinity", 4, agent.Idle, 3*time.Hour, "", "its own word: nothing to do"))
	w.panes.set("agent0", bossScreen)
	w.panes.set("agent1", workerScreen)
	w.panes.set("agent2", askScreen)
	defer func() {
		w.panes.mu.Lock()
		defer w.panes.mu.Unlock()
		for id, sc := range w.panes.screens {
			sc.CursorY = -1
			w.panes.screens[id] = sc
		}
	}()
	w.panes.set("agentinfinity", "\x1b[2m> \x1b[0m\n\n  Nothing to do. I am woken when something is wrong.\n"+strings.Repeat("\n", 20))
}

func (w *world) tasksAndMail(tb testing.TB, ago func(time.Duration) store.Time) {
	const min = time.Minute
	letter := func(id string, from, to agent.ID, kind, text, reply string, at time.Duration, state store.DeliveryState) {
		via := "mcp"
		if from == agent.Owner {
			via = "web"
		}
		w.apply(tb, store.UpsertMessage{ID: id, From: from, To: to, Kind: kind, Text: text, InReplyTo: reply, Thread: "release-1.4", Via: via, Time: ago(at)},
			store.UpsertDelivery{Message: id, From: from, Target: to, State: store.Queued, Queued: ago(at), Time: ago(at)})
		if state != store.Queued {
			w.apply(tb, store.UpsertDelivery{Message: id, From: from, Target: to, State: store.Claimed, Time: ago(at - 300*time.Millisecond)},
				store.UpsertDelivery{Message: id, From: from, Target: to, State: state, Time: ago(at - 1200*time.Millisecond)})
		}
	}
	letter("web-5d1f0c77a2b94e6180c3d2aa", "owner", "agent0", "", "Ship tideline 1.4 today. Offline tide tables first; then see whether the release branch still passes.", "", 38*min, store.Delivered)
	letter("msg-plan-01", "agent0", "agent1", "brief", "Make the tide tables work offline: bundle harmonics for 40 ports, fall back when the network is gone. Prove it with tests.", "web-5d1f0c77a2b94e6180c3d2aa", 36*min, store.Delivered)
	letter("msg-plan-02", "agent0", "agent2", "brief", "Rebase release/1.4 onto main and run the whole suite. Report what fails.", "web-5d1f0c77a2b94e6180c3d2aa", 35*min, store.Delivered)
	letter("msg-done-01", "agent1", "agent0", "reply", "The offline tables work. 212 tests pass; harmonics.bin is 1.1 MB.", "msg-plan-01", 7*min, store.Delivered)
	letter("msg-owner-01", "agent0", "owner", "reply", "Tide tables work offline now, proved by 212 tests. agent2 asks to push the rebased release branch; that waits for you.", "web-5d1f0c77a2b94e6180c3d2aa", 2*min, store.Delivered)
	letter("msg-more-01", "agent0", "agent1", "", "Also check the tables for ports south of the equator.", "", 1*min, store.Queued)
	letter("msg-more-02", "agent2", "agent1", "", "Which commit has the harmonics? I need it for the changelog.", "", 40*time.Second, store.Queued)
	letter("msg-bad-01", "agent3", "agent0", "", "half a report", "", 9*min, store.Failed)
	w.apply(tb,
		store.UpsertTask{ID: "task-offline", Title: "Offline tide tables", Body: "Bundle harmonics for 40 ports and fall back to them when the network is gone.", Priority: 1, State: store.TaskDone, AskedBy: "agent0", Assignee: "agent1",
			Message: "msg-plan-01", EstimateMinutes: 40, ActualMinutes: 29, Proof: "go test ./tides/... → ok, 212 tests\ncommit 8c1f2ab", Created: ago(36 * min), Started: ago(35 * min), Ended: ago(7 * min), Updated: ago(7 * min)},
		store.UpsertTask{ID: "task-south", Title: "Check the tables for ports south of the equator", Priority: 2, State: store.TaskInProgress, AskedBy: "agent0", Assignee: "agent1", Message: "msg-more-01", EstimateMinutes: 15, Created: ago(1 * min), Started: ago(50 * time.Second), Updated: ago(50 * time.Second)},
		store.UpsertTask{ID: "task-release", Title: "Rebase release/1.4 and run the suite", Priority: 1, State: store.TaskInProgress, AskedBy: "agent0", Assignee: "agent2", Message: "msg-plan-02", Created: ago(35 * min), Started: ago(30 * min), Updated: ago(30 * min)},
		store.UpsertTask{ID: "task-notes", Title: "Write the release notes", Priority: 3, State: store.TaskBlocked, AskedBy: "owner", Assignee: "agent3", Created: ago(20 * min), Updated: ago(4 * min)},
		store.AddDependency{Task: "task-notes", Needs: "task-release", Created: ago(20 * min)})
}

func (w *world) logsAndNotes(tb testing.TB, ago func(time.Duration) store.Time) {
	const min = time.Minute
	w.apply(tb, store.AddNote{ID: "note-1", About: "task-offline", Author: "agent1", Text: "Harmonics come from the 2025 constituents; older ones are off by 4 minutes at Brest.", Created: ago(15 * min)},
		store.AddLog{Key: "1", Part: "up", Actor: "agent0", Text: "up", Time: ago(3 * time.Hour), Fields: map[string]any{"runtime": "claude", "ready_ms": 2140}},
		store.AddLog{Key: "2", Part: "observe", Text: "records follow the bus", Time: ago(3 * time.Hour), Level: store.LevelDebug},
		store.AddLog{Key: "3", Part: "crew", Actor: "agent1", About: "task-offline", Text: "began Offline tide tables", Time: ago(35 * min)},
		store.AddLog{Key: "4", Part: "crew", Actor: "agent1", About: "task-offline", Text: "done Offline tide tables", Time: ago(7 * min), Fields: map[string]any{"minutes": 29}},
		store.AddLog{Key: "5", Part: "bus", Actor: "agent3", About: "msg-bad-01", Text: "not delivered: the runtime refused it", Level: store.LevelWarn, Time: ago(9 * min)},
		store.AddLog{Key: "6", Part: "daemon", Actor: "agent3", About: start(3), Text: "agent3 exited 2", Level: store.LevelError, Time: ago(4 * min)},
		store.AddLog{Key: "7", Part: "approvals", Actor: "agent2", Text: "asks: Bash git push --force-with-lease origin release/1.4", Level: store.LevelWarn, Time: ago(95 * time.Second)})
}

// updates are two runs: one that was undone, and a later one that was not.
func (w *world) updates(tb testing.TB, ago func(time.Duration) store.Time) {
	step := func(id, state, revision string, at, took time.Duration, wrong string, commands ...string) {
		w.apply(tb, store.UpsertUpdate{ID: id, State: state, Repository: "~/src/netsky", Revision: revision, Commands: commands, Backup: "~/.netsky/state/update/records.db",
			RollbackHint: "netsky self rollback puts back the binary and the records from before.", Error: wrong, Started: ago(at), Updated: ago(at), Ended: ago(at - took)})
	}
	const hour, sec = time.Hour, time.Second
	step("u-1.01", "preflight", "91be0d2", 50*hour, 2*sec, "")
	step("u-1.02", "build", "91be0d2", 50*hour-2*sec, 48*sec, "", "go build -trimpath -o bin/netsky.new .")
	step("u-1.03", "operating", "91be0d2", 50*hour-50*sec, 30*sec, "no answer from the router within 30s")
	step("u-1.04", "undone", "91be0d2", 50*hour-80*sec, 4*sec, "", "mv bin/netsky.before bin/netsky")
	step("u-2.01", "preflight", "4c1d9a7", 2*hour, 3*sec, "")
	step("u-2.02", "fetch", "4c1d9a7", 2*hour-3*sec, 5*sec, "", "git fetch origin main", "git merge --ff-only 4c1d9a7")
	step("u-2.03", "restart", "4c1d9a7", 2*hour-9*sec, 12*sec, "")
}

const bossScreen = "\x1b[38;2;215;119;87m ▐▛███▜▌\x1b[0m   \x1b[1mClaude Code\x1b[0m v2.1.329\n\x1b[38;2;215;119;87m▝▜█████▛▘\x1b[0m  Opus · ~/src/tideline\n\x1b[38;2;215;119;87m  ▘▘ ▝▝\x1b[0m\n\n" +
	"\x1b[2m>\x1b[0m <channel source=\"agent\" from=\"agent1\" id=\"msg-done-01\">\n  The offline tables work. 212 tests pass; harmonics.bin is 1.1 MB.\n  </channel>\n\n" +
	"\x1b[32m●\x1b[0m agent1 says the tables work offline. I check its proof before I tell the owner.\n\n\x1b[32m●\x1b[0m \x1b[1mBash\x1b[0m(git -C ~/src/tideline show --stat 8c1f2ab)\n  ⎿  tides/harmonics.go      | 214 \x1b[32m+++++++++++++++\x1b[31m---\x1b[0m\n     tides/offline_test.go   | 168 \x1b[32m++++++++++++++\x1b[0m\n     assets/harmonics.bin    | Bin 0 → 1153004 bytes\n\n" +
	"\x1b[38;5;174m✻ Planning the next step… \x1b[2m(42s · esc to interrupt)\x1b[0m\n\n\x1b[2m────────────────────────────────────────────────────────────────────────────────\x1b[0m\n> \n\x1b[2m────────────────────────────────────────────────────────────────────────────────\x1b[0m\n\n"

const workerScreen = "\x1b[32m●\x1b[0m \x1b[1mUpdate\x1b[0m(tides/south.go)\n  ⎿  Added \x1b[1m12\x1b[0m lines, removed \x1b[1m3\x1b[0m lines\n      41 \x1b[48;5;52m-	if lat < 0 { return nil }                        \x1b[0m\n      41 \x1b[48;5;22m+	phase := c.Phase(lat) // the sign turns it around \x1b[0m\n      42 \x1b[48;5;22m+	return c.At(t, phase)                            \x1b[0m\n\n" +
	"\x1b[33m●\x1b[0m \x1b[1mBash\x1b[0m(go test ./tides/...)\n  ⎿  \x1b[2mok  \x1b[0m  tideline/tides/ports   \x1b[32m1.204s\x1b[0m\n     \x1b[2mok  \x1b[0m  tideline/tides         \x1b[32m3.881s\x1b[0m\n     \x1b[2mrunning…\x1b[0m tideline/tides/offline\n\n\x1b[38;5;174m✻ Testing… \x1b[2m(6m 12s · ↓ 9.1k tokens)\x1b[0m\n\n> \n\n\n\n\n\n\n\n\n\n"

const askScreen = "\x1b[32m●\x1b[0m The rebase is clean and the whole suite passes: 1,904 tests.\n\n\x1b[38;5;111m╭──────────────────────────────────────────────────────────────╮\n│\x1b[0m \x1b[1mBash command\x1b[0m                                                 \x1b[38;5;111m│\n│\x1b[0m                                                              \x1b[38;5;111m│\n│\x1b[0m   git push --force-with-lease origin release/1.4             \x1b[38;5;111m│\n│\x1b[0m                                                              \x1b[38;5;111m│\n│\x1b[0m Do you want to proceed?                                      \x1b[38;5;111m│\n│\x1b[0m \x1b[36m❯ 1. Yes\x1b[0m                                                     \x1b[38;5;111m│\n│\x1b[0m   2. No, and tell it what to do instead                      \x1b[38;5;111m│\n╰──────────────────────────────────────────────────────────────╯\x1b[0m\n\n\n\n\n\n\n\n\n\n\n\n\n"
