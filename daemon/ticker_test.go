package daemon_test

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"netsky/daemon"
	"netsky/internal/testworld"
)

// A tick that hangs is ended and reported, and the next one runs.
func TestHungTick(t *testing.T) {
	h := testworld.Home(t)
	bin := filepath.Join(t.TempDir(), "netsky")
	testworld.Program(t, bin, "#!/bin/sh\nsleep 600\n")
	ctx, cancel := context.WithCancel(t.Context())
	warned := make(chan error)
	ended := make(chan struct{})
	var out bytes.Buffer
	go func() {
		defer close(ended)
		daemon.RunTicker(ctx, daemon.TickerOptions{
			Home: h, Binary: bin, Every: 10 * time.Millisecond, Within: 50 * time.Millisecond, Out: &out,
			Warn: func(err error) {
				select {
				case warned <- err:
				case <-ctx.Done():
				}
			},
		})
	}()
	<-warned
	<-warned
	k, err := h.LoadTicker()
	if err != nil || k.Error != "the tick took longer than 50ms and was ended" || k.TickMS == 0 || h.Ticks() {
		t.Errorf("%+v %v", k, err)
	}
	cancel()
	<-ended
	if !strings.HasPrefix(out.String(), "[watchdog-tick ") {
		t.Errorf("%q", out.String())
	}
}
