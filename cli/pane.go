package cli

import (
	"context"
	"fmt"
	"sync"

	"netsky/agent"
	"netsky/spawn"
	"netsky/tmux"
)

// agentPane is the pane of one start of an agent, as a process below it reaches
// it. It is found at the first use; tmux gives a pane's id to no other.
type agentPane struct {
	tmux  *tmux.Server
	id    agent.ID
	start string

	mu   sync.Mutex // guards what follows
	pane string
}

func (p *agentPane) find(ctx context.Context) (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pane != "" {
		return p.pane, nil
	}
	panes, err := p.tmux.Panes(ctx)
	if err != nil {
		return "", err
	}
	for _, q := range panes {
		// A person may have split the window: the agent's is the oldest pane.
		older := p.pane == "" || len(q.ID) < len(p.pane) || len(q.ID) == len(p.pane) && q.ID < p.pane
		if p.start != "" && q.Tags[spawn.TagStart] == p.start && older {
			p.pane = q.ID
		}
	}
	if p.pane == "" {
		return "", fmt.Errorf("%s: %w of its start", p.id, tmux.ErrNotFound)
	}
	return p.pane, nil
}

func (p *agentPane) Screen(ctx context.Context) (string, error) {
	pane, err := p.find(ctx)
	if err != nil {
		return "", err
	}
	return p.tmux.Capture(ctx, pane, tmux.Capture{Escapes: true})
}

func (p *agentPane) Keys(ctx context.Context, keys ...string) error {
	pane, err := p.find(ctx)
	if err != nil {
		return err
	}
	return p.tmux.Keys(ctx, pane, keys...)
}

func (p *agentPane) Paste(ctx context.Context, text string) error {
	pane, err := p.find(ctx)
	if err != nil {
		return err
	}
	return p.tmux.Paste(ctx, pane, text)
}
