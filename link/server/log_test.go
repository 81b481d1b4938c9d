package server

import (
	"log/slog"
	"testing"

	"golang.org/x/sys/unix"

	"netsky/internal/advice"
	"netsky/internal/testworld"
)

// A stream that could not be written stays so as long as the server runs, which therefore ends.
func TestWriteError(t *testing.T) {
	l := &natsLog{log: slog.New(slog.DiscardHandler), fatal: make(chan error, 1)}
	l.Errorf("%s - authentication error", "127.0.0.1")
	l.Errorf("JetStream stream '%s > %s' critical write error: %v", "STREAMS", "NETSKY-MAIL-a", unix.ENOSPC)
	l.Fatalf("and another")
	err := <-l.fatal
	testworld.Fails(t, err, "no space left on device", "the cause")
	if advice.Of(err) == "" {
		t.Error("nothing says what to do")
	}
}

// Strangers can't fill the log.
func TestLogFlood(t *testing.T) {
	var lines counter
	l := &natsLog{log: slog.New(slog.NewTextHandler(&lines, nil)), fatal: make(chan error, 1)}
	for range 1000 {
		l.Errorf("authentication error")
	}
	testworld.Equal(t, lines, linesAMinute, "lines")
}

type counter int

func (c *counter) Write(p []byte) (int, error) { *c++; return len(p), nil }
