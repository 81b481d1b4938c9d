package words_test

import (
	"testing"
	"time"

	"netsky/internal/testworld"
	"netsky/internal/words"
)

func TestSpan(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 4*time.Second + 400*time.Millisecond: "4s", 31 * time.Minute: "31m", 125 * time.Minute: "2h5m", 70 * time.Minute: "1h10m", 168 * time.Hour: "168h",
	} {
		testworld.Equal(t, words.Span(d), want, "Span(%s)", d)
	}
}

func TestSize(t *testing.T) {
	for n, want := range map[int64]string{0: "0 KiB", 450_560: "440 KiB", 10 << 20: "10 MiB", 1 << 30: "1024 MiB", 10 << 30: "10 GiB"} {
		testworld.Equal(t, words.Size(n), want, "Size(%d)", n)
	}
}
