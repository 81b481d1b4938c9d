package fleet_test

import (
	"context"
	"testing"
	"time"

	"netsky/agent"
	"netsky/config"
	"netsky/fleet"
	"netsky/home"
	"netsky/internal/testworld"
	"netsky/spawn"
)

// A look that is recorded wrong, or in the future as the clock was ahead, does not keep the daemon from looking.
func TestLookForUpdates(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"future": `{"at_ms": 4102444800000}`, "huge": `{"at_ms": 9223372036854775807}`, "past": `{"at_ms": -9223372036854775808}`, "damaged": `{"at_ms"`, "none": "",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := testworld.FastHome(t)
			if text != "" {
				testworld.Must(t, h.WriteFile("state/self/look.json", []byte(text), false))
			}
			var c config.Config
			c.Self.From, c.Self.Check = t.TempDir(), "1ms"
			f := fleet.Program{Fleet: &fleet.Fleet{
				Home: h, Config: &c, Version: "1.0.0", Launcher: spawn.New(spawn.Site{Home: h, Bus: testworld.Bus(t, h, agent.Root, agent.Owner)}),
			}}
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- f.LookForUpdates(ctx) }()
			testworld.Wait(t, "a look", func() bool { return looked(h) })
			cancel()
			testworld.ErrorIs(t, <-ended, context.Canceled)
		})
	}
}

// looked reports whether the last look was now, as the clock has it.
func looked(h home.Dir) bool {
	l, err := fleet.LastLook(h)
	return err == nil && time.Since(time.UnixMilli(l.AtMS)).Abs() < time.Hour
}
