package team

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"netsky/agent"
	"netsky/home"
)

// Protocol is the version of what hosts say to each other.
const Protocol = 1

// Limits of a team document.
const (
	MaxHosts   = 64
	maxRemoved = 1024
	maxFile    = 256 << 10
)

// TeamFile holds the team document, signed by the owner's host.
const TeamFile = "state/link/team.json"

// ErrNone is returned in a home that belongs to no team.
var ErrNone = errors.New("this host belongs to no team")

// A Role is what a host may ask of others.
type Role string

const (
	Owner  Role = "owner"  // deeds: start, stop, approve
	Worker Role = "worker" // nothing; it sends mail and tells its own state
)

// ParseRole returns the role of a name.
func ParseRole(s string) (Role, error) {
	if r := Role(s); r == Owner || r == Worker {
		return r, nil
	}
	return "", fmt.Errorf("role %q: must be %s or %s", s, Worker, Owner)
}

// A Host is a netsky home on a machine.
type Host struct {
	Name  string    `json:"name"`
	Key   string    `json:"key"` // its public key
	Role  Role      `json:"role"`
	Added time.Time `json:"added"`
}

// A Team is the hosts that belong together, as the owner's host says.
type Team struct {
	ID      string   `json:"team"`             // t- and 16 hex digits
	Serial  int64    `json:"serial"`           // of a later document it is larger
	Owner   string   `json:"owner"`            // the owner's host: where phone and page are
	Hosts   []Host   `json:"hosts"`            // by name
	Removed []string `json:"removed,omitzero"` // keys that count no longer
}

// Host returns the host of a name.
func (t Team) Host(name string) (Host, bool) {
	return find(t.Hosts, func(h Host) bool { return h.Name == name })
}

// Holder returns the host of a public key.
func (t Team) Holder(key string) (Host, bool) {
	return find(t.Hosts, func(h Host) bool { return h.Key == key })
}

func find(list []Host, is func(Host) bool) (h Host, ok bool) {
	if i := slices.IndexFunc(list, is); i >= 0 {
		return list[i], true
	}
	return h, false
}

// check returns what is wrong with a document.
func (t Team) check() error {
	owner, _ := t.Host(t.Owner)
	switch {
	case !isTeam(t.ID):
		return fmt.Errorf("team %.40q: want t- and 16 hex digits", t.ID)
	case t.Serial < 1:
		return fmt.Errorf("serial %d: must be at least 1", t.Serial)
	case len(t.Hosts) > MaxHosts:
		return fmt.Errorf("%d hosts: a team has at most %d", len(t.Hosts), MaxHosts)
	case len(t.Removed) > maxRemoved:
		return fmt.Errorf("%d removed keys: a team remembers at most %d", len(t.Removed), maxRemoved)
	case owner.Role != Owner:
		return fmt.Errorf("owner %.40q: is no host with the role %s", t.Owner, Owner)
	}
	names, keys := map[string]bool{}, map[string]bool{}
	for _, h := range t.Hosts {
		if err := h.check(); err != nil {
			return err
		}
		if names[h.Name] || keys[h.Key] || slices.Contains(t.Removed, h.Key) {
			return fmt.Errorf("host %s: its name or key is there twice, or removed", h.Name)
		}
		names[h.Name], keys[h.Key] = true, true
	}
	for _, k := range t.Removed {
		if !isKey(k) {
			return fmt.Errorf("removed key %.60q: is no public key", k)
		}
	}
	return nil
}

func (h Host) check() error {
	switch _, err := ParseRole(string(h.Role)); {
	case !agent.IsHost(h.Name):
		return fmt.Errorf("host %.40q: its name must be [a-z][a-z0-9-]*, at most %d characters", h.Name, agent.MaxHost)
	case !isKey(h.Key):
		return fmt.Errorf("host %s: key %.60q is no public key", h.Name, h.Key)
	case err != nil:
		return fmt.Errorf("host %s: %w", h.Name, err)
	}
	return nil
}

// signed is a document on disk and on the wire. The signature is over its exact bytes.
type signed struct {
	Document  jsontext.Value `json:"document"`
	Signature []byte         `json:"signature"`
}

// forTeam begins what is signed of a team document, so that nothing else that the key signs
// can pass for one.
const forTeam = "netsky team 1\n"

// sign returns the signed document.
func (t Team) sign(k Key) ([]byte, error) {
	doc, err := json.Marshal(t)
	if err != nil {
		return nil, err
	}
	sig, err := k.Sign(slices.Concat([]byte(forTeam), doc))
	if err != nil {
		return nil, err
	}
	return json.Marshal(signed{doc, sig})
}

// parse returns a document that was signed with a public key.
func parse(data []byte, owner string) (t Team, err error) {
	var s signed
	if len(data) > maxFile {
		return t, fmt.Errorf("is larger than %d bytes", maxFile)
	}
	if err := json.Unmarshal(data, &s); err != nil {
		return t, fmt.Errorf("is damaged: %w", err)
	}
	if !Signed(owner, slices.Concat([]byte(forTeam), s.Document), s.Signature) {
		return t, fmt.Errorf("is not signed by the owner's host (key %s)", Short(owner))
	}
	if err := json.Unmarshal(s.Document, &t); err != nil {
		return t, fmt.Errorf("is damaged: %w", err)
	}
	return t, t.check()
}

// Load returns the team of a home. The error matches ErrNone if it belongs to none.
func Load(h home.Dir) (Team, error) {
	t, _, err := Document(h)
	return t, err
}

// Document is Load, and also returns the document as it was signed, for other hosts.
func Document(h home.Dir) (t Team, data []byte, err error) {
	self, err := LoadSelf(h)
	if err != nil {
		return t, nil, err
	}
	if data, err = h.ReadFile(TeamFile, maxFile); err != nil {
		return t, nil, damaged(h, TeamFile, err)
	}
	if t, err = parse(data, self.OwnerKey); err == nil && t.ID != self.Team {
		err = fmt.Errorf("is of team %s, and this host belongs to %s", t.ID, self.Team)
	}
	if err != nil {
		return t, nil, damaged(h, TeamFile, err)
	}
	return t, data, nil
}

// Accept takes a newer team document. It reports whether the document is newer than the one
// that the home has, and survives a power loss once it is returned. What the owner's host has
// not signed, or is of another team, is refused.
func Accept(h home.Dir, data []byte) (t Team, newer bool, err error) {
	err = locked(h, func() error {
		self, err := LoadSelf(h)
		if err != nil {
			return err
		}
		if t, err = parse(data, self.OwnerKey); err != nil {
			return fmt.Errorf("a team document: %w", err)
		}
		if t.ID != self.Team {
			return fmt.Errorf("a team document: is of team %s, and this host belongs to %s", t.ID, self.Team)
		}
		if held, err := Load(h); err == nil && held.Serial >= t.Serial {
			t = held
			return nil
		}
		newer = true
		return h.WriteFile(TeamFile, data, true)
	})
	return t, newer, err
}
