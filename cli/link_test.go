package cli_test

import (
	"bufio"
	"context"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"netsky/internal/testworld"
)

// Two homes become a team by a server that runs already: one shows a code, the other approves it.
func TestLinkJoin(t *testing.T) {
	t.Parallel()
	s := testworld.Got(server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true, AlwaysEnableNonce: true}))(t)
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(time.Minute) {
		t.Fatal("the server does not answer")
	}
	laptop, build1 := mustWorld(t), mustWorld(t)
	laptop.must(t, "netsky", "link", "serve", "--name", "laptop", "--server", s.ClientURL())

	testworld.Wait(t, "the link of the owner's host", func() bool { return strings.Contains(laptop.must(t, "netsky", "link", "--json"), `"connected": true`) })

	ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
	defer stop()
	join := build1.command(ctx, "netsky", "link", "join", s.ClientURL(), "--name", "build1", "--yes")
	var said strings.Builder
	join.Stderr = &said
	lines := bufio.NewScanner(testworld.Got(join.StdoutPipe())(t))
	testworld.Must(t, join.Start())
	if !lines.Scan() {
		t.Fatal(join.Wait(), &said)
	}
	code := lines.Text()
	testworld.Equal(t, regexp.MustCompile(`^[0-9]{4}-[0-9]{4}$`).MatchString(code), true, "the code %q", code)
	needs := laptop.must(t, "netsky", "needs")
	testworld.Contains(t, needs, "build1 asks to join: compare the code "+code+" with the one that it shows; only in a terminal")
	testworld.Contains(t, needs, "`netsky link approve "+code+"`")
	testworld.Contains(t, laptop.must(t, "netsky", "link"), "build1 asks to join, for ")
	testworld.Contains(t, laptop.must(t, "netsky", "link", "approve", code), "build1 is in the team, as worker")
	testworld.Equal(t, lines.Scan(), true, "%s", &said)
	testworld.Equal(t, lines.Text(), "build1 has joined the team of laptop; `netsky link` shows it")
	testworld.Must(t, join.Wait())
	testworld.Contains(t, build1.must(t, "netsky", "link"), "build1 is a host of the team of laptop, by the server at "+s.ClientURL())
	laptop.must(t, "netsky", "link", "remove", "build1", "--yes")
	testworld.Lacks(t, laptop.must(t, "netsky", "link"), "build1")
}
