package upkeep

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"

	"netsky/agent"
	"netsky/bus"
	"netsky/home"
)

// attached removes files that came with mail: those that no file of the mailbox names any more,
// if they are as old as mail gets, and a day at least, since a file is stored before its message.
// Where mail that waits can't be read, they all stay.
func (p *pass) attached(ctx context.Context) error {
	boxes, err := p.bus(p.Bounds.Mail).All()
	if err != nil {
		return err
	}
	var errs []error
	for _, box := range boxes {
		if err := p.attachedTo(ctx, box); err != nil && ctx.Err() == nil {
			errs = append(errs, fmt.Errorf("attachments of %s: %w", box, err))
		}
	}
	return errors.Join(errs...)
}

func (p *pass) attachedTo(ctx context.Context, box agent.ID) error {
	old, err := p.oldFiles(home.Mailbox(box) + "/attach")
	if err != nil || len(old) == 0 {
		return err
	}
	named, err := p.named(ctx, box)
	if err != nil {
		return err
	}
	var gone []home.Item
	for _, i := range old {
		if !named["attach/"+path.Base(i.Rel)] {
			gone = append(gone, i)
		}
	}
	if len(gone) == 0 {
		return nil
	}
	text := fmt.Sprintf("removed %d files that came with mail to %s, which is removed too", len(gone), box)
	if err := p.record(ctx, "attached-"+string(box), text); err != nil {
		return err
	}
	var errs []error
	for _, i := range gone {
		if err := p.Home.Remove(i.Rel); err != nil {
			errs = append(errs, err)
			continue
		}
		p.removed.Files++
	}
	return errors.Join(errs...)
}

// oldFiles lists the regular files of a directory that can be removed by their age.
func (p *pass) oldFiles(rel string) (list []home.Item, err error) {
	dir, err := p.Home.OpenDir(rel, false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	for len(list) < mostFiles {
		names, err := dir.Readdirnames(512)
		for _, name := range names {
			i, serr := home.Stat(p.Home, rel+"/"+name)
			if serr == nil && i.Mode.IsRegular() && p.now.Sub(i.Changed) > max(p.Bounds.Mail, mailFloor) && len(list) < mostFiles {
				list = append(list, i)
			}
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	return list, nil
}

// named returns the attachments that the mail of a mailbox names, wherever it is there.
func (p *pass) named(ctx context.Context, box agent.ID) (map[string]bool, error) {
	b, named := p.bus(p.Bounds.Mail), make(map[string]bool)
	// In the order in which a file moves, so that none is missed that moves meanwhile.
	for _, at := range bus.Places() {
		names, err := b.Names(box, at)
		if err != nil && !errors.Is(err, bus.ErrNoMailbox) {
			return nil, err
		}
		for _, name := range names {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			e, err := b.Read(box, at, name)
			switch {
			case errors.Is(err, fs.ErrNotExist):
				continue // it has moved on
			case err == nil:
				err = e.Err
			}
			if err != nil && (at == bus.Inbox || at == bus.Claimed) {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			for _, a := range e.Envelope.Attachments {
				named[a] = true
			}
		}
	}
	return named, nil
}
