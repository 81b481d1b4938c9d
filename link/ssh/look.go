package ssh

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"netsky/home"
	"netsky/internal/execx"
)

// A Look asks the daemon of a host for what a verb prints there, instead of a netsky that is started for it.
type Look struct {
	Words  []string `json:"words"`
	Netsky string   `json:"netsky"` // the program that would be started
	// Vars are LookVars as that program would have them, and TERM if it would have a terminal.
	Vars map[string]string `json:"vars"`
}

// LookVars are the variables that decide what such a verb prints.
var LookVars = []string{"AGENT_N", "HOME", "NETSKY_HOME", "NETSKY_TMUX_SOCKET", "NO_COLOR", "PATH", "TZ"}

const (
	look     = ".look" // in the name of a socket that leads to the daemon there
	said     = ".said" // in that of what the host has said of it
	lookTime = 5 * time.Second
)

var errNoLook = errors.New("no daemon answers there")

// Look returns what a verb prints on a host, as the daemon there says it over the connection that is kept.
// After an error, whichever it is, the verb is to be run.
func (c Client) Look(ctx context.Context, h Host, in io.Reader, out, errs io.Writer, words ...string) ([]byte, error) {
	socket, err := c.looking(h, look)
	if err != nil {
		return nil, err
	}
	dial := net.Dialer{}
	conn, err := dial.DialContext(ctx, "unix", socket)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	l, _, err := c.told(h)
	if err != nil {
		return nil, err
	}
	l.Words = words
	if terminals(in, out, errs) {
		l.Vars["TERM"] = execx.Value(c.Environ, "TERM")
	}
	body, err := json.Marshal(l)
	if err != nil {
		return nil, err
	}
	way := http.Client{Timeout: lookTime, Transport: &http.Transport{
		DisableCompression: true, DisableKeepAlives: true,
		DialContext: func(context.Context, string, string) (net.Conn, error) { return conn, nil },
	}}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://netsky/look", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	answer, err := way.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer+1))
	if err == nil && (answer.StatusCode != http.StatusOK || len(text) > maxAnswer) {
		err = errNoLook
	}
	return text, err
}

// OpenLook has the connection that is kept lead to the daemon there, for Look, as long as it lasts. It is
// tried once for each connection.
func (c Client) OpenLook(ctx context.Context, h Host) {
	file, err := c.looking(h, said)
	if err != nil {
		return
	}
	if _, err := os.Lstat(file); err == nil {
		return
	}
	script := h.Script() + `printf '%s\n' "${NETSKY_HOME:-$HOME/.netsky}/` + home.LookSocket + `" "$netsky"`
	for _, name := range LookVars {
		script += ` "$` + name + `"`
	}
	text, err := c.Ask(ctx, h, connectTime, nil, script)
	if err != nil || os.WriteFile(file, []byte(text), 0o600) != nil {
		return
	}
	_, there, err := c.told(h)
	socket, _ := c.looking(h, look)
	kept, _, _ := strings.Cut(socket, look)
	if err != nil || !filepath.IsAbs(there) || strings.ContainsFunc(there, special) { // ssh would read more into it
		return
	}
	// Without the user's configuration, whose forwards would be made, too.
	cmd, err := c.command(ctx, []string{"LogLevel=ERROR", "ControlPath=" + kept}, "-F", "none", "-O", "forward", "-L", socket+":"+there, "--", "netsky")
	if err == nil {
		_, _ = execx.Question{Program: cmd.Path, Args: cmd.Args[1:], Env: cmd.Env, Wait: connectTime}.Ask(ctx)
	}
}

// told reads what the host has said: where its socket is, and what a request has of it.
func (c Client) told(h Host) (l Look, there string, err error) {
	file, err := c.looking(h, said)
	if err != nil {
		return l, "", err
	}
	text, err := os.ReadFile(file)
	lines := strings.Split(string(text), "\n")
	if err != nil || len(lines) != len(LookVars)+3 { // the last one is empty
		return l, "", fmt.Errorf("%w: %w", errNoLook, err)
	}
	l = Look{Netsky: lines[1], Vars: make(map[string]string)}
	for i, name := range LookVars {
		l.Vars[name] = lines[2+i]
	}
	return l, lines[0], nil
}

// looking returns a file beside the socket of the connection that is kept to a host.
func (c Client) looking(h Host, what string) (string, error) {
	dir, prefix, err := c.sockets()
	return filepath.Join(dir, prefix+digest(h.Dest)+what+digest(h.Netsky)), err
}

// forget removes what Look has used over a connection that has ended.
func forget(socket string) {
	for _, what := range []string{look, said} {
		list, _ := filepath.Glob(socket + what + "*")
		for _, file := range list {
			os.Remove(file)
		}
	}
}
