package server

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"netsky/home"
	"netsky/internal/advice"
	"netsky/internal/proc"
	"netsky/link/team"
)

// Files below the home, beside the team's.
const (
	SettingsFile = team.ServerFile        // a home that has it serves
	StateFile    = "run/link-server.json" // what the server last said of itself
	storeDir     = "state/link/server"
	keptDir      = storeDir + "/jetstream" // as NATS calls it: what the server keeps
	tlsFile      = storeDir + "/tls.pem"   // the server's own key and certificate
	maxFile      = 64 << 10
)

// Settings say where a home serves its team.
type Settings struct {
	Listen string `json:"listen"`        // host:port; with port 0 the server takes a free one
	Port   int    `json:"port,omitzero"` // which it keeps
}

// Local is what Listen is at first: only this machine's programs reach it, ssh among them.
const Local = "127.0.0.1:0"

// ErrNotServed is matched by the error of Load in a home that does not serve.
var ErrNotServed = advice.With(errors.New("this host runs no server of a team"), "`netsky link serve` has it run one")

// ErrEnded is what Trouble returns of a server that has ended without a word, as with its daemon.
var ErrEnded = advice.With(errors.New("it does not run"), "the daemon starts it again; its log in %s says why it has ended", home.LogDir)

// Load returns the settings of a home.
func Load(h home.Dir) (s Settings, err error) {
	data, err := h.ReadFile(SettingsFile, maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return s, ErrNotServed
	}
	if err == nil {
		err = json.Unmarshal(data, &s)
	}
	if err == nil {
		err = s.Check()
	}
	if err != nil {
		return s, advice.With(fmt.Errorf("%s: %w", SettingsFile, err), "`netsky link serve` writes it anew")
	}
	return s, nil
}

// Save makes a home serve; its daemon notices.
func (s Settings) Save(h home.Dir) error {
	if err := s.Check(); err != nil {
		return err
	}
	data, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return h.WriteFile(SettingsFile, append(data, '\n'), true)
}

// Check returns what is wrong with them.
func (s Settings) Check() error {
	host, port, err := net.SplitHostPort(s.Listen)
	if err != nil {
		return fmt.Errorf("listen %q: must be an address and a port, such as %s", s.Listen, Local)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || host == "" {
		return fmt.Errorf("listen %q: must be an address and a port, such as %s", s.Listen, Local)
	} else if s.Port < 0 || s.Port > 1<<16-1 || n != 0 && s.Port != 0 {
		return fmt.Errorf("port %d: must be one that the server took", s.Port)
	}
	return nil
}

// address returns the host and the port to listen on, 0 for a free one.
func (s Settings) address() (host string, port int) {
	host, text, _ := net.SplitHostPort(s.Listen)
	if port, _ = strconv.Atoi(text); port == 0 {
		port = s.Port
	}
	return host, port
}

// At reports whether that is the server of these settings.
func (s Settings) At(st State) bool {
	host, port := s.address()
	return strings.HasSuffix(st.Address, "://"+net.JoinHostPort(host, strconv.Itoa(port)))
}

// local reports whether only this machine's programs reach the server, which needs no TLS then.
func (s Settings) local() bool {
	host, _ := s.address()
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// A State is what a server says of itself.
type State struct {
	proc.Process
	Address     string    `json:"address,omitzero"`     // nats://host:port, or tls://host:port
	Fingerprint string    `json:"fingerprint,omitzero"` // the SHA-256 of its certificate, in hex
	At          time.Time `json:"at"`
	Error       string    `json:"error,omitzero"` // why it has ended
	Next        string    `json:"next,omitzero"`  // what to do about that
}

// Look returns what the server of a home said last, and whether it runs and serves.
func Look(h home.Dir) (s State, serving bool) {
	data, err := h.ReadFile(StateFile, maxFile)
	if err != nil || json.Unmarshal(data, &s) != nil {
		return State{}, false
	}
	return s, s.Error == "" && s.Alive()
}

// Trouble returns why the server of a home does not run although the home serves; nil if all
// is as it should be.
func Trouble(h home.Dir) error {
	if _, err := Load(h); errors.Is(err, ErrNotServed) {
		return nil
	} else if err != nil {
		return err
	}
	switch s, serving := Look(h); {
	case serving:
		return nil
	case s.Error != "" && s.Next != "":
		return advice.With(errors.New(s.Error), "%s", s.Next)
	case s.Error != "":
		return errors.New(s.Error)
	}
	return ErrEnded
}

func (s State) save(h home.Dir) error {
	s.Process, s.At = proc.Self(), time.Now().Round(0)
	data, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return h.WriteFile(StateFile, append(data, '\n'), false)
}
