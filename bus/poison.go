package bus

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"netsky/agent"
	"netsky/bus/envelope"
	"netsky/bus/mailbox"
)

// poisoned is what lies in poison/, as the owner sees to it.
type poisoned struct{ *boxes }

// PoisonRetry moves a file from poison/ back to where it was found, its mailbox's inbox or
// outbox, and returns which. A file that would be poisoned again stays, and the error
// lists everything that is wrong with it.
func (p poisoned) PoisonRetry(id agent.ID, name string) (place Place, err error) {
	err = p.fromPoison(id, name, func(from int) (err error) {
		if place, err = p.retriable(from, id, name); err != nil {
			return err
		}
		to, err := mailbox.MakeDir(p.home, placePath(id, place))
		if err != nil {
			return err
		}
		defer unix.Close(to)
		_, err = move(from, name, to)
		return err
	})
	return place, err
}

// PoisonNow reports whether a file in poison/ was changed after it was put there, and what
// is wrong with it now: nil if it is valid, and goes back where it was found.
func (p poisoned) PoisonNow(id agent.ID, name string) (changed bool, err error) {
	from, err := p.openPlace(id, Poison)
	if err != nil {
		return false, err
	}
	defer unix.Close(from)
	st, err := mailbox.Lstat(from, name)
	origin := readWhy(from, name).Origin
	if err != nil || origin.Place == "" || mailbox.MarkOf(st).Same(origin.Mark) {
		return false, err
	}
	_, err = p.retriable(from, id, name)
	return true, err
}

// retriable returns where a file in poison/ belongs, or why it would be poisoned again.
func (p poisoned) retriable(poison int, id agent.ID, name string) (Place, error) {
	data, _, err := mailbox.ReadFile(poison, name, p.maxBytes)
	if err != nil {
		return "", fmt.Errorf("%s: %w", envelope.Plain(name), err)
	}
	w := readWhy(poison, name)
	place := Place(w.Origin.Place)
	if place == "" {
		place = p.guessOrigin(id, w.Text, data)
	}
	f := form{p.boxes, id, place}
	list := f.faults(data)
	if len(list) == 0 && place == Outbox {
		if e, err := f.parse(data); err == nil {
			list = p.unsendable(e)
		}
	}
	for i, err := range list {
		list[i] = fmt.Errorf("%s: %w", envelope.Plain(name), err)
	}
	return place, errors.Join(list...)
}

// guessOrigin is for files poisoned before the .why recorded where they were found.
func (p poisoned) guessOrigin(id agent.ID, why string, data []byte) Place {
	if strings.Contains(why, "but this is the outbox of") {
		return Outbox
	}
	e, _ := envelope.Decode(data, func(error) error { return nil })
	if e.To != "" && e.To != id {
		return Outbox
	}
	return Inbox
}

// unsendable lists the reasons for which the router would never send an envelope.
func (p poisoned) unsendable(e envelope.Envelope) (list []error) {
	if err := allowed(e); err != nil {
		list = append(list, err)
	}
	if inbox, err := p.openPlace(e.To, Inbox); err != nil {
		list = append(list, err)
	} else {
		unix.Close(inbox)
	}
	if e.Hops > mailbox.MaxHops {
		list = append(list, envelope.Invalidf("hops: %d exceeds the limit of %d", e.Hops, mailbox.MaxHops))
	}
	return list
}

// PoisonDrop removes a file from poison/ permanently.
func (p poisoned) PoisonDrop(id agent.ID, name string) error {
	return p.fromPoison(id, name, func(from int) error {
		err := mailbox.Unlink(from, name)
		if errors.Is(err, unix.EISDIR) || errors.Is(err, unix.EPERM) {
			err = unix.Unlinkat(from, name, unix.AT_REMOVEDIR)
		}
		if err != nil {
			return fmt.Errorf("remove %s: %w", envelope.Plain(name), err)
		}
		return nil
	})
}

func (p poisoned) fromPoison(id agent.ID, name string, do func(from int) error) error {
	if !envelope.IsFileName(name) {
		return fmt.Errorf("%s: not an envelope's file name", envelope.Plain(name))
	}
	from, err := p.openPlace(id, Poison)
	if err != nil {
		return err
	}
	defer unix.Close(from)
	if err := do(from); err != nil {
		return eachf("poison of "+string(id), err)
	}
	if err := mailbox.Unlink(from, envelope.WhyName(name)); err != nil && err != unix.ENOENT {
		return fmt.Errorf("remove the .why of %s: %w", envelope.Plain(name), err)
	}
	return nil
}

// eachf prefixes each of the joined errors with what it is about.
func eachf(about string, err error) error {
	list := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		list = slices.Clone(joined.Unwrap())
	}
	for i, err := range list {
		list[i] = fmt.Errorf("%s: %w", about, err)
	}
	return errors.Join(list...)
}
