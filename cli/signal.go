package cli

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
)

// signaled is the cause of a context that a signal has ended.
type signaled struct{ syscall.Signal }

func (s signaled) Error() string { return s.String() + ": told to end" }

// Signals returns a context that the first of the signals ends. After stop they
// are delivered as before.
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

// endedBy is the signal that has ended the context, SIGINT if that is not known.
func endedBy(ctx context.Context) syscall.Signal {
	var s signaled
	if errors.As(context.Cause(ctx), &s) {
		return s.Signal
	}
	return syscall.SIGINT
}
