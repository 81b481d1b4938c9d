//go:build live

package spawn_test

import (
	"errors"
	"strings"
	"testing"

	"netsky/agent"
	"netsky/attention"
	"netsky/fleet"
	"netsky/fleet/bridge"
	"netsky/internal/testworld"
	"netsky/spawn"
	"netsky/spawn/pane"
	"netsky/store"
)

// A warner fails the test by what a deed warns of.
type warner struct{ t *testing.T }

func (warner) Ask(string) (string, error) { return "", fleet.ErrNobody }
func (warner) Step(fleet.Step)            {}
func (w warner) Warn(err error)           { w.t.Error(err) }

// A decidingAsker's question about a moon can be answered without going to the pane.
type decidingAsker struct{ seenAsker }

func (decidingAsker) Decidable(name string) bool { return name == "moon" }

func (r decidingAsker) Dialog(screen string, l agent.Launch) (agent.Dialog, bool) {
	if d, ok := r.Decide(screen, true); ok {
		d.Keys = nil
		return d, true
	}
	return r.seenAsker.Dialog(screen, l)
}

func (decidingAsker) Decide(screen string, allow bool) (agent.Dialog, bool) {
	lines := strings.Split(screen, "\n")
	if len(lines) < 3 || !strings.HasPrefix(lines[0], "Buy ") {
		return agent.Dialog{}, false
	}
	d := agent.Dialog{Name: "moon", Text: lines[0], Keys: []string{"Enter"}}
	if no := strings.HasPrefix(lines[1], ">"); no == allow {
		d.Keys = []string{"Down", "Enter"}
	}
	return d, true
}

// A text answers the dialog whose words were texted, for all agents at it, and no other; it is
// acknowledged when their panes have moved on, and the record says where it came from.
func TestDialogAnsweredByPhone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := decidingAsker{seenAsker{asker{"moon"}}}
	w.up(r, "agent1", "agent2")
	desk := bridge.Desk{Fleet: &fleet.Fleet{
		Home: w.home, Launcher: w.l, Runtimes: map[string]spawn.Runtime{"asker": r}, Actor: agent.Owner, UI: warner{t},
	}}
	var n attention.Need
	testworld.WaitOr(t, func() bool {
		list, err := desk.Needs(w.ctx)
		for _, n = range list {
			if err == nil && n.Kind == attention.Dialog && len(n.Agents) == 2 {
				return true
			}
		}
		return false
	}, func() string { return "no item about both dialogs" })
	if n.Text != "moon: Buy a moon?" || len(n.Options) != 2 {
		t.Fatalf("the item is %+v", n)
	}
	other := n
	other.Text = "moon: Buy a star?" // what was texted before the dialog became another
	if text, err := desk.Answer(w.ctx, other, true); !errors.Is(err, pane.ErrChanged) || !strings.Contains(err.Error(), "Buy a moon?") {
		t.Errorf("an answer to other words: %q, %v", text, err)
	}
	if got := w.typed("agent1") + w.typed("agent2"); got != "" {
		t.Fatalf("typed %q", got)
	}
	text, err := desk.Answer(w.ctx, n, true)
	if err != nil || text != n.Code+": allowed: agent1, agent2: Buy a moon?." {
		t.Errorf("answered: %q, %v", text, err)
	}
	for _, id := range []string{"agent1", "agent2"} {
		if got := w.typed(id); got != answer { // at once: the panes have moved on
			t.Errorf("%s was typed %q", id, got)
		}
	}
	testworld.Fails(t, testworld.Err(desk.Answer(w.ctx, n, false)), "", "a second answer was taken")
	testworld.Equal(t, desk.How(w.ctx, n.Code), "allowed by the owner, with the phone", "it was settled")
	db := testworld.Got(store.OpenRead(w.ctx, w.home))(t)
	defer db.Close()
	logs, err := db.Logs(w.ctx, store.LogFilter{Part: "dialog", Text: "yes, as the owner decided, with the phone: moon: Buy a moon?"})
	if err != nil || len(logs.Items) != 2 {
		t.Errorf("recorded: %+v, %v", logs.Items, err)
	}
}
