package link

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"netsky/home"
	"netsky/internal/advice"
	"netsky/link/team"
	"netsky/link/wire"
)

// SignIn returns the options of a connection of this host.
func SignIn(self team.Self, key team.Key) []nats.Option {
	list := []nats.Option{nats.Name(self.Name), nats.CustomInboxPrefix(wire.Inbox(self.Name))}
	if self.Server.Creds == "" {
		list = append(list, key.SignIn())
	}
	return list
}

// Known returns an error if a server, to which this host has signed in, is not its team's.
func Known(ctx context.Context, h home.Dir, self team.Self, nc *nats.Conn) error {
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	kv, err := js.KeyValue(ctx, wire.Team)
	if err != nil && self.IsOwner() { // whose host makes what a server needs
		return nil
	}
	if err != nil {
		return advice.With(fmt.Errorf("it has nothing of a team: %w", err), "`netsky link move` on %s first", self.Owner)
	}
	v, err := kv.Get(ctx, wire.TeamKey)
	if err == nil { // else the owner's host is to tell it
		_, _, err = team.Accept(h, v.Value())
		return err
	}
	return nil
}
