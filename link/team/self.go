package team

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"netsky/agent"
	"netsky/home"
	"netsky/internal/advice"
)

// ServerFile says that this host runs the team's server; it is there only then.
const ServerFile = "state/link/server.json"

// SelfFile holds what this host was told when it joined.
const SelfFile = "state/link/self.json"

// A Self is who this host is in its team, pinned when it joined.
type Self struct {
	Name     string `json:"name"`
	Team     string `json:"team"`
	Owner    string `json:"owner"`     // the name of the owner's host
	OwnerKey string `json:"owner_key"` // whose signature counts on a team document
	Server   Server `json:"server"`
	Protocol int    `json:"protocol"`
}

// A Server is how this host reaches the server. The zero Server is the one that it runs.
type Server struct {
	Address string `json:"address,omitzero"` // ssh:me@server, tls://host:port or nats://host:port
	Creds   string `json:"creds,omitzero"`   // a file with credentials, of a server that is not netsky's
	// Fingerprint is the SHA-256 of the server's own certificate, in hex; "" if an authority
	// vouches for it, or it has none.
	Fingerprint string `json:"fingerprint,omitzero"`
}

// IsOwner reports whether this is the owner's host.
func (s Self) IsOwner() bool { return s.Name == s.Owner }

func (s Self) check() error {
	switch {
	case !agent.IsHost(s.Name):
		return fmt.Errorf("name %.40q: is no host's", s.Name)
	case !agent.IsHost(s.Owner):
		return fmt.Errorf("owner %.40q: is no host's name", s.Owner)
	case !isTeam(s.Team):
		return fmt.Errorf("team %.40q: want t- and 16 hex digits", s.Team)
	case !isKey(s.OwnerKey):
		return fmt.Errorf("owner_key %.60q: is no public key", s.OwnerKey)
	case s.Protocol > Protocol:
		return fmt.Errorf("protocol %d: was written by a newer netsky, this one knows %d", s.Protocol, Protocol)
	}
	return nil
}

// LoadSelf returns who this host is in its team. The error matches ErrNone if it belongs to
// none.
func LoadSelf(h home.Dir) (s Self, err error) {
	data, err := h.ReadFile(SelfFile, maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return s, advice.With(ErrNone, "`netsky link join ADDRESS` joins one, `netsky link serve` founds one")
	}
	if err == nil {
		err = json.Unmarshal(data, &s)
	}
	if err == nil {
		err = s.check()
	}
	if err != nil {
		return s, damaged(h, SelfFile, err)
	}
	return s, nil
}

// damaged is the error of a file of the link that can't be used. Nothing replaces the file.
func damaged(h home.Dir, file string, err error) error {
	var path *fs.PathError
	if !errors.As(err, &path) {
		err = fmt.Errorf("%s: %w", h.Path(file), err)
	}
	return advice.With(err, "put back a copy of it, or leave the team here with `netsky link leave` and join again")
}

// Found makes a team with this host as its owner's. In a home that has one it returns that.
// After a crash it can be repeated.
func Found(h home.Dir, name string, server Server) (t Team, err error) {
	if !agent.IsHost(name) {
		return t, fmt.Errorf("host %.40q: its name must be [a-z][a-z0-9-]*, at most %d characters", name, agent.MaxHost)
	}
	err = locked(h, func() error {
		if t, err = Load(h); !errors.Is(err, ErrNone) {
			return err
		}
		k, err := MakeKey(h)
		if err != nil {
			return err
		}
		var id [8]byte
		rand.Read(id[:])
		t = Team{ID: "t-" + hex.EncodeToString(id[:]), Serial: 1, Owner: name}
		t.Hosts = []Host{{Name: name, Key: k.Public(), Role: Owner, Added: now()}}
		return enter(h, Self{Name: name, Team: t.ID, Owner: name, OwnerKey: k.Public(), Server: server, Protocol: Protocol}, t.sign, k)
	})
	return t, err
}

// enter writes what makes this host one of a team. SelfFile is last: without it the host
// belongs to no team, and the rest is written again.
func enter(h home.Dir, s Self, document func(Key) ([]byte, error), k Key) error {
	data, err := document(k)
	if err != nil {
		return err
	}
	if err := h.WriteFile(TeamFile, data, true); err != nil {
		return err
	}
	return h.Save(SelfFile, s, true)
}

// Reach changes how this host reaches the server of its team.
func Reach(h home.Dir, server Server) (s Self, err error) {
	err = locked(h, func() error {
		if s, err = LoadSelf(h); err != nil {
			return err
		}
		s.Server = server
		return h.Save(SelfFile, s, true)
	})
	return s, err
}

// Admit adds a host to the team, or changes its role. Only the owner's host can.
func Admit(h home.Dir, add Host) (t Team, err error) {
	err = locked(h, func() error {
		t, err = admit(h, add)
		return err
	})
	return t, err
}

// admit is Admit; the caller holds the lock.
func admit(h home.Dir, add Host) (Team, error) {
	return change(h, func(t *Team) error {
		if err := t.admits(add); err != nil {
			return err
		}
		add.Added = now()
		if held, ok := t.Host(add.Name); ok {
			if add.Role == held.Role || held.Name == t.Owner {
				return errSame
			}
			add.Added = held.Added
		}
		t.Hosts = append(slices.DeleteFunc(t.Hosts, func(h Host) bool { return h.Name == add.Name }), add)
		return nil
	})
}

// admits returns why the team can't have a host.
func (t Team) admits(add Host) error {
	if err := add.check(); err != nil {
		return err
	}
	held, taken := t.Host(add.Name)
	other, known := t.Holder(add.Key)
	switch {
	case slices.Contains(t.Removed, add.Key):
		return advice.With(fmt.Errorf("%s: its key was removed from the team", add.Name), "`netsky link leave` there, then `netsky link join` makes another")
	case taken && held.Key != add.Key:
		return advice.With(fmt.Errorf("%s: is the name of another host of the team, whose key is %s", add.Name, Short(held.Key)), "`netsky link join ADDRESS --name NAME` there chooses another")
	case known && other.Name != add.Name:
		return advice.With(fmt.Errorf("%s: is in the team already, as %s", add.Name, other.Name), "`netsky link remove %s` first", other.Name)
	case !known && len(t.Hosts) >= MaxHosts:
		return advice.With(fmt.Errorf("%s: the team has %d hosts, which is the most", add.Name, MaxHosts), "`netsky link remove HOST` removes one")
	}
	return nil
}

// Remove removes a host from the team. Its key counts no longer. Only the owner's host can.
func Remove(h home.Dir, name string) (t Team, err error) {
	err = locked(h, func() error {
		t, err = remove(h, name)
		return err
	})
	return t, err
}

func remove(h home.Dir, name string) (Team, error) {
	return change(h, func(t *Team) error {
		gone, ok := t.Host(name)
		switch {
		case !ok:
			return advice.With(fmt.Errorf("%s: no host of the team has that name", name), "`netsky link` lists them")
		case name == t.Owner:
			return advice.With(fmt.Errorf("%s: is the owner's host, which can't be removed", name), "`netsky link leave` ends the team here")
		}
		t.Hosts = slices.DeleteFunc(t.Hosts, func(h Host) bool { return h.Name == name })
		t.Removed = append(t.Removed, gone.Key)
		t.Removed = t.Removed[max(0, len(t.Removed)-maxRemoved):]
		return nil
	})
}

// errSame says that a change changes nothing.
var errSame = errors.New("is so already")

// change signs a new document; the caller holds the lock.
func change(h home.Dir, edit func(*Team) error) (t Team, err error) {
	if _, err := LoadOwner(h); err != nil {
		return t, err
	}
	k, err := LoadKey(h)
	if err != nil {
		return t, err
	}
	if t, err = Load(h); err != nil {
		return t, err
	}
	if err = edit(&t); errors.Is(err, errSame) {
		return t, nil
	}
	if err != nil {
		return t, err
	}
	t.Serial = max(t.Serial+1, time.Now().UnixMilli()) // so it is larger than any before, also in a home that was restored from an older copy
	slices.SortFunc(t.Hosts, func(a, b Host) int { return strings.Compare(a.Name, b.Name) })
	if err = t.check(); err != nil {
		return t, err
	}
	data, err := t.sign(k)
	if err != nil {
		return t, err
	}
	return t, h.WriteFile(TeamFile, data, true)
}

// LoadOwner is LoadSelf for what only the owner's host can do.
func LoadOwner(h home.Dir) (Self, error) {
	s, err := LoadSelf(h)
	if err == nil && !s.IsOwner() {
		err = advice.With(fmt.Errorf("only the owner's host can change the team, which is %s", s.Owner), "run it on %s", s.Owner)
	}
	return s, err
}

// lockWait is how long another change may take.
const lockWait = 10 * time.Second

func locked(h home.Dir, do func() error) (err error) {
	ctx, stop := context.WithTimeout(context.Background(), lockWait)
	defer stop()
	l, err := h.WaitLock(ctx, home.LinkLock, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Unlock()) }()
	return do()
}

func isTeam(id string) bool {
	digits, ok := strings.CutPrefix(id, "t-")
	return ok && len(digits) == 16 && strings.Trim(digits, "0123456789abcdef") == ""
}

func now() time.Time { return time.Now().UTC().Truncate(time.Second) }

// Short is the beginning of a public key, for people.
func Short(key string) string { return key[:min(len(key), 9)] }

// Leave forgets the team, and the key that it knew this host by. Mail to other hosts stays.
// SelfFile is last: after a crash the host is still in a team that it can leave.
func Leave(h home.Dir) error {
	return locked(h, func() error {
		files := []string{ServerFile, AskedFile, TeamFile, KeyFile, SelfFile}
		requests, err := home.Records(h, JoinDir)
		for _, key := range requests {
			files = append([]string{requestFile(key)}, files...)
		}
		for _, file := range files {
			if err == nil {
				err = h.Remove(file)
			}
		}
		return err
	})
}
