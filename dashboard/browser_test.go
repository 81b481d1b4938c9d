package dashboard_test

import (
	"os"
	"testing"

	"netsky/internal/testworld"
)

var endChromium = func() {}

func TestMain(m *testing.M) {
	os.Setenv("GODEBUG", "tracebacklabels=1") // by which each test knows the goroutines of its own server
	status := m.Run()
	endChromium()
	os.Exit(status)
}

func (w *world) link(tb testing.TB) string {
	tb.Helper()
	l := testworld.Got(w.srv.Link("http://" + w.addr))(tb)
	return l.URL
}
