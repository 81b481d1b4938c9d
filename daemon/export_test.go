package daemon

import (
	"context"
	"log/slog"
)

// A Service is a service for RunAll.
type Service struct {
	Name string
	Run  func(ctx context.Context) error
}

// RunAll runs services as the daemon runs its own.
func RunAll(ctx context.Context, list ...Service) error {
	var all []service
	for _, s := range list {
		all = append(all, service{s.Name, s.Run})
	}
	return runAll(ctx, slog.New(slog.DiscardHandler), all...)
}
