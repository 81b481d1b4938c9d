package view

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"netsky/agent"
	"netsky/attention"
	"netsky/internal/testworld"
	"netsky/spawn"
	"netsky/store"
	"netsky/view"
)

// mustList makes agents of words such as "0:idle".
func mustList(t *testing.T, words string) (list spawn.Statuses) {
	t.Helper()
	for word := range strings.FieldsSeq(words) {
		name, state, _ := strings.Cut(word, ":")
		id := testworld.Got(agent.ParseAgent(name))(t)
		list = append(list, spawn.Status{Agent: id, State: agent.State(state)})
	}
	return list
}

func TestLine(t *testing.T) {
	const some = "0:idle 1:busy 2:waiting 3:dead 4:down infinity:idle"
	for _, tt := range []struct {
		agents string
		needs  int
		unread int
		width  int
		want   string
	}{
		{some, 0, 2, 0, "0:idle 1:busy 2:waiting 3:dead ∞:idle mail:2"},
		{some, 0, 2, 44, "0:idle 1:busy 2:waiting 3:dead ∞:idle mail:2"},
		{some, 0, 2, 43, "2:waiting 3:dead mail:2 1 busy 2 idle"},
		{some, 0, 2, 36, "2:waiting 3:dead mail:2 3 up"},
		{some, 0, 2, 26, "1 waiting 1 dead mail:2"},
		{some, 0, 2, 12, "!2 mail:2"},
		{some, 0, 2, 2, "!2"},
		{some, 0, 2, 1, "…"},
		{"0:idle 1:idle 2:idle infinity:idle", 0, 0, 26, "4 idle"},
		{"0:idle 1:busy infinity:idle", 0, 0, 10, "3 up"},
		{"0:idle 1:busy infinity:idle", 0, 0, 3, "ok"},
		{"0:waiting 1:waiting 2:waiting 3:waiting infinity:idle", 0, 0, 26, "4 waiting 1 idle"},
		{"0:dead", 0, 0, 26, "0:dead"},
		{"0:down", 0, 0, 26, "no agents"},
		{"", 0, 3, 26, "no agents mail:3"},
		{"0:idle 1:waiting", 1, 0, 0, "0:idle 1:waiting needs:1"},
		{"0:idle 1:waiting", 2, 3, 30, "1:waiting needs:2 mail:3 1 up"},
		{"0:idle 1:waiting", 2, 3, 17, "!2 needs:2 mail:3"},
		{"0:idle", 1, 0, 5, "!1"},
	} {
		got := Line(mustList(t, tt.agents), tt.needs, tt.unread, tt.width)
		testworld.Equal(t, got, tt.want, "Line(%s, %d, %d, %d)", tt.agents, tt.needs, tt.unread, tt.width)
	}
	testworld.Equal(t, Line(mustList(t, "0:idle"), 0, 2, 0, "daemon ?"), "0:idle mail:2 daemon ?", "with a note")
	// In whatever room, no word is cut.
	list := mustList(t, some)
	whole := " " + Line(list, 0, 2, 0) + " 1 waiting 1 dead 1 busy 2 idle 3 up !2 ok … "
	for width := 1; width < 60; width++ {
		got := Line(list, 0, 2, width)
		if utf8.RuneCountInString(got) > width {
			t.Errorf("width %d: %q is wider", width, got)
		}
		for word := range strings.FieldsSeq(got) {
			testworld.Contains(t, whole, " "+word+" ", "width %d: %q has the word %q", width, got, word)
		}
	}
}

func TestScreenFits(t *testing.T) {
	var v View
	add := func(n int, state agent.State) {
		for range n {
			v.Agents = append(v.Agents, view.Agent{ID: agent.Clone(len(v.Agents) + 1), State: state, Runtime: "demo", Detail: strings.Repeat("long ", 30)})
		}
	}
	add(20, agent.Idle)
	add(1, agent.Waiting)
	add(5, agent.Busy)
	add(1, agent.Dead)
	add(3, agent.Down)
	v.Unread = 2
	for _, verbose := range []bool{false, true} {
		s := v.Screen(verbose)
		if got := s.Fit(0, 0, false); len(got) != 1+rowsOf(s.agents, nil)+1 {
			t.Errorf("without end: %d lines\n%s", len(got), strings.Join(got, "\n"))
		}
		for height := 1; height <= 110; height++ {
			lines := s.Fit(60, height, false)
			text := strings.Join(lines, "\n")
			if len(lines) > height {
				t.Errorf("height %d: %d lines\n%s", height, len(lines), text)
			}
			for _, l := range lines {
				if utf8.RuneCountInString(l) > 60 {
					t.Errorf("height %d: %q is too wide", height, l)
				}
			}
			if height < 12 {
				continue
			}
			for _, want := range []string{"◆ agent21 ", "✗ agent27 ", "mail for you: 2"} {
				testworld.Contains(t, text, want, "height %d: lacks", height)
			}
			shown, hidden := 0, 0
			for _, l := range lines {
				if strings.Contains(l, " agent") {
					shown++
				}
				fmt.Sscanf(l, "… %d more: ", &hidden)
			}
			if shown+hidden != len(v.Agents) {
				t.Errorf("height %d: %d shown, %d counted as hidden, of %d\n%s", height, shown, hidden, len(v.Agents), text)
			}
		}
	}
	lines := v.Screen(false).Fit(80, 8, false)
	testworld.Equal(t, lines[len(lines)-1], "… 25 more: 2 busy, 20 idle, 3 down  (every second; Ctrl-C ends)", "the last line")
	for range 30 {
		v.Notes = append(v.Notes, "something is wrong")
	}
	lines = v.Screen(false).Fit(80, 12, false)
	if text := strings.Join(lines, "\n"); len(lines) > 12 || !strings.Contains(text, "agent21") || !strings.Contains(text, "… 27 more lines: `netsky status` shows all") {
		t.Errorf("many notes:\n%s", text)
	}
}

// The columns stand one below the other, whatever the states; held messages are neither
// waiting in the mailbox nor in progress.
func TestScreenColumns(t *testing.T) {
	v := View{now: time.Now(), Agents: []view.Agent{
		{ID: "agent1", State: agent.Idle, Runtime: "demo", Detail: "x"}, {ID: "agent2", State: agent.CrashLooping, Runtime: "demo", Detail: "x"},
	}}
	lines := v.Screen(false).Fit(0, 0, false)
	if strings.Index(lines[1], "demo") != strings.Index(lines[2], "demo") {
		t.Errorf("columns:\n%s", strings.Join(lines, "\n"))
	}
	v.Agents = v.Agents[:1]
	if line := v.Screen(false).Fit(0, 0, false)[1]; !strings.HasPrefix(line, "● agent1         idle            demo    x") {
		t.Errorf("without a long state: %q", line)
	}
	until := time.Now().Add(time.Hour)
	for _, tt := range []struct {
		a    view.Agent
		want string
	}{
		{view.Agent{State: agent.Blocked, Claimed: 1, Held: 1, HeldUntil: store.At(until)}, "mail: 1 waiting, 1 held until " + until.Local().Format("15:04")},
		{view.Agent{State: agent.Blocked, Inbox: 3, Claimed: 1, Held: 1}, "mail: 4 waiting, 1 held until its model can answer"},
		{view.Agent{State: agent.Dead, Detail: "exited 1", Inbox: 3, Claimed: 1, Held: 1}, "exited 1, mail: 4 waiting, 1 held until its model can answer"},
		{view.Agent{State: agent.Busy, Claimed: 1}, "mail: 1 in progress"},
	} {
		testworld.Equal(t, tt.a.Words(), tt.want, "%+v", tt.a)
	}
}

// The agents of other hosts are below the own ones, those of a host that is silent dimmed.
func TestScreenHosts(t *testing.T) {
	v := View{now: time.Now(), Agents: []view.Agent{{ID: "agent0", State: agent.Idle, Runtime: "demo"}}}
	v.Hosts = []attention.Host{
		{Name: "build1", Up: true, Version: "v1", Agents: []view.Agent{{ID: "agentinfinity@build1", State: agent.Busy, Runtime: "claude", Detail: "Bash"}}},
		{Name: "build2", Seen: store.At(v.now.Add(-12 * time.Minute)), Agents: []view.Agent{{ID: "agent1@build2", State: agent.Idle, Runtime: "demo"}}, More: 3},
		{Name: "build3"},
	}
	lines := v.Screen(false).Fit(0, 0, true)[1:]
	testworld.EqualList(t, lines, []string{
		"\x1b[32m●\x1b[0m agent0         idle            demo",
		"build1  netsky v1",
		"\x1b[36m●\x1b[0m agentinfinity@build1 busy            claude  Bash",
		"\x1b[2mbuild2  as of 12m ago  and 3 more there: `netsky --on build2 status`\x1b[0m",
		"\x1b[2m● agent1@build2  idle            demo\x1b[0m",
		"\x1b[2mbuild3  not heard of yet\x1b[0m",
	})
	testworld.Contains(t, strings.Join(v.Screen(true).Fit(0, 0, false), "\n"), "netsky -", "verbose")
	testworld.EqualList(t, strings.Split(v.Text(), "\n"), []string{"agent0 idle", "build1: 1 busy", "build2: 1 idle, as of 12m ago", "build3: not heard of yet", "Nothing needs you."})
	for height := 1; height < 12; height++ {
		if n := len(v.Screen(false).Fit(40, height, false)); n > height {
			t.Errorf("%d lines for a height of %d", n, height)
		}
	}
}
