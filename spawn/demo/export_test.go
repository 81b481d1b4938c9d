package demo

import "context"

// RunSteps is Run with a function that is called between two durable steps.
func RunSteps(ctx context.Context, o Options, step func(string)) error { return run(ctx, o, step) }

// Wrap is how the pane breaks lines.
var Wrap = wrap
