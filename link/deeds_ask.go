package link

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"netsky/internal/advice"
	"netsky/internal/proc"
)

var (
	// ErrUndone is matched by the error of a deed that another host has not done, and will not do.
	ErrUndone = errors.New("nothing was done")
	// ErrUnknown is matched by that of one of which it is not known whether it was done.
	ErrUnknown = errors.New("it is not known whether it was done")
)

// endTime is how long the other host may take to hear that a deed is to end. It ends one of
// which nobody asks in any case.
const endTime = 2 * time.Second

// nothingRest is how long one rests that has heard nothing new, as the other host may say so at once for ever.
const nothingRest = 100 * time.Millisecond

// Ask has another host do a deed and writes to w what it says of that there. Without an error
// that is whole. If ctx ends, the deed does, as by Ctrl-C over there.
func (d *Deeds) Ask(ctx context.Context, host, deed string, request []byte, w io.Writer) error {
	if len(request) > maxDeed {
		return undone(host, fmt.Errorf("the request has %d bytes, and at most %d cross a link", len(request), maxDeed))
	}
	hello, err := d.ask(ctx, host, ask{Op: opHello})
	if err == nil && hello.Refused != "" {
		err = errors.New(hello.Refused)
	}
	if err != nil {
		return undone(host, err)
	}
	a := ask{Op: opDo, Number: hello.Number, Deed: deed, Request: request}
	if end, ok := ctx.Deadline(); ok {
		a.WithinMS = max(1, time.Until(end).Milliseconds())
	}
	v, err := d.ask(ctx, host, a)
	if err == nil && v.Refused != "" {
		return undone(host, errors.New(v.Refused))
	}
	return d.follow(ctx, host, hello.Number, w) // which also finds out what became of it if there was no answer
}

// follow writes what a deed says there until that has ended.
func (d *Deeds) follow(ctx context.Context, host, number string, w io.Writer) error {
	heard := time.Now()
	for at := int64(0); ; {
		v, err := d.ask(ctx, host, ask{Op: opNext, Number: number, At: at})
		switch {
		case ctx.Err() != nil:
			ended, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTime)
			defer cancel()
			_, _ = d.ask(ended, host, ask{Op: opEnd, Number: number})
			return unknown(host, context.Cause(ctx))
		case err != nil && time.Since(heard) > d.waits():
			return unknown(host, err)
		case err != nil:
			_ = proc.Sleep(ctx, lookEvery/2)
			continue
		case v.Refused != "":
			return undone(host, errors.New(v.Refused))
		case v.Lost:
			return unknown(host, errors.New("its daemon has ended, or its link has, since it was asked"))
		}
		if _, err := w.Write(v.Said); err != nil {
			return unknown(host, err)
		}
		if v.End {
			return nil
		}
		if heard, at = time.Now(), at+int64(len(v.Said)); len(v.Said) == 0 {
			_ = proc.Sleep(ctx, nothingRest)
		}
	}
}

func undone(host string, why error) error {
	return advice.With(fmt.Errorf("%s: %w; %w", host, why, ErrUndone), "`netsky link` shows the hosts; `netsky --on %s` reaches one by ssh", advice.Word(host))
}

func unknown(host string, why error) error {
	return advice.With(fmt.Errorf("%s: %w; %w", host, why, ErrUnknown), "`netsky --on %s status` shows how it is there", advice.Word(host))
}
