package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"netsky/internal/proc"
)

// A service runs until its context ends or it fails. Returning nil early is a failure.
type service struct {
	name string
	run  func(ctx context.Context) error
}

// stopWithin is the time that a service has to stop once its context has ended. It is as long as
// a call to tmux that has begun may take, and a text that is being sent: what became of it is on
// record then.
const stopWithin = 10 * time.Second

// runAll starts the services in order. When ctx or one of them ends, it stops them in
// reverse order, each when the one before has ended or its time is up. The error joins the
// cause, if that is a failure, and what failed meanwhile, each with the service's name.
func runAll(ctx context.Context, log *slog.Logger, list ...service) error {
	type ending struct {
		cancel context.CancelFunc
		ended  chan error // room for one
	}
	running := make([]ending, len(list))
	early := make(chan int, len(list)) // services that ended unasked
	for i, s := range list {
		sctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
		defer cancel()
		running[i] = ending{cancel, make(chan error, 1)}
		go func() {
			err := s.run(sctx)
			unasked := sctx.Err() == nil
			if err == nil && unasked {
				err = errors.New("ended by itself")
			}
			running[i].ended <- err
			if unasked {
				early <- i
			}
		}()
	}
	select {
	case <-ctx.Done():
	case <-early:
	}
	var failed []error
	for i, s := range slices.Backward(list) {
		running[i].cancel()
		var err error
		select {
		case err = <-running[i].ended:
		case <-time.After(stopWithin):
			err = fmt.Errorf("did not stop within %v", stopWithin)
		}
		if err != nil && !errors.Is(err, context.Canceled) {
			err = fmt.Errorf("%s: %w", s.name, err)
			log.Error("service ended", "service", s.name, "error", err)
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

// patient restarts a service when it fails, after 1 s, 2 s, … up to a minute: a full disk
// or a broken database must not stop the daemon's other services. A run of ten minutes
// counts as recovery.
func patient(log *slog.Logger, name string, run func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		for wait := time.Second; ; wait = min(2*wait, time.Minute) {
			began := time.Now()
			err := run(ctx)
			if ctx.Err() != nil {
				return nil
			}
			if time.Since(began) > 10*time.Minute {
				wait = time.Second
			}
			log.Warn("again", "service", name, "in", wait.String(), "error", err)
			if proc.Sleep(ctx, wait) != nil {
				return nil
			}
		}
	}
}
