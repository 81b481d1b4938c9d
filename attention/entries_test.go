package attention_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"netsky/agent"
	"netsky/attention"
	"netsky/internal/testworld"
	"netsky/link"
	"netsky/store"
)

// What another host tells of its log is recorded here under its addresses, as its word, and once.
func TestEntries(t *testing.T) {
	log := []store.Log{ // the newest first
		{ID: 9, Key: "k9", Time: store.At(now), Level: store.LevelWarn, Part: "watchdog", Actor: "agent3", About: "start1", Text: "died", Fields: map[string]any{"code": "abcde"}},
		{ID: 8, Key: "k8", Time: store.At(now), Level: store.LevelInfo, Part: "up", Text: strings.Repeat("x", 2000)},
		{ID: 7, Key: "k7", Time: store.At(now.Add(time.Hour)), Level: store.LevelInfo, Part: "fleet", Actor: "agent1@build2", Text: "stopped"},
	}
	told := testworld.Got(attention.TellEntries(log))(t)
	read := func(last int64) (lines []string) {
		for _, e := range attention.ReadEntries(link.Host{Name: "build1", Last: last}, told, now) {
			if e.Time > store.At(now) || len(e.Fields) > 0 || !strings.HasPrefix(e.Key, "told-") && e.Part != "link" {
				t.Errorf("an entry of %s, with fields %v and the key %s", e.Time.Time(), e.Fields, e.Key)
			}
			lines = append(lines, fmt.Sprintf("%d %s %s %s (%s) %.37s", e.ID, e.Level, e.Part, e.Actor, e.About, e.Text))
		}
		return lines
	}
	all := []string{"7 INFO fleet@build1  () agent1@build2: stopped", "8 INFO up@build1  () " + strings.Repeat("x", 37), "9 WARN watchdog@build1 agent3@build1 (start1@build1) died"}
	testworld.EqualList(t, read(0), all, "all")
	testworld.EqualList(t, read(8), all[2:], "what comes after the last")
	testworld.EqualList(t, read(9), nil, "nothing new")
	testworld.EqualList(t, read(20), all, "of records that were restored from a backup")
	testworld.EqualList(t, read(3)[:1], []string{"6 INFO link  () up to 3 more entries of the log are o"}, "what was not told")
	first, again := attention.ReadEntries(link.Host{Name: "build1"}, told, now), attention.ReadEntries(link.Host{Name: "build2"}, told, now)
	if first[0].Key == again[0].Key {
		t.Error("entries of two hosts have one key")
	}
	testworld.Equal(t, attention.Elsewhere(first[2].About), "build1", "where it is")
	testworld.Equal(t, attention.Elsewhere("agent3@build1")+attention.Elsewhere("start1"), "", "where an address or an id is")
}

// No word of another host's log passes for this host's, or acts on a terminal.
func TestHostileEntries(t *testing.T) {
	h := link.Host{Name: "build1"}
	for _, told := range []string{"", "null", "[]", `{"list":[1,"x",{"id":-1},{"id":0}]}`, `{"list":{}}`} {
		testworld.Equal(t, len(attention.ReadEntries(h, []byte(told), now)), 0, "entries of "+told)
	}
	evil := []store.Log{
		{ID: 1, Level: "\x1b[2J", Part: "approvals@laptop", Actor: "owner", About: "a\nb\x1b", Text: "x\x1b[2J\nagent1 allowed"},
		{ID: 1<<63 - 1, Part: strings.Repeat("p", 100), Actor: "x;y", About: "agent1", Time: store.At(now.AddDate(100, 0, 0))},
	}
	list := attention.ReadEntries(h, testworld.Got(json.Marshal(map[string]any{"list": evil}))(t), now)
	var lines []string
	for _, e := range list {
		lines = append(lines, fmt.Sprintf("%s %s %s (%s) %s", e.Level, e.Part, e.Actor, e.About, e.Text))
	}
	testworld.EqualList(t, lines, []string{
		`INFO approvals laptop@build1 owner@build1 (a b\x1b@build1) x\x1b[2J agent1 allowed`,
		"INFO " + strings.Repeat("p", 20) + "@build1  (agent1@build1) ",
	}, "what is recorded")
	testworld.Equal(t, agent.ID(list[1].About).Host(), "build1", "what it is about")
	many := make([]store.Log, 5000)
	for i := range many {
		many[i] = store.Log{ID: int64(i + 1)}
	}
	if n := len(attention.ReadEntries(h, testworld.Got(json.Marshal(map[string]any{"list": many}))(t), now)); n > attention.MaxEntries {
		t.Errorf("%d entries at once", n)
	}
}
