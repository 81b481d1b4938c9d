//go:build live

package cli_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"netsky/agent"
	"netsky/home"
	"netsky/internal/chaos"
	"netsky/internal/testworld"
)

// A drill finds what netsky would do wrong: each of these faults breaks a promise, and one
// line of the report has to fail.
func TestDrillFinds(t *testing.T) {
	t.Parallel()
	file := func(d *chaos.Drill, id agent.ID, place, with string) string {
		t.Helper()
		found := ""
		testworld.Wait(t, with+" in "+place, func() bool {
			list, _ := filepath.Glob(filepath.Join(d.Home.Path(home.Mailbox(id)), place, "*.json"))
			for _, path := range list {
				data, err := os.ReadFile(path)
				if err == nil && strings.Contains(string(data), with) {
					found = path
				}
			}
			return found != ""
		})
		return found
	}
	for name, tc := range map[string]struct {
		fails string
		do    func(ctx context.Context, d *chaos.Drill) error
	}{
		"a lost message": {"delivered once", func(ctx context.Context, d *chaos.Drill) error {
			return errors.Join(d.Send(ctx, "agent1", "will be lost"), os.Remove(file(d, "agent1", "delivered", "will be lost")))
		}},
		"a message given twice": {"delivered once", func(ctx context.Context, d *chaos.Drill) error {
			err := d.Send(ctx, "agent1", "will be doubled")
			return errors.Join(err, double(file(d, "agent1", "delivered", "will be doubled")))
		}},
		"a second answer": {"answered once", func(ctx context.Context, d *chaos.Drill) error {
			err := d.Send(ctx, "agent1", "answer twice")
			path := file(d, agent.Owner, "delivered", "received: answer twice")
			data, rerr := os.ReadFile(path)
			other := strings.Replace(string(data), `"id":"`, `"id":"again-`, 1)
			return errors.Join(err, rerr, os.WriteFile(filepath.Join(filepath.Dir(path), "~"+filepath.Base(path)), []byte(other), 0o600))
		}},
		"a false alarm": {"owner told", func(_ context.Context, d *chaos.Drill) error {
			text := `{"id":"hang-x","from":"agent1","kind":"notice","text":"agent1 hangs","ts":"2026-11-20T12:00:00Z"}`
			return os.WriteFile(filepath.Join(d.Home.Path(home.Mailbox(agent.Owner)), "inbox", "x.json"), []byte(text), 0o600)
		}},
		"an agent that stays down": {"an agent that stays down", func(ctx context.Context, d *chaos.Drill) error {
			_, err := d.Netsky(ctx, "down", "1")
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := mustWorld(t)
			world := night{demos: 3}.world(t, w)
			r := testworld.Got(chaos.Run(t.Context(), chaos.Options{
				World: world, Every: 200 * time.Millisecond, Within: 5 * time.Second, Say: func(l chaos.Line) { t.Log(l) },
				Faults: []chaos.Fault{{Name: name, Do: func(ctx context.Context, d *chaos.Drill) (chaos.Hit, error) {
					return chaos.Hit{On: name}, tc.do(ctx, d)
				}}},
			}))(t)
			if !slices.ContainsFunc(r.Lines, func(l chaos.Line) bool { return l.Name == tc.fails && l.Result == chaos.Failed }) {
				t.Errorf("the report has no failure of %q: %+v", tc.fails, r.Lines)
			}
		})
	}
}

// double copies a file under another name.
func double(path string) error {
	data, err := os.ReadFile(path)
	return errors.Join(err, os.WriteFile(strings.TrimSuffix(path, ".json")+"~2.json", data, 0o600))
}
