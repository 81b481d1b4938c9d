//go:build live

package dashboard_test

import (
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"netsky/dashboard"
	"netsky/internal/testworld"
)

// Row 33: connections that say half a header keep nobody out, and hold a place
// for seconds only.
func TestRow33Slowloris(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, func(o *dashboard.Options) { o.MaxConns = 4 })
	var slow []net.Conn
	for range 9 {
		slow = append(slow, w.half(t, "GET /healthz HTTP/1.1\r\nHost: local"))
	}
	for range 9 {
		if !w.up(t) {
			t.Error("one more is not served")
		}
	}
	for _, c := range slow {
		c.SetDeadline(time.Now().Add(testworld.Patience))
		if data, err := io.ReadAll(c); err != nil && !strings.Contains(err.Error(), "reset") || strings.Contains(string(data), "200 OK") {
			t.Errorf("a slow one got %q, %v", data, err)
		}
	}
}
