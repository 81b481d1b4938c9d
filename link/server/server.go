// Package server runs a NATS server with JetStream for the hosts of a team.
package server

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// ready is how long a server may take to answer.
const ready = 10 * time.Second

// Run serves until ctx ends.
func Run(ctx context.Context, o *server.Options) error {
	s, err := server.NewServer(o)
	if err != nil {
		return err
	}
	s.Start()
	defer s.WaitForShutdown()
	defer s.Shutdown()
	if !s.ReadyForConnections(ready) {
		return errors.New("link server: it did not answer within 10 s")
	}
	<-ctx.Done()
	return nil
}
