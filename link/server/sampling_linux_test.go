//go:build !race

package server_test

import (
	"testing"

	"github.com/nats-io/nats-server/v2/server/pse"

	_ "netsky/link/server"
)

// NATS measures its process each second, from its package's initialisation on. No netsky lets it: an
// agent's keeper would never sleep.
func TestNoSampling(t *testing.T) {
	var cpu float64
	var rss, vss int64
	if err := pse.ProcUsage(&cpu, &rss, &vss); err == nil {
		t.Error("NATS reads what it measures")
	}
}
