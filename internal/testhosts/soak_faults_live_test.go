//go:build linux && live

package testhosts_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"golang.org/x/sys/unix"

	"netsky/internal/testhosts"
)

// A fault breaks something, says what, and returns how that is mended; nil: by itself. It
// returns "" if there is nothing to break.
type fault func(s *soak, rng *rand.Rand) (what string, mend func())

// faults are those that were caused, by kind.
type faults map[string]int

// Processes, by what is in their command lines.
const (
	daemon  = "netsky daemon"
	server  = "netsky link server"
	tunnel  = " -N -T "
	session = "sshd: me"
)

// kinds are the faults, the killing ones more often than others.
func (s *soak) kinds() []fault {
	list := []fault{killed(daemon), killed(daemon), stopped, linkDown, cut, slow, powerCut}
	if s.cluster {
		return append(list, killed(node), killed(node))
	}
	return append(list, killed(server), killed(server), killed(tunnel), killed(session))
}

// run causes one after the other until ctx ends, and mends all.
func (f *faults) run(ctx context.Context, s *soak) {
	*f = make(faults)
	rng, kinds := rand.New(rand.NewPCG(s.seed, 1)), s.kinds()
	for ctx.Err() == nil {
		what, mend := kinds[rng.IntN(len(kinds))](s, rng)
		if what != "" {
			(*f)[what]++
		}
		if mend != nil {
			rest(ctx, time.Second+upTo(rng, 7*time.Second))
			mend()
		}
		rest(ctx, upTo(rng, 4*time.Second))
	}
}

func upTo(rng *rand.Rand, d time.Duration) time.Duration { return time.Duration(rng.Int64N(int64(d))) }

func rest(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

func (f faults) String() string {
	total := 0
	for _, n := range f {
		total += n
	}
	return fmt.Sprintf("%d faults: %s", total, list(f))
}

func (s *soak) any(rng *rand.Rand) *testhosts.Host {
	list := s.world.Hosts()
	return list[rng.IntN(len(list))]
}

// killed kills such processes of one host that has any.
func killed(words string) fault {
	return func(s *soak, rng *rand.Rand) (string, func()) {
		list := s.world.Hosts()
		for _, i := range rng.Perm(len(list)) {
			if h := list[i]; h.Kill(words) > 0 {
				if words == node { // nobody else starts it again
					return "kill -9 of " + words, func() { s.up(h) }
				}
				return "kill -9 of " + words, nil
			}
		}
		return "", nil
	}
}

// stopped stops all of a host's processes between it and the others for a while: their
// connections stay open, and say nothing.
func stopped(s *soak, rng *rand.Rand) (string, func()) {
	h := s.any(rng)
	var list []interface{ Signal(unix.Signal) error }
	for _, words := range []string{daemon, server, tunnel, session, node} {
		for _, p := range h.Processes(words) {
			if p.Signal(unix.SIGSTOP) == nil {
				list = append(list, p)
			}
		}
	}
	return "all between the hosts stopped on one", func() {
		for _, p := range list {
			_ = p.Signal(unix.SIGCONT) // it may have ended
		}
	}
}

func linkDown(s *soak, rng *rand.Rand) (string, func()) {
	h := s.any(rng)
	h.LinkDown(s)
	return "link down", func() { h.LinkUp(s) }
}

// cut has the network lose what one host sends another, or both.
func cut(s *soak, rng *rand.Rand) (string, func()) {
	list, order := s.world.Hosts(), rng.Perm(3)
	a, b := list[order[0]].Name, list[order[1]].Name
	s.world.Cut(a, b)
	if rng.IntN(2) == 0 {
		return "half-open", s.world.Heal
	}
	s.world.Cut(b, a)
	return "partition", s.world.Heal
}

func slow(s *soak, rng *rand.Rand) (string, func()) {
	s.world.Slow(s.any(rng).Name, upTo(rng, 150*time.Millisecond), upTo(rng, 50*time.Millisecond), 0.1*rng.Float64())
	return "delay and loss", s.world.Heal
}

// powerCut ends all of a host's processes at once. Somebody starts the team there again.
func powerCut(s *soak, rng *rand.Rand) (string, func()) {
	h := s.any(rng)
	h.PowerOff()
	return "power cut", func() {
		h.Boot(s)
		s.up(h)
	}
}
