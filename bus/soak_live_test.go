//go:build live

package bus_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/home"
	"netsky/internal/testworld"
)

const soakWriters = 8

// A soaked is one process under soak and how it is started again.
type soaked struct {
	role, name string
	from       int // a writer's next number
	cmd        *exec.Cmd
	errs       strings.Builder
}

func (p *soaked) start(tb testing.TB, home home.Dir, base int64) {
	tb.Helper()
	p.cmd = exec.Command(os.Args[0])
	p.cmd.Env = append(os.Environ(),
		"NETSKY_TEST_ROLE="+p.role, "NETSKY_TEST_NAME="+p.name, "NETSKY_HOME="+home.Root(),
		"NETSKY_TEST_FROM="+strconv.Itoa(p.from), "NETSKY_TEST_BASE="+strconv.FormatInt(base, 10))
	p.cmd.Stderr = &p.errs
	testworld.Must(tb, p.cmd.Start())
}

// kill ends the process and leaves the numbers it may have used.
func (p *soaked) kill(tb testing.TB) {
	tb.Helper()
	p.cmd.Process.Kill()
	p.cmd.Wait()
	if p.errs.Len() > 0 {
		tb.Fatalf("%s %s: %s", p.role, p.name, p.errs.String())
	}
	p.from += 1_000_000
}

// TestSoak: 8 writers and 4 receivers, one of which takes the answers, under
// kill -9 at random. NETSKY_SOAK is how long (a duration), NETSKY_SEED which.
func TestSoak(t *testing.T) {
	t.Parallel()
	lasts := testworld.Got(time.ParseDuration(cmpOr(os.Getenv("NETSKY_SOAK"), "5s")))(t)
	seed := testworld.Got(strconv.ParseUint(cmpOr(os.Getenv("NETSKY_SEED"), strconv.FormatInt(time.Now().UnixNano(), 10)), 10, 64))(t)
	t.Logf("NETSKY_SEED=%d", seed)
	dice := rand.New(rand.NewPCG(seed, 1))
	b, home := mustBusIn(t, testworld.Home(t), bus.Options{}, append(slices.Clone(soakTakers), agent.Root)...)
	base := time.Now().UnixNano()
	var all []*soaked
	for i := range soakWriters {
		all = append(all, &soaked{role: "writer", name: "w" + strconv.Itoa(i)})
	}
	for _, id := range soakTakers {
		all = append(all, &soaked{role: "taker", name: string(id)})
	}
	for _, p := range all {
		p.start(t, home, base)
	}
	kills := 0
	for end := time.After(lasts); ; {
		select {
		case <-end:
		case <-time.After(time.Duration(dice.IntN(120)) * time.Millisecond):
			p := all[dice.IntN(len(all))]
			p.kill(t)
			kills++
			p.start(t, home, base)
			continue
		}
		break
	}
	for _, p := range all {
		p.kill(t)
	}
	settleSoak(t, home, base)
	checkSoak(t, b, home, kills, seed)
}

// settleSoak lets receivers that nobody kills take what is left.
func settleSoak(t *testing.T, home home.Dir, base int64) {
	b := soakBus(home, base)
	var agents, owner sync.WaitGroup
	done := make(chan struct{}) // the agents have given all their answers
	for _, id := range soakTakers {
		r := mustReceive(t, b, id, bus.ReceiveOptions{})
		wg := &agents
		if id == agent.Owner {
			wg = &owner
		}
		wg.Go(func() {
			if err := settleOne(t.Context(), b, r, id, done); err != nil {
				t.Errorf("%s: %v", id, err)
			}
		})
	}
	agents.Wait()
	close(done)
	owner.Wait()
}

func settleOne(ctx context.Context, b *bus.Bus, r *bus.Receiver, id agent.ID, done <-chan struct{}) error {
	for {
		in, _ := b.Count(id, bus.Inbox)
		claimed, err := b.Count(id, bus.Claimed)
		if err != nil {
			return err
		}
		if in+claimed == 0 {
			if id == agent.Owner {
				select {
				case <-done:
				case <-time.After(10 * time.Millisecond):
					continue
				}
				if n, err := b.Count(id, bus.Inbox); err != nil || n > 0 {
					continue
				}
			}
			return nil
		}
		short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
		d, err := r.Next(short)
		cancel()
		if errors.Is(err, context.DeadlineExceeded) {
			continue
		}
		if err == nil {
			err = handle(ctx, b, id, d)
		}
		if err != nil {
			return err
		}
	}
}

func checkSoak(t *testing.T, b *bus.Bus, home home.Dir, kills int, seed uint64) {
	had := make(map[string]bool)
	last := make(map[string]string)
	for _, id := range soakTakers[:3] {
		effects := mustEffects(t, home, id)
		for e := range mustOnce(t, "effects of "+string(id), effects) {
			had[e] = true
		}
		for _, e := range effects {
			writer, _, _ := strings.Cut(e, ":")
			if at := writer + string(id); e <= last[at] {
				t.Errorf("%s: %s came after %s", id, e, last[at])
			} else {
				last[at] = e
			}
		}
		mustWhole(t, b, id, bus.Delivered)
		mustCount(t, b, id, bus.Poison, 0)
		mustCount(t, b, id, bus.Claimed, 0)
	}
	acked := 0
	files, _ := filepath.Glob(home.Path("state/acks-*"))
	for _, name := range files {
		data := testworld.Got(os.ReadFile(name))(t)
		for _, id := range lines(data) {
			acked++
			if !had[id] {
				t.Errorf("%s was acknowledged and had no effect", id)
			}
		}
	}
	answers := mustOnce(t, "answers", mustEffects(t, home, agent.Owner))
	if len(answers) != len(had) {
		t.Errorf("%d answers to %d messages", len(answers), len(had))
	}
	fmt.Printf("soak: seed %d, %d kills, %d sends acknowledged, %d effects, %d answers, none lost, none twice\n",
		seed, kills, acked, len(had), len(answers))
	if acked < 100 || kills < 10 {
		t.Errorf("%d sends, %d kills: too few to prove anything", acked, kills)
	}
}

func cmpOr(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
