package cli_test

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"netsky/agent"
)

// A daemon of another version is named by status, with what to do.
func TestStatusNamesOtherVersion(t *testing.T) {
	t.Parallel()
	w := mustWorld(t)
	w.must(t, "netsky", "init")
	if err := os.MkdirAll(filepath.Join(w.home, agent.RunDir), 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", filepath.Join(w.home, agent.DaemonSocket))
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"pid":%d,"start_ms":1,"version":"0.0.9","binary":%q}`, os.Getpid(), os.Args[0])
	})}
	done := make(chan error, 1)
	go func() { done <- srv.Serve(l) }()
	t.Cleanup(func() { srv.Close(); <-done })
	out := w.must(t, "netsky", "status")
	if !strings.Contains(out, "! the daemon is version 0.0.9, this netsky ") || !strings.Contains(out, "netsky daemon stop") {
		t.Errorf("status says:\n%s", out)
	}
}
