package link

import (
	"errors"
	"io/fs"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"netsky/home"
	"netsky/link/team"
)

// Heard is where a host with the role owner keeps what the others tell, a file each.
const Heard = "state/link/hosts"

func heardFile(host string) string { return Heard + "/" + host + ".json" }

// A State is what a host tells of itself.
type State struct {
	Name     string         `json:"name"`
	Instance string         `json:"instance"` // tells the home from its copies
	Version  string         `json:"version"`
	Protocol int            `json:"protocol"`
	Idle     bool           `json:"idle,omitempty"` // it carries nothing, as another home may be the same host
	Agents   jsontext.Value `json:"agents,omitempty"`
}

// A Host is another host of the team, and what it has told last.
type Host struct {
	Name  string         `json:"name"`
	Seen  time.Time      `json:"seen,omitzero"` // when it has told last, by this host's clock; zero: it never has
	State State          `json:"state,omitzero"`
	Needs jsontext.Value `json:"needs,omitempty"` // what needs the owner there
	// Behind is how far its clock is behind this host's: what it tells is by its own.
	Behind time.Duration `json:"behind,omitempty"`

	IDs  map[string]string `json:"ids,omitempty"`  // of the messages that told, by key
	Last int64             `json:"last,omitempty"` // of the entries of its log that are recorded here
}

// Fresh is for how long what a host has told counts as so.
const Fresh = 100 * time.Second

// Up reports whether the host has told something lately.
func (h Host) Up(now time.Time) bool { return !h.Seen.IsZero() && now.Sub(h.Seen).Abs() < Fresh }

// Hosts returns the other hosts of the team, by name, on a host with the role owner: what
// they tell is for nobody else. A home without a team has none.
func Hosts(h home.Dir) ([]Host, error) {
	t, err := team.Load(h)
	if errors.Is(err, team.ErrNone) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	self, err := team.LoadSelf(h)
	if err != nil {
		return nil, err
	}
	if own, _ := t.Host(self.Name); own.Role != team.Owner {
		return nil, nil
	}
	var list []Host
	for _, one := range t.Hosts {
		if one.Name == self.Name {
			continue
		}
		heard, ferr := home.Load[Host](h, heardFile(one.Name))
		if ferr != nil && !errors.Is(ferr, fs.ErrNotExist) {
			err = errors.Join(err, ferr)
		}
		heard.Name = one.Name
		list = append(list, heard)
	}
	return list, err
}
