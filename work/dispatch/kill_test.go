package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"syscall"
	"testing"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/courier"
	"netsky/bus/envelope"
	"netsky/daemon/observe"
	"netsky/home"
	"netsky/spawn"
	"netsky/store"
	"netsky/work/dispatch"
	"netsky/work/task"
)

// With these in its environment the test binary is an owner, a daemon and two workers in that home,
// and ends itself by SIGKILL after so many steps.
const (
	homeEnv  = "NETSKY_TEST_CREW"
	stepsEnv = "NETSKY_TEST_STEPS"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(homeEnv); dir != "" {
		left, _ := strconv.Atoi(os.Getenv(stepsEnv))
		dispatch.SetStep(func() {
			if left--; left == 0 {
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			}
		})
		if err := drive(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// drive has the owner start the three tasks that there are, and then the daemon and the workers at
// it, until nothing is left to do.
func drive(dir string) error {
	ctx := context.Background()
	h, err := home.At(dir)
	if err != nil {
		return err
	}
	b := bus.New(h, bus.Options{})
	db, err := store.Open(ctx, h)
	if err != nil {
		return err
	}
	defer db.Close()
	idle := func(id agent.ID) spawn.Status { return spawn.Status{Agent: id, State: agent.Idle, Start: "s"} }
	states := func(context.Context) (spawn.Statuses, error) {
		return spawn.Statuses{idle(agent.Root), idle("agent1"), idle("agent2")}, nil
	}
	c := dispatch.Crew{Home: h, Bus: b, Records: records{db}, By: agent.Owner}
	for _, one := range []struct {
		id string
		to agent.ID
	}{{"t-first-00", "agent1"}, {"t-second-0", "agent2"}, {"t-needless", "agent2"}} {
		if k, err := db.Task(ctx, one.id); err != nil || k.State == store.TaskBlocked {
			continue // who wanted it was told
		}
		_, err := c.Start(ctx, one.id, dispatch.Wish{Agent: one.to, Status: func(_ context.Context, id agent.ID) (spawn.Status, error) { return idle(id), nil }})
		if err != nil && !errors.Is(err, dispatch.ErrTaken) && !errors.Is(err, dispatch.ErrEnded) && !errors.Is(err, dispatch.ErrNeeds) {
			return err
		}
	}
	if _, err := c.Edit(ctx, "t-gone-000", task.Change{State: store.TaskCancelled}); err != nil {
		return err
	}
	keeper := dispatch.NewKeeper(spawn.New(spawn.Site{Home: h, Bus: b}), func() *store.DB { return db }, states, slog.New(slog.DiscardHandler))
	for range 20 {
		if err := (&observe.Observer{Bus: b, DB: db, Log: slog.New(slog.DiscardHandler)}).Sync(ctx); err != nil {
			return err
		}
		if n, err := keeper.Pass(ctx, db); n == 0 || err != nil {
			return err
		}
		for _, id := range []agent.ID{"agent1", "agent2"} {
			if err := obey(h, b, id); err != nil {
				return err
			}
		}
	}
	return errors.New("there is no end to it")
}

// obey has a worker answer its briefs, and note down each that it was given.
func obey(h home.Dir, b *bus.Bus, id agent.ID) error {
	_, err := b.Drain(context.Background(), id, 10, func(e envelope.Envelope) error {
		f, err := h.OpenAppend("given")
		if err != nil {
			return err
		}
		defer f.Close()
		if _, err := f.WriteString(e.ID + "\n"); err != nil {
			return err
		}
		_, err = courier.Answer(context.Background(), b, id, e, envelope.KindReply, "did it", nil)
		return err
	})
	return err
}
