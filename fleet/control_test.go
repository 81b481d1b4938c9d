package fleet_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/config"
	"netsky/daemon"
	"netsky/fleet"
	"netsky/home"
	"netsky/internal/proc"
	"netsky/internal/testworld"
)

// noRoute says why a deed of which rights.go speaks is none of the control socket's.
var noRoute = map[string]string{
	"agent": "start, of one agent", "loop": "schedule-add, with now", "codex": "the program in a pane",
	"io serve -s imessage": "a server for a model", "channel drain AGENT": "prints what the reader has then", "inbox": "lists; the mailbox is read by the API of the dashboard",
	"daemon run": "is the daemon", "daemon stop": "would end what answers", "daemon restart": "ends what answers",
	"self update": "asks a person at a terminal", "self rollback": "asks a person at a terminal", "service run": "starts the daemon",
	"init": "asks a person at a terminal", "uninstall": "ends and removes the daemon", "demo": "makes another home", "drill": "makes another home",
	"service install": "writes the unit of this daemon", "service uninstall": "removes the unit of this daemon",
	"doctor --fix": "examines the daemon, too", "dashboard": "signs a browser in, which the daemon has a request for",
	"forget --unproved": "forget, with unproved", "check --set": "writes netsky.toml",
	"imessage history": "lists", "imessage send": "tries the phone", "imessage doctor": "tries the phone", "escalate": "is for when the daemon does not help",
	"imessage access ls": "is decided at a terminal", "imessage access allow": "is decided at a terminal",
	"imessage access deny": "is decided at a terminal", "imessage access pair": "is decided at a terminal",
	"link serve": "is decided at a terminal", "link invite": "is decided at a terminal", "link join": "is decided at a terminal", "link approve": "is decided at a terminal",
	"link reject": "is decided at a terminal", "link remove": "is decided at a terminal", "link leave": "is decided at a terminal", "link move": "is decided at a terminal",
	"deed on another host": "a deed below /hosts/",
	"on":                   "runs a verb by ssh", "hosts install": "asks a person at a terminal",
	"task of another's": "task-add, task-edit and task-start",
}

// Every row of rights.go has a route, or there is a reason; and the description says who may use it.
func TestDeeds(t *testing.T) {
	t.Parallel()
	d := fleet.Describe(testworld.FastHome(t), "v1")
	routes := map[string]fleet.Described{}
	for _, one := range d.Deeds {
		if one.Right != "" {
			routes[one.Right] = one
		}
	}
	for _, right := range fleet.Rights() {
		_, ok := routes[right]
		if why := noRoute[right]; ok == (why != "") {
			t.Errorf("%s: has a route: %v; the reason that it has none: %q", right, ok, why)
		}
		delete(routes, right)
	}
	for right, one := range routes {
		t.Errorf("%s is under %q, of which rights.go does not speak", one.Name, right)
	}
	i := slices.IndexFunc(d.Deeds, func(one fleet.Described) bool { return one.Name == "decide" })
	if i < 0 || !slices.Equal(d.Deeds[i].Who, []string{"owner"}) || d.Deeds[i].Request.Properties["deny"] == nil {
		t.Errorf("decide is described as %+v", d.Deeds[i])
	}
}

// A start that should have been refused runs this binary as if it were netsky: that must not run the tests again.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-") {
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// A socket is a control socket, and what it belongs to.
type socket struct {
	t    *testing.T
	home home.Dir
	bus  *bus.Bus
}

func newControl(t *testing.T) socket {
	t.Helper()
	c, _ := newControlWith(t, nil)
	return c
}

// newControlWith is newControl with other hosts, and also returns the daemon of which it is.
func newControlWith(t *testing.T, other fleet.Other) (socket, fleet.Daemon) {
	t.Helper()
	h := testworld.FastHome(t)
	b := testworld.Bus(t, h, agent.Owner, agent.Root, agent.Clone(1))
	var c config.Config
	f := testworld.Got(fleet.New(h, &c, agent.Owner, []string{"PATH=" + os.Getenv("PATH")}, "v1", nil))(t)
	t.Cleanup(func() { f.Launcher.Journal.Close() })
	mux := http.NewServeMux()
	d := fleet.Daemon{Fleet: f}.Offering()
	mux.Handle("/", d.Control(other))
	mux.HandleFunc("POST /probe", f.Probe)
	l, err := net.Listen("unix", h.Path(home.DaemonSocket))
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: mux, ConnContext: daemon.WithPeer, ErrorLog: log.New(t.Output(), "", 0)}
	go s.Serve(l)
	t.Cleanup(func() { s.Close() })
	return socket{t, h, b}, d
}

func client(socket string) *http.Client {
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}}
}

func (c socket) post(path string, body io.Reader) *json.Decoder {
	c.t.Helper()
	r := testworld.Got(client(c.home.Path(home.DaemonSocket)).Post("http://netsky"+path, "application/json", body))(c.t)
	c.t.Cleanup(func() { r.Body.Close() })
	return json.NewDecoder(r.Body)
}

// done returns the last event, and those before it as one text.
func (c socket) done(path, body string) (fleet.Done, string) {
	c.t.Helper()
	var before []string
	for d := c.post(path, strings.NewReader(body)); ; {
		var e fleet.Event
		testworld.Must(c.t, d.Decode(&e), "%v", path)
		if e.Done != nil {
			return *e.Done, strings.Join(before, "\n")
		}
		text := testworld.Got(json.Marshal(e))(c.t)
		before = append(before, string(text))
	}
}

// A deed is done as its verb does it, and what is wrong is said with the exit status of the verb.
func TestControl(t *testing.T) {
	t.Parallel()
	c := newControl(t)
	v, _ := c.done("/deeds/send", `{"to": "1", "text": "hello", "kind": "brief"}`)
	list, err := c.bus.List(agent.Clone(1), bus.Inbox, 0)
	if err != nil || v.Status != 0 || len(list) != 1 || list[0].Envelope.Text != "hello" || list[0].Envelope.From != agent.Owner {
		t.Errorf("sent: %+v; in the mailbox: %+v, %v", v, list, err)
	}
	v, _ = c.done("/deeds/quiet", `{"for": "2h"}`)
	if until, ok := v.Result.(map[string]any)["until"].(string); v.Status != 0 || !ok || until == "" {
		t.Errorf("quiet: %+v", v)
	}
	v, _ = c.done("/deeds/task-add", `{"title": "a task", "assignee": "agent7"}`)
	task, ok := v.Result.(map[string]any)["id"].(string)
	if v.Status != 0 || !ok {
		t.Fatalf("task-add: %+v (%+v)", v, v.Failed)
	}
	for path, want := range map[[2]string]struct {
		status int
		text   string
	}{
		{"/deeds/send", `{"to": "1", "texts": "hello"}`}:                        {2, `send: request: "texts": no such field`},
		{"/deeds/send", `{"to": "1", "text": 5}`}:                               {2, `send: request: "text": can't be a JSON number`},
		{"/deeds/send", `[]`}:                                                   {2, `send: request: "the whole": can't be a JSON [`},
		{"/deeds/send", `{"to" 1}`}:                                             {2, "send: request: is not JSON: byte 7: "},
		{"/deeds/sned", `{}`}:                                                   {2, `"sned": no such deed`},
		{"/deeds/task-start", `{"task": "` + task + `"}`}:                       {2, "dir: needed"},
		{"/deeds/send", `{"to": "1", "text": " "}`}:                             {2, "the text is empty"},
		{"/deeds/ask", `{"agent": "owner", "text": "so"}`}:                      {2, "owner"},
		{"/deeds/start", `{"agents": ["../1"]}`}:                                {2, "../1"},
		{"/deeds/start", `{"agents": ["agent7"]}`}:                              {2, "dir: needed"},
		{"/deeds/start", `{"agents": ["agent7"], "dir": "."}`}:                  {2, `dir: "."`},
		{"/deeds/start", `{"agents": ["1", "agent1"], "dir": "/"}`}:             {2, "agent1 twice"},
		{"/deeds/down", `{"all": true}`}:                                        {2, "`netsky down --all`"},
		{"/deeds/forget", `{"agents": ["agent7"]}`}:                             {1, "agent7: was never started"},
		{"/deeds/decide", `{"code": "abcde"}`}:                                  {1, "abcde"},
		{"/deeds/check", `{"agent": "1", "set": "true"}`}:                       {2, "`netsky check --set`"},
		{"/deeds/cancel", ``}:                                                   {2, "cancel: request: is empty"},
		{"/deeds/schedule-add", `{"when": "often", "agent": "1", "text": "x"}`}: {2, "often"},
	} {
		if v, _ := c.done(path[0], path[1]); v.Status != want.status || v.Result != nil || v.Failed == nil || !strings.Contains(v.Failed.Error, want.text) {
			t.Errorf("%s %s: %+v (%+v), want status %d and %q", path[0], path[1], v, v.Failed, want.status, want.text)
		}
	}
}

// Questions are answered by the body: ahead, once they are asked, or not at all.
func TestControlAsks(t *testing.T) {
	t.Parallel()
	c := newControl(t)
	v, before := c.done("/probe", `{"question": "why?"} {"answer": "because"}`)
	if want := "{\"step\":{\"line\":\"begun\"}}\n{\"warn\":{\"error\":\"careful\"}}\n{\"ask\":\"why?\"}"; v.Result != "because" || before != want {
		t.Errorf("answered ahead: %+v after %s", v, before)
	}
	if v, _ := c.done("/probe", `{"question": "why?"}`); v.Failed == nil || v.Failed.Error != fleet.ErrNobody.Error() {
		t.Errorf("not answered: %+v", v)
	}
	r, w := io.Pipe()
	go io.WriteString(w, `{"question": "now?"}`+"\n")
	for d := c.post("/probe", r); ; {
		var e fleet.Event
		testworld.Must(t, d.Decode(&e))
		if e.Ask != "" {
			go io.WriteString(w, `{"answer": "yes"}`+"\n")
		}
		if e.Done != nil {
			if w.Close(); e.Done.Result != "yes" {
				t.Errorf("answered once asked: %+v", e.Done)
			}
			return
		}
	}
}

// A deed ends with its connection, also if an answer in the body was not asked for, and if nobody reads what it says;
// and a body that goes on behind the deed is no next request.
func TestControlClosed(t *testing.T) {
	t.Parallel()
	c := newControl(t)
	open := func(body string) (net.Conn, *json.Decoder) {
		conn, err := net.Dial("unix", c.home.Path(home.DaemonSocket))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		conn.SetDeadline(time.Now().Add(2 * time.Minute))
		fmt.Fprintf(conn, "POST /probe HTTP/1.1\r\nHost: netsky\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n", len(body), body)
		r, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		return conn, json.NewDecoder(r.Body)
	}
	conn, events := open(`{"question": ""} {"answer": "no"} {"answer": "no"}`) // it waits until its context ends
	var e fleet.Event
	if err := events.Decode(&e); err != nil || e.Step == nil {
		t.Fatalf("%+v, %v", e, err)
	}
	conn.Close()
	ended := func(what string) {
		t.Helper()
		select {
		case <-fleet.Probed:
		case <-time.After(2 * time.Minute):
			t.Fatalf("a deed %s runs on", what)
		}
	}
	ended("whose connection is closed")
	open(`{"question": "a flood"}`)
	ended("that nobody reads of")

	conn, events = open(`{"question": "why?"} {"answer": "because"}`)
	for e = (fleet.Event{}); e.Done == nil; {
		if err := events.Decode(&e); err != nil {
			t.Fatal(err)
		}
	}
	fmt.Fprint(conn, "2\r\n{}\r\n0\r\n\r\n") // may fail: the connection is closed
	if rest, err := io.ReadAll(conn); errors.Is(err, os.ErrDeadlineExceeded) || len(rest) > len("0\r\n\r\n") {
		t.Errorf("behind a deed comes %q, %v", rest, err)
	}
}

const (
	socketVariable = "NETSKY_TEST_CONTROL"
	deedVariable   = "NETSKY_TEST_DEED"
)

// Whoever runs below an agent acts as that agent, not as the owner or another agent, whatever its environment says.
func TestControlActor(t *testing.T) {
	if socket := os.Getenv(socketVariable); socket != "" { // the agent's program
		r, err := client(socket).Post("http://netsky"+os.Getenv(deedVariable), "", strings.NewReader(`{}`))
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		io.Copy(os.Stdout, r.Body)
		return
	}
	t.Parallel()
	for _, tc := range []struct {
		keeper             bool
		number, deed, want string
	}{
		{true, "", "/deeds/quiet", "only the owner can do this"},
		{true, "0", "/deeds/interrupt", "not allowed for clones (this is agent1)"},
		{false, "0", "/hosts/build1/deeds/peek", "only the owner can do this"},
		{false, "1", "/deeds/quiet", "only the owner can do this"},
		{false, "77", "/deeds/quiet", "only the owner can do this"},
		{false, "x", "/deeds/quiet", "agentx"},
	} {
		if !tc.keeper && runtime.GOOS != "linux" { // which reports environments
			continue
		}
		c, _ := newControlWith(t, func(context.Context, string, string, []byte, io.Writer) error { return nil })
		if tc.keeper {
			if err := c.home.SaveKeeper(agent.Clone(1), agent.Keeper{Start: "s1", Own: proc.Self()}); err != nil {
				t.Fatal(err)
			}
		}
		cmd := exec.Command(os.Args[0], "-test.run", "^TestControlActor$", "-test.v")
		cmd.Env = append(os.Environ(), socketVariable+"="+c.home.Path(home.DaemonSocket), deedVariable+"="+tc.deed, "AGENT_N="+tc.number)
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), tc.want) || !strings.Contains(string(out), `"status":2`) {
			t.Errorf("%+v: %v: %s", tc, err, out)
		}
	}
}
