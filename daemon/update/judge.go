package update

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/daemon"
	"netsky/home"
	"netsky/internal/proc"
	"netsky/store"
)

const (
	lookEvery = 100 * time.Millisecond
	hung      = 3 * daemon.HungAfter // a daemon that does not answer for so long hangs
)

// judge waits until the daemon operates, and then watches that it goes on to. The error says what it lacks.
func (s *Supervisor) judge(ctx context.Context, p daemon.Pong, b Build) error {
	if b.Version != "" && p.Version != b.Version {
		return fmt.Errorf("the daemon that answers is netsky %s, not %s", p.Version, b.Version)
	}
	who, err := proc.Find(p.PID)
	if err != nil {
		return fmt.Errorf("the daemon ended at once; %s has what it printed", s.Home.Path(home.LogDir+"/daemon.log"))
	}
	probe := ""
	defer func() { s.Home.Remove(outboxFile(probe)) }() // if nobody moves it
	for lacks := errors.New("not examined"); ; {
		err := s.lives(ctx, who)
		if err != nil && !errors.Is(err, daemon.ErrHung) {
			return err
		}
		if err == nil {
			if err = s.operates(ctx, &probe); err == nil {
				break
			}
		}
		if ctx.Err() == nil { // else it is about the time
			lacks = err
		}
		if err := s.wait(ctx, lookEvery); errors.Is(err, errLeft) {
			return err
		} else if err != nil {
			return fmt.Errorf("it did not operate within %v: %w", s.Within, lacks)
		}
	}
	step("operates")
	s.run.step().Note = "operates"
	if err := s.run.save(s.Home); err != nil {
		return err
	}
	ctx, answered := context.WithoutCancel(ctx), time.Now()
	for end := answered.Add(s.Watch); time.Now().Before(end) || time.Since(answered) > daemon.HungAfter; {
		switch err := s.lives(ctx, who); {
		case err == nil:
			answered = time.Now()
		case !errors.Is(err, daemon.ErrHung) || time.Since(answered) > hung:
			return err
		}
		if err := s.wait(ctx, lookEvery); err != nil {
			return err
		}
	}
	return nil
}

// lives returns an error unless that daemon still answers, within its bound of memory. It matches [daemon.ErrHung] of one
// that is only slow.
func (s *Supervisor) lives(ctx context.Context, who proc.Process) error {
	if used := who.Memory(); used > s.Memory {
		return fmt.Errorf("the daemon took %d MB of memory, more than %d MB, soon after its start", used>>20, s.Memory>>20)
	}
	p, err := daemon.Ping(ctx, s.Home)
	if s.unwanted() {
		return errLeft
	}
	switch {
	case errors.Is(err, daemon.ErrNotRunning) || err == nil && p.PID != who.PID:
		return fmt.Errorf("the daemon ended soon after its start; %s has what it printed", s.Home.Path(home.LogDir+"/daemon.log"))
	case err != nil && ctx.Err() == nil:
		return err
	}
	return nil
}

// operates looks once at all that the daemon does for others, and returns the first thing that it does not do yet.
func (s *Supervisor) operates(ctx context.Context, probe *string) error {
	if err := s.probe(ctx, probe); err != nil {
		return err
	}
	if err := daemon.Record(ctx, s.Home); err != nil {
		return fmt.Errorf("the records are not open: %w", err)
	}
	if spooled, err := store.SpoolSize(s.Home); err != nil || s.spooled > 0 && spooled.Files >= s.spooled {
		return errors.Join(errors.New("what waits in state/spool is not loaded"), err)
	}
	if s.run.Receiver && !s.receiver() {
		return errors.New("nobody receives agent0's mail")
	}
	return nil
}

// receiver reports whether somebody receives agent0's mail.
func (s *Supervisor) receiver() bool {
	held, err := s.Home.Locked(home.ReceiverLock(agent.Root))
	return err == nil && held
}

// probe puts a message into agent0's outbox, once, and returns an error until it has come back: the router has moved it to the
// owner's mailbox, and the daemon has filed it there. It is an acknowledgement of nothing, which nobody is shown.
func (s *Supervisor) probe(ctx context.Context, id *string) error {
	if *id == "" {
		if _, err := s.Bus.Count(agent.Root, bus.Outbox); errors.Is(err, bus.ErrNoMailbox) || errors.Is(err, fs.ErrNotExist) {
			*id = "none" // nobody has mail yet
			return nil
		}
		e := envelope.Envelope{
			ID: fmt.Sprintf("probe-%d", time.Now().UnixNano()), From: agent.Root, To: agent.Owner, Kind: envelope.KindAck, Via: "code",
			Text: "Does mail move?", Time: time.Now(),
		}
		data, err := e.MarshalJSON()
		if err == nil {
			err = s.Home.WriteFile(outboxFile(e.ID), data, false)
		}
		if err != nil {
			return fmt.Errorf("write to agent0's outbox: %w", err)
		}
		*id = e.ID
	}
	if *id == "none" {
		return nil
	}
	back, err := s.Bus.Received(ctx, agent.Owner, *id)
	if err != nil {
		return err
	}
	if len(back) > 0 && back[0].Place == bus.Delivered {
		return home.ShownMail(s.Home).Mark(back[0].Name) // it is nothing to read
	}
	return errors.New("mail is not moved: a message in agent0's outbox has not come back")
}

// outboxFile returns the probe's file in agent0's outbox.
func outboxFile(id string) string {
	return path.Join(home.Mailbox(agent.Root), string(bus.Outbox), id+".json")
}
