package link

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go/jetstream"

	"netsky/internal/proc"
	"netsky/link/team"
	"netsky/link/wire"
)

// errCopied ends the session of one of two homes that are the same host.
var errCopied = errors.New("another home on the team's server has this host's name and key")

// answerTime is how long another home may take to show that it lives, as it tells its state anew
// three times meanwhile.
func (s *session) answerTime() time.Duration { return 3*s.Renew + max(s.Renew/4, 2*tellEvery) }

// single returns once no other home is this host. Of a home and its copy the one that came
// later carries no mail: it would take what the other waits for. It says from time to time that
// it is there, which the other sees (teller.alone), and both report it. A home that was moved
// waits once for it to answer.
func (s *session) single(ctx context.Context) error {
	instance, err := team.Instance(s.Home)
	if err != nil {
		return err
	}
	for asked := (time.Time{}); ; {
		there, err := s.toldState(ctx)
		switch {
		case err != nil:
			s.trouble("this home", err)
		case there.Instance == "", there.Instance == instance && (asked.IsZero() || time.Since(asked) > s.answerTime()):
			s.trouble("this home", nil)
			return nil
		case there.Instance != instance && (asked.IsZero() || time.Since(asked) > s.answerTime()/2):
			s.trouble("this home", s.copied())
			asked = time.Now()
			if err := s.contest(ctx, instance); err != nil {
				s.trouble("this home", err)
			}
		}
		if err := proc.Sleep(ctx, lookEvery); err != nil {
			return err
		}
	}
}

// copied says what two homes of one name have to do.
func (s *session) copied() error {
	return fmt.Errorf("another home on the team's server is %s too, with the same key: one is a copy of the other; `netsky link leave` in the one that should not be, and one that was moved carries on within three minutes", s.self.Name)
}

// contest tells the state of a home that carries nothing, as another may be the same host.
func (s *session) contest(ctx context.Context, instance string) error {
	data, err := json.Marshal(State{Name: s.self.Name, Instance: instance, Version: s.Version, Protocol: wire.Protocol, Idle: true})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, ackTime)
	defer cancel()
	key := wire.StateKey(s.self.Name)
	return wire.PutState(ctx, s.js, s.key, key, idOf(key, time.Now()), data)
}

// toldState returns what this host has told last of itself, wherever it was; zero if that is nothing.
func (s *session) toldState(ctx context.Context) (there State, err error) {
	ctx, cancel := context.WithTimeout(ctx, ackTime)
	defer cancel()
	states, err := wire.States(ctx, s.js)
	if err != nil {
		return there, err
	}
	m, err := wire.GetState(ctx, states, wire.StateKey(s.self.Name))
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return there, nil
	}
	if err != nil {
		return there, err
	}
	if wire.VerifyState(s.key.Public(), m) != nil {
		return there, nil // nobody's
	}
	return there, json.Unmarshal(m.Data, &there)
}
