package upkeep

import (
	"context"
	"fmt"
	"time"

	"netsky/home"
	"netsky/internal/words"
	"netsky/store"
)

const (
	// steps is in how many parts the time that records are kept is shortened if they are too
	// much.
	steps = 8
	// mostRewritten is how much a database may hold, in bytes, that is rewritten to make it
	// shorter. Others wait meanwhile.
	mostRewritten = 256 << 20
)

// records removes records that are old, or too much, and makes the file shorter.
func (p *pass) records(ctx context.Context) error {
	held, err := p.held(ctx)
	if err != nil {
		return err
	}
	there, err := p.inMailboxes(ctx)
	if err != nil {
		return err
	}
	before, err := p.db.Space(ctx)
	if err != nil {
		return err
	}
	longest, shortest := p.Bounds.keep(), p.Bounds.Mail
	why := "[records] keep = " + words.Span(longest)
	for i := range steps + 1 {
		keep := max(longest*time.Duration(steps-i)/steps, shortest)
		pass := &store.Pass{
			Before: p.now.Add(-keep), Key: fmt.Sprintf("%srecords-%d", p.key, i), Why: why, Early: i > 0,
			Held: func(id string) bool { return held(id) || there(id) },
		}
		for !pass.Done() {
			began, had := time.Now(), pass.Total()
			if err := p.db.Prune(ctx, pass); err != nil {
				return err
			}
			p.removed.Records += pass.Total() - had
			if err := p.rest(ctx, began); err != nil {
				return err
			}
		}
		s, err := p.db.Space(ctx)
		if err != nil {
			return err
		}
		if s.Used() <= p.Bounds.Bytes || keep == shortest {
			break
		}
		why = fmt.Sprintf("they exceeded [records] max_bytes = %d", p.Bounds.Bytes)
	}
	err = p.shorten(ctx)
	if after, serr := p.db.Space(ctx); serr == nil {
		p.removed.Bytes = max(before.File-after.File, 0)
	}
	return err
}

// shorten gives the database's free pages back to the disk, but for some that will be used
// soon.
func (p *pass) shorten(ctx context.Context) error {
	for {
		s, err := p.db.Space(ctx)
		switch {
		case err != nil || !s.Spare():
			return err
		case s.Whole():
			if s.Used() > mostRewritten || !p.room(3*s.Used()) {
				return nil // its free pages are used again
			}
			return p.db.Rewrite(ctx)
		}
		began := time.Now()
		if err := p.db.Shorten(ctx); err != nil {
			return err
		}
		if err := p.rest(ctx, began); err != nil {
			return err
		}
	}
}

// room reports whether the disk has so many bytes free.
func (p *pass) room(bytes int64) bool { return home.Room(p.Home.Root(), bytes) == nil }
