package demo

import (
	"context"

	"netsky/bus/courier"
)

// RunSteps is Run with a function that is called between two durable steps.
func RunSteps(ctx context.Context, o Options, step func(string)) error { return run(ctx, o, step) }

// Bare runs a demo without a courier until ctx ends, and returns both sides of what
// one would drive.
func Bare(ctx context.Context, o Options) (courier.Runtime, courier.Source, error) {
	d, _, err := newDemo(o, func(string) {})
	if err != nil {
		return nil, nil, err
	}
	d.look = func(context.Context) bool { return true }
	d.keys = readKeys(ctx, nil)
	go d.serve(ctx)
	return program{d}, d.queue, nil
}

// Wrap is how the pane breaks lines.
var Wrap = wrap
