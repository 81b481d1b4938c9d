package tmux

import (
	"context"
	"fmt"
	"sync"
)

// A TaggedPane is the pane of the session with a tag, as seen by a process below it. It
// is found at the first use; tmux gives a pane's id to no other.
type TaggedPane struct {
	Server     *Server
	Tag, Value string // Value "" finds none

	mu   sync.Mutex // guards the fields below
	pane string
}

func (p *TaggedPane) find(ctx context.Context) (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pane != "" {
		return p.pane, nil
	}
	panes, err := p.Server.Panes(ctx)
	if err != nil {
		return "", err
	}
	for _, q := range panes {
		// A person may have split the window: the agent's is the oldest pane.
		older := p.pane == "" || len(q.ID) < len(p.pane) || len(q.ID) == len(p.pane) && q.ID < p.pane
		if p.Value != "" && q.Tags[p.Tag] == p.Value && older {
			p.pane = q.ID
		}
	}
	if p.pane == "" {
		return "", fmt.Errorf("%w: none has %s %q", ErrNotFound, p.Tag, p.Value)
	}
	return p.pane, nil
}

// Screen returns what it shows, with its colours and attributes.
func (p *TaggedPane) Screen(ctx context.Context) (string, error) {
	pane, err := p.find(ctx)
	if err != nil {
		return "", err
	}
	return p.Server.Capture(ctx, pane, Capture{Escapes: true})
}

// Keys presses keys, by tmux's names for them.
func (p *TaggedPane) Keys(ctx context.Context, keys ...string) error {
	pane, err := p.find(ctx)
	if err != nil {
		return err
	}
	return p.Server.Keys(ctx, pane, keys...)
}

// Paste inserts text as if it had been pasted.
func (p *TaggedPane) Paste(ctx context.Context, text string) error {
	pane, err := p.find(ctx)
	if err != nil {
		return err
	}
	return p.Server.Paste(ctx, pane, text)
}
