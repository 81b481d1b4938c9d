//go:build linux && live

package testhosts_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"

	"netsky/home"
	"netsky/internal/testhosts"
	"netsky/internal/testworld"
)

// up starts a host's agents, and its node of the cluster.
func (s *soak) up(h *testhosts.Host) {
	if s.cluster && len(h.Processes(node)) == 0 {
		// As a child of nsenter's it would stop that with itself, and then, once killed, keep its host from ending.
		testworld.Must(s, h.Command("setsid", "-f", "nats-server", "-c", "nats.conf", "-l", "nats.log").Run())
	}
	h.Run(s, "up", "2", "--type", "demo", "--no-attach")
}

// team joins the hosts: the first is the owner's.
func (s *soak) team() {
	owner := s.world.Hosts()[0]
	serve := []string{"link", "serve", "--name", owner.Name}
	if s.cluster {
		serve = append(serve, "--server", "nats://"+owner.Address+":4222", "--creds", "nats.creds")
	}
	owner.Run(s, serve...)
	for _, h := range s.world.Hosts()[1:] {
		s.world.Allow(h.Name, owner.Name)
		join := []string{"netsky", "link", "join", "ssh:me@" + owner.Name, "--name", h.Name, "--yes"}
		if s.cluster {
			join[3] = "nats://" + h.Address + ":4222"
			join = append(join, "--creds", "nats.creds")
		}
		var why string
		testworld.WaitOr(s, func() bool { why = s.join(owner, h, join); return why == "" }, func() string { return h.Name + " joins: " + why })
	}
	for _, h := range s.world.Hosts() {
		for _, o := range s.world.Hosts() {
			if o != h { // what is sent before is refused
				testworld.Wait(s, h.Name+" knows "+o.Name, func() bool { return testworld.Err(os.Stat(h.Path(".netsky/"+home.Links+"/"+o.Name))) == nil })
			}
		}
	}
}

// join has a host ask to join, and the owner's approve the code that it shows. It returns why
// it can't yet.
func (s *soak) join(owner, h *testhosts.Host, join []string) (why string) {
	cmd := h.Command(join...)
	var errs strings.Builder
	cmd.Stderr = &errs
	out := testworld.Got(cmd.StdoutPipe())(s)
	testworld.Must(s, cmd.Start())
	code, err := bufio.NewReader(out).ReadString('\n')
	if err == nil {
		owner.Run(s, "link", "approve", strings.TrimSpace(code))
	}
	if werr := cmd.Wait(); err == nil {
		testworld.Must(s, werr, "%s", &errs)
		return ""
	}
	return "it shows no code: " + errs.String()
}

// node is how a node of the cluster is called.
const node = "nats-server -c"

// prepareCluster puts a real nats-server on each host, which together are a cluster.
func (s *soak) prepareCluster() {
	program := filepath.Join(s.TempDir(), "nats-server")
	out, err := exec.Command("go", "build", "-o", program, "github.com/nats-io/nats-server/v2").CombinedOutput()
	testworld.Must(s, err, "%s", out)
	var routes []string
	for _, h := range s.world.Hosts() {
		routes = append(routes, fmt.Sprintf("%q", "nats://"+h.Address+":6222"))
	}
	accounts, user := s.accounts()
	for _, h := range s.world.Hosts() {
		h.Install(s, program)
		testworld.Must(s, os.WriteFile(h.Path("nats.creds"), user(), 0o644))
		text := fmt.Sprintf("server_name: %s\nlisten: %q\njetstream { store_dir: /home/me/nats, sync_interval: always }\ncluster { name: soak, listen: %q, routes: [%s] }\n%s",
			h.Name, h.Address+":4222", h.Address+":6222", strings.Join(routes, ", "), accounts)
		testworld.Must(s, os.WriteFile(h.Path("nats.conf"), []byte(text), 0o644))
	}
}

// accounts returns the part of a node's configuration that says whose users may sign in, and
// what makes the credentials of such a user.
func (s *soak) accounts() (text string, user func() []byte) {
	operator, system, account := testworld.Got(nkeys.CreateOperator())(s), testworld.Got(nkeys.CreateAccount())(s), testworld.Got(nkeys.CreateAccount())(s)
	public := func(k nkeys.KeyPair) string { return testworld.Got(k.PublicKey())(s) }
	claim := jwt.NewAccountClaims(public(account))
	claim.Limits.JetStreamLimits = jwt.JetStreamLimits{MemoryStorage: jwt.NoLimit, DiskStorage: jwt.NoLimit, Streams: jwt.NoLimit, Consumer: jwt.NoLimit}
	text = fmt.Sprintf("operator: %s\nsystem_account: %s\nresolver: MEMORY\nresolver_preload: { %[2]s: %s, %s: %s }\n",
		testworld.Got(jwt.NewOperatorClaims(public(operator)).Encode(operator))(s),
		public(system), testworld.Got(jwt.NewAccountClaims(public(system)).Encode(operator))(s),
		public(account), testworld.Got(claim.Encode(operator))(s))
	return text, func() []byte {
		key := testworld.Got(nkeys.CreateUser())(s)
		token := testworld.Got(jwt.NewUserClaims(public(key)).Encode(account))(s)
		return testworld.Got(jwt.FormatUserConfig(token, testworld.Got(key.Seed())(s)))(s)
	}
}
