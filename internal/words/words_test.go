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
