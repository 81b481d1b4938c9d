//go:build linux && live

package testhosts_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"netsky/home"
	"netsky/internal/testhosts"
	"netsky/internal/testworld"
)

// A soak is mail in all directions between the agents and owners of several hosts while
// everything between them, and they themselves, fail.
type soak struct {
	*testing.T
	world   *testhosts.World
	seed    uint64
	lasts   time.Duration
	within  time.Duration // what is sent must have come and been answered, once all is whole again
	cluster bool          // the team's server is three real nats-servers, one on each host

	mail   ledger
	faults faults
}

// TestHostsSoak is a short soak; scripts/hosts-soak runs a long one.
func TestHostsSoak(t *testing.T) {
	s := &soak{T: t, seed: 3, lasts: 15 * time.Second, within: 5 * time.Minute} // a short one, with the same choices each time
	if text := os.Getenv("NETSKY_HOSTS_SOAK"); text != "" {
		s.seed = uint64(time.Now().UnixNano() % 1_000_000)
		s.lasts = time.Duration(testworld.Got(strconv.Atoi(text))(t)) * time.Second
	}
	if text := os.Getenv("NETSKY_HOSTS_SEED"); text != "" {
		s.seed = testworld.Got(strconv.ParseUint(text, 10, 64))(t)
	}
	t.Logf("seed %d", s.seed)
	s.world = testhosts.New(t, "laptop", "build1", "build2")
	t.Cleanup(s.keep)
	if s.cluster = os.Getenv("NETSKY_HOSTS_SERVER") == "cluster"; s.cluster {
		s.prepareCluster()
	}
	for _, h := range s.world.Hosts() {
		s.up(h)
	}
	s.team()
	for what, n := range s.run() {
		if n > 0 && what != "sent" && what != "answered" {
			t.Errorf("%d %s", n, what)
		}
	}
}

// run sends mail and breaks things, mends all, and waits until everything has been answered.
// It counts the messages by what has become of them.
func (s *soak) run() (count map[string]int) {
	ctx, stop := context.WithTimeout(s.Context(), s.lasts)
	defer stop()
	var running sync.WaitGroup
	for i, h := range s.world.Hosts() {
		senders := []string{"agent0", "agent1", "agent2"}
		if i == 0 { // nobody else is believed to be the owner
			senders = append(senders, "owner")
		}
		for j, sender := range senders {
			rng := rand.New(rand.NewPCG(s.seed, uint64(10*i+j)))
			running.Go(func() { s.correspond(ctx, rng, h, sender) })
		}
	}
	s.faults.run(ctx, s)
	running.Wait()
	began, told := time.Now(), time.Duration(0)
	for time.Since(began) < s.within {
		if s.mail.read(s); s.mail.settled() {
			break
		}
		if now := time.Since(began).Round(time.Second); now >= told+10*time.Second {
			told = now
			s.Logf("after %v: %s", now, s.mail.missing())
		}
		select {
		case <-s.Context().Done():
		case <-time.After(time.Second):
		}
	}
	time.Sleep(3 * time.Second) // what comes twice may come late
	s.mail.known = nil          // a second copy is known as that once it has been filed
	s.mail.read(s)
	count = s.mail.judge(s)
	s.Logf("%v and %v until all was settled; seed %d\n%s\n%s", s.lasts, time.Since(began).Round(time.Second), s.seed, list(count), s.faults)
	return count
}

// correspond sends messages from one sender to agents of other hosts, one after the other,
// until ctx ends: agent2's through files in its outbox, the others' by the verb.
func (s *soak) correspond(ctx context.Context, rng *rand.Rand, h *testhosts.Host, sender string) {
	var others []*testhosts.Host
	for _, o := range s.world.Hosts() {
		if o != h {
			others = append(others, o)
		}
	}
	for ctx.Err() == nil {
		to := fmt.Sprintf("agent%d", rng.IntN(3))
		at := others[rng.IntN(len(others))]
		m := s.mail.write(s.seed, sender, h.Name, to, at.Name)
		for began := time.Now(); ; time.Sleep(500 * time.Millisecond) { // after the end, too: it may have been accepted
			err := s.send(h, m)
			if err == nil {
				break
			}
			if time.Since(began) > s.within {
				s.Errorf("%s@%s can't send: %v", sender, h.Name, err)
				return
			}
		}
		time.Sleep(400*time.Millisecond + upTo(rng, 800*time.Millisecond))
	}
}

// send hands one message to the sender's netsky. It may be repeated.
func (s *soak) send(h *testhosts.Host, m *message) error {
	to := m.to + "@" + m.toHost
	if m.from == "agent2" {
		return h.Drop(home.Mailbox("agent2")+"/outbox/"+m.id+".json", fmt.Sprintf(`{"id":%q,"to":%q,"kind":"brief","text":%q}`, m.id, to, m.text))
	}
	number := strings.TrimPrefix(strings.TrimPrefix(m.from, "agent"), "owner") // the owner has none
	return run(h.Command("env", "AGENT_N="+number, "netsky", "channel", "send", to, "--id", m.id, "--kind", "brief", m.text))
}

func run(cmd *exec.Cmd) error {
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// keep saves the homes of a soak that has failed in the directory that NETSKY_HOSTS_KEEP names.
func (s *soak) keep() {
	dir := os.Getenv("NETSKY_HOSTS_KEEP")
	if dir == "" || !s.Failed() {
		return
	}
	for _, h := range s.world.Hosts() {
		if err := run(exec.Command("cp", "-a", h.Path("."), filepath.Join(dir, h.Name))); err != nil {
			s.Log(err)
		}
	}
}
