package daemon

import (
	"context"
	"errors"
	"fmt"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/store"
	"netsky/work/land"
)

// landings settles landings and checks that were cut off.
func (d *daemon) landings(ctx context.Context) error {
	h := d.o.Launcher.Home
	return land.Desk{
		Home: h, Journal: d.o.Launcher.Journal, Records: func(ctx context.Context) (*store.DB, error) { return store.OpenRead(ctx, h) },
		Say: func(format string, args ...any) { d.o.Log.Warn("landing", "what", fmt.Sprintf(format, args...)) },
		Tell: func(to agent.ID, key, text string) error {
			_, _, err := d.o.Bus.SendOnce(ctx, envelope.Envelope{
				ID: key, From: agent.Root, To: to, Kind: envelope.KindNotice, Via: "code", Text: envelope.SafeText(text), Time: time.Now(),
			})
			if errors.Is(err, bus.ErrUsed) {
				err = nil
			}
			return err
		},
	}.Keep(ctx)
}
