package link

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"netsky/internal/proc"
	"netsky/link/team"
)

// explain says of an error of the connection what it means, and what to do.
func (s *session) explain(err error) error {
	refused := errors.Is(err, nats.ErrAuthorization) || errors.Is(err, nats.ErrAuthRevoked) || errors.Is(err, nats.ErrAuthExpired) || errors.Is(err, nats.ErrAccountAuthExpired)
	switch {
	case s.gone.Load():
		return s.removed()
	case errors.Is(err, io.EOF), errors.Is(err, nats.ErrNoServers):
		return errors.New("the server does not run, or has closed the connection")
	case errors.Is(err, ErrCertificate):
		return fmt.Errorf("%w; if the owner's host has made it a new one, `netsky link move %s` shows its fingerprint and asks", err, s.self.Server.Address)
	case errors.Is(err, nats.ErrNkeysNotSupported):
		return fmt.Errorf("the NATS server knows no keys: have its administrator add the user { nkey: %s }, or give you a file with credentials, for `netsky link join --creds FILE` after `netsky link leave`", s.key.Public())
	case refused && s.self.Server.Creds != "":
		return fmt.Errorf("%w: the server does not take the credentials in %s", err, s.self.Server.Creds)
	case refused:
		return fmt.Errorf("%w: the server does not know the key of %s", err, s.self.Name)
	}
	return err
}

// removed says that this host is in the team no more.
func (s *session) removed() error {
	return fmt.Errorf("%s has removed this host from the team: `netsky link leave`, then `netsky link join` asks to be let in again", s.self.Owner)
}

// standing asks the owner's host, while there is no connection, whether it has removed this
// one: the server tells nobody whose key it does not know. Whoever is between the hosts can say
// so too, and gains nothing.
func (s *session) standing(ctx context.Context) error {
	for !s.self.IsOwner() && s.self.Server.Creds == "" {
		if err := proc.Sleep(ctx, mostWait); err != nil {
			return err
		}
		if s.isConnected() {
			continue
		}
		nc, err := s.way().Connect(ctx, team.JoinOptions(s.self.Server)...)
		if errors.Is(err, ErrCertificate) {
			s.connected(s.explain(err)) // the library does not say that of a connection that it makes anew
		}
		if err != nil {
			continue // connect says why
		}
		removed, err := team.IsRemoved(ctx, nc, s.key.Public())
		nc.Close()
		if err == nil && removed {
			s.gone.Store(true)
			s.connected(s.removed())
		}
	}
	<-ctx.Done()
	return ctx.Err()
}

// copies says what the refusal of a cluster to keep three copies means.
func copies(err error) error {
	var e *jetstream.APIError
	if errors.As(err, &e) && (e.ErrorCode == noPeers || e.ErrorCode == noReplicas) {
		return fmt.Errorf("a team on a NATS cluster needs three nodes with JetStream, each of which keeps a copy: %s", e.Description)
	}
	return err
}

// Codes of the server's errors.
const (
	noPeers    jetstream.ErrorCode = 10005 // JSClusterNoPeersErr
	noReplicas jetstream.ErrorCode = 10074 // JSStreamReplicasNotSupportedErr
)
