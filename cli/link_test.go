package cli_test

import (
	"bufio"
	"context"
	"os"
	"path/filepath"
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
	s := mustNATS(t)
	laptop, build1 := mustWorld(t), mustWorld(t)
	laptop.must(t, "netsky", "link", "serve", "--name", "laptop", "--server", s.ClientURL())

	testworld.Equal(t, mustJoin(t, build1, laptop, s.ClientURL()), "build1 has joined the team of laptop; `netsky link` shows it")
	testworld.Contains(t, build1.must(t, "netsky", "link"), "build1 is a host of the team of laptop, by the server at "+s.ClientURL())
	laptop.must(t, "netsky", "link", "remove", "build1", "--yes")
	testworld.Lacks(t, laptop.must(t, "netsky", "link"), "build1")
}

// mustNATS starts a NATS server.
func mustNATS(t *testing.T) *server.Server {
	t.Helper()
	s := testworld.Got(server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true, AlwaysEnableNonce: true, JetStream: true, StoreDir: t.TempDir(),
	}))(t)
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(time.Minute) {
		t.Fatal("the server does not answer")
	}
	return s
}

// A team moves from one server to another, the owner's host first.
func TestLinkMove(t *testing.T) {
	t.Parallel()
	one, two := mustNATS(t), mustNATS(t)
	laptop, build1 := mustWorld(t), mustWorld(t)
	laptop.must(t, "netsky", "link", "serve", "--name", "laptop", "--server", one.ClientURL())
	mustJoin(t, build1, laptop, one.ClientURL())
	status, out := build1.says(t, "", "link", "move", two.ClientURL(), "--yes")
	testworld.Contains(t, out, two.ClientURL()+": it has nothing of a team")
	testworld.Equal(t, status, 1, "the exit status")
	testworld.Equal(t, laptop.must(t, "netsky", "link", "move", two.ClientURL(), "--yes"), "laptop reaches the team of laptop at "+two.ClientURL()+"\n")
	testworld.Wait(t, "build1 moves", func() bool {
		status, out = build1.says(t, "", "link", "move", two.ClientURL(), "--yes")
		return status == 0
	})
	one.Shutdown()
	for _, w := range []*world{laptop, build1} {
		w.linked(t)
		testworld.Contains(t, w.must(t, "netsky", "link"), "by the server at "+two.ClientURL())
	}
	build1.must(t, "netsky", "up", "0", "--type", "demo", "--no-attach")
	testworld.Contains(t, laptop.must(t, "netsky", "ask", "agent0@build1", "are you there?"), "are you there?")

	testworld.Contains(t, laptop.must(t, "netsky", "link", "move", "--yes"), "laptop runs the server of the team of laptop; on each other host: `netsky link move ADDRESS`")
	testworld.Wait(t, "its server", func() bool {
		return strings.Contains(laptop.must(t, "netsky", "link"), "by the server of this host, at nats://127.0.0.1:")
	})
}

// Of two machines one runs the server, and the other joins by ssh; mail then goes both ways.
func TestLinkBySSH(t *testing.T) {
	t.Parallel()
	build1, laptop := mustHosts(t, os.Getenv("PATH")) // build1 reaches laptop as "build1"
	said := laptop.must(t, "netsky", "link", "serve", "--name", "laptop")
	testworld.Contains(t, said, "laptop serves the team of laptop\nnext: ")
	testworld.Equal(t, mustJoin(t, build1, laptop, "ssh:build1"), "build1 has joined the team of laptop; `netsky link` shows it")
	build1.linked(t)
	build1.must(t, "netsky", "up", "0", "--type", "demo", "--no-attach")
	answer := laptop.must(t, "netsky", "ask", "agent0@build1", "are you there?")
	testworld.Contains(t, answer, "are you there?")
	laptop.must(t, "netsky", "link", "remove", "build1", "--yes")
	testworld.Wait(t, "build1 says that it was removed", func() bool {
		return strings.Contains(build1.must(t, "netsky", "link"), "laptop has removed this host from the team: `netsky link leave`")
	})
	said = build1.must(t, "netsky", "link", "leave", "--yes")
	testworld.Contains(t, said, "left the team; ")
	testworld.Contains(t, said, "next: on laptop, `netsky link remove build1` takes it off the list")
}

// A host that can't reach the owner's is invited: the owner's host keeps a tunnel to it open.
func TestLinkInvite(t *testing.T) {
	t.Parallel()
	laptop, build1 := mustHosts(t, os.Getenv("PATH")) // laptop reaches build1 as "build1"
	status, out := laptop.says(t, "", "link", "invite", "build1", "--yes")
	testworld.Contains(t, out, "this host belongs to no team")
	testworld.Equal(t, status != 0, true, "the exit status %d", status)
	laptop.must(t, "netsky", "link", "serve", "--name", "laptop")
	laptop.linked(t)
	liar := filepath.Join(build1.dir, "liar")
	testworld.Program(t, liar, "#!/bin/sh\necho joined\n")
	testworld.Must(t, os.WriteFile(laptop.mustHome(t).Path("netsky.toml"), []byte("[host.liar]\nssh = \"build1\"\nnetsky = \""+liar+"\"\n"), 0o600))
	if status, out := laptop.says(t, "", "link", "invite", "liar", "--yes"); status != 1 || !strings.Contains(out, "liar: is in a team that is not this one") {
		t.Errorf("one that only says that it has joined: exit status %d\n%s", status, out)
	}
	status, out = laptop.says(t, "", "link", "invite", "ssh://build1") // who is not asked has not rejected the host
	testworld.Equal(t, status, 2, "the exit status")
	testworld.Contains(t, out, "not a terminal; --yes confirms")
	testworld.Contains(t, laptop.must(t, "netsky", "link", "invite", "ssh://build1", "--name", "far", "--yes"), "far is in the team, as worker")
	build1.must(t, "netsky", "up", "0", "--type", "demo", "--no-attach")
	testworld.Contains(t, laptop.must(t, "netsky", "ask", "agent0@far", "are you there?"), "are you there?")
	testworld.Contains(t, laptop.must(t, "netsky", "--on", "far", "status"), "agent0")
	testworld.Contains(t, laptop.must(t, "netsky", "up", "1@far"), "far: agent1 ready") // where agent0 works
	testworld.Contains(t, laptop.must(t, "netsky", "--on", "far", "link"), "by the server of laptop, which keeps a tunnel to here")

	// Once more it keeps the tunnel, and takes another role only if one is named.
	said := laptop.must(t, "netsky", "link", "invite", "far", "--yes")
	testworld.Contains(t, said, "far is in the team, as worker; its agents are agent0@far and so on")
	testworld.Contains(t, laptop.must(t, "netsky", "ask", "agent0@far", "and now?"), "and now?")
	testworld.Contains(t, laptop.must(t, "netsky", "link", "invite", "ssh://build1", "--name", "far", "--role", "owner", "--yes"), "far is in the team, as owner")
	testworld.Contains(t, laptop.must(t, "netsky", "link", "invite", "far"), "far is in the team, as owner")
	laptop.must(t, "netsky", "link", "remove", "far", "--yes")
	testworld.Wait(t, "far says that it was removed", func() bool {
		return strings.Contains(build1.must(t, "netsky", "link"), "laptop has removed this host from the team: `netsky link leave`")
	})
	status, out = laptop.says(t, "", "link", "invite", "build1", "--name", "far", "--yes")
	testworld.Contains(t, out, "far: is in a team that is not this one, or was removed from it")
	testworld.Equal(t, status, 1, "the exit status")
	log := laptop.must(t, "netsky", "log")
	testworld.Contains(t, log, "far was let into the team, as worker")
	testworld.Contains(t, log, "far was removed from the team")
	testworld.Equal(t, string(testworld.Got(os.ReadFile(laptop.mustHome(t).Path("state/link/tunnels.json")))(t)), "{}\n", "tunnels")
}

// Whoever invites a host is told at once that the tunnel to it fails, and not when it has been tried for a minute.
func TestLinkInviteTunnel(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	testworld.Program(t, filepath.Join(dir, "ssh"), "#!/bin/sh\ncase \" $* \" in *' -R '*) echo no tunnels here >&2; exit 255 ;; esac\nPATH=${PATH#*:} exec ssh \"$@\"\n")
	laptop, build1 := mustHosts(t, os.Getenv("PATH"))
	laptop.env = append(laptop.env, "PATH="+dir+":"+strings.TrimPrefix(laptop.env[len(laptop.env)-1], "PATH="))
	laptop.must(t, "netsky", "link", "serve", "--name", "laptop")
	laptop.linked(t)
	waits, said := filepath.Join(build1.dir, "waits"), filepath.Join(build1.dir, "said")
	testworld.Program(t, waits, "#!/bin/sh\nwhile [ ! -e "+said+" ]; do sleep 0.1; done\nexit 1\n")
	testworld.Must(t, os.WriteFile(laptop.mustHome(t).Path("netsky.toml"), []byte("[host.build1]\nnetsky = \""+waits+"\"\n"), 0o600))
	ctx, stop := context.WithTimeout(t.Context(), testworld.Patience)
	defer stop()
	invite := laptop.command(ctx, "netsky", "link", "invite", "build1", "--yes")
	lines := bufio.NewScanner(testworld.Got(invite.StderrPipe())(t))
	testworld.Must(t, invite.Start())
	lines.Scan()
	testworld.Contains(t, lines.Text(), "build1: the tunnel to it is down: ")
	testworld.Must(t, os.WriteFile(said, nil, 0o600))
	for lines.Scan() {
	}
	testworld.Equal(t, invite.Wait() != nil, true, "it fails")
}

// linked waits until the host's link is connected.
func (w *world) linked(t *testing.T) {
	t.Helper()
	testworld.Wait(t, "the link", func() bool { return strings.Contains(w.must(t, "netsky", "link", "--json"), `"connected": true`) })
}

// mustJoin has a home join the team of an owner's, who approves the code, and returns the last
// that it says.
func mustJoin(t *testing.T, host, owner *world, at string) string {
	t.Helper()
	owner.linked(t)
	ctx, stop := context.WithTimeout(t.Context(), testworld.Patience)
	defer stop()
	join := host.command(ctx, "netsky", "link", "join", at, "--name", "build1", "--yes")
	var said strings.Builder
	join.Stderr = &said
	lines := bufio.NewScanner(testworld.Got(join.StdoutPipe())(t))
	testworld.Must(t, join.Start())
	if !lines.Scan() {
		t.Fatal(join.Wait(), &said)
	}
	code := lines.Text()
	testworld.Equal(t, regexp.MustCompile(`^[0-9]{4}-[0-9]{4}$`).MatchString(code), true, "the code %q", code)
	needs := owner.must(t, "netsky", "needs")
	testworld.Contains(t, needs, "build1 asks to join: compare the code "+code+" with the one that it shows; only in a terminal")
	testworld.Contains(t, needs, "`netsky link approve "+code+"`")
	testworld.Contains(t, owner.must(t, "netsky", "link"), "build1 asks to join, for ")
	testworld.Contains(t, owner.must(t, "netsky", "link", "approve", code), "build1 is in the team, as worker")
	testworld.Equal(t, lines.Scan(), true, "%s", &said)
	last := lines.Text()
	testworld.Must(t, join.Wait())
	return last
}

// A server's new certificate is taken once somebody has compared its fingerprint, and said until then.
func TestLinkCertificate(t *testing.T) {
	t.Parallel()
	laptop, build1 := mustWorld(t), mustWorld(t)
	said := laptop.must(t, "netsky", "link", "serve", "--name", "laptop", "--listen", "0.0.0.0:0")
	at := "nats://127.0.0.1" + regexp.MustCompile(`:[0-9]+`).FindString(strings.SplitAfter(said, "tls://0.0.0.0")[1]) // as well as tls://
	mustJoin(t, build1, laptop, at)
	build1.linked(t)
	if status, out := build1.says(t, "", "link", "move", at, "--yes"); status != 2 || !strings.Contains(out, "uses that server already") {
		t.Errorf("a move to where it is: exit status %d\n%s", status, out)
	}
	testworld.Must(t, os.Remove(laptop.mustHome(t).Path("state/link/server/tls.pem")))
	laptop.must(t, "netsky", "daemon", "restart")
	testworld.Wait(t, "it is said", func() bool {
		return strings.Contains(build1.must(t, "netsky", "link"), "another certificate than when this host joined; if the owner's host has made it a new one, `netsky link move "+at+"`")
	})
	build1.must(t, "netsky", "link", "move", at, "--yes")
	build1.linked(t)
}
