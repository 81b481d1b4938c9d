package cli

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
)

// signaled is the cause of a context that a signal has canceled.
type signaled struct{ syscall.Signal }

func (s signaled) Error() string { return s.String() + ": signal received" }

// Signals returns a context that the first of these signals cancels. After stop they are
// handled as before.
func Signals(parent context.Context, list ...os.Signal) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	c := make(chan os.Signal, 1)
	signal.Notify(c, list...)
	go func() {
		select {
		case s := <-c:
			if s, ok := s.(syscall.Signal); ok {
				cancel(signaled{s})
			}
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		signal.Stop(c)
		cancel(nil)
	}
}

// endedBy returns the signal that has canceled the context, SIGINT if it is unknown.
func endedBy(ctx context.Context) syscall.Signal {
	var s signaled
	if errors.As(context.Cause(ctx), &s) {
		return s.Signal
	}
	return syscall.SIGINT
}
