package service

import (
	"context"
	"errors"
	"io/fs"
)

// A Status says what is registered.
type Status struct {
	Name      string `json:"name"`
	Installed bool   `json:"installed"`
	Outdated  bool   `json:"outdated,omitempty"` // another Install would change the files
	Enabled   string `json:"enabled"`            // yes, no, unknown
	Active    string `json:"active"`             // of the watcher: yes, no, unknown
	Note      string `json:"note,omitempty"`     // when it begins
	Why       string `json:"why,omitempty"`      // why something is unknown, or not as it should be
	Files     []File `json:"-"`
}

// Inspect returns what is registered for a home. It changes nothing.
func Inspect(ctx context.Context, o Options) Status {
	s := Status{Name: o.name(), Enabled: "no", Active: "no"}
	p, err := o.plan()
	if err != nil {
		s.Why = err.Error()
		return s
	}
	s.Files = p.files
	found := 0
	for _, f := range p.files {
		switch have, err := o.own(f.Path); {
		case err == nil:
			found++
			s.Outdated = s.Outdated || have != f.Text
		case !errors.Is(err, fs.ErrNotExist):
			s.Why = err.Error()
		}
	}
	if found == 0 && len(p.packaged()) == 0 {
		return s
	}
	s.Installed, s.Note = true, p.note
	if found > 0 && found < len(p.files) {
		s.Outdated = true
	}
	for what, to := range map[string]*string{"enabled": &s.Enabled, "active": &s.Active} {
		word, err := o.ask(ctx, p.states[what])
		switch {
		case err == nil:
			*to = "yes"
		case word == "disabled" || word == "inactive" || word == "failed" || word == "not-found" || o.System == "darwin" && !errors.Is(err, fs.ErrNotExist):
			*to = "no"
		default:
			*to, s.Why = "unknown", err.Error()
		}
	}
	return s
}

// String says it in one line.
func (s Status) String() string {
	if !s.Installed {
		text := "not installed: nothing is started after a reboot; `netsky service install` changes that"
		if s.Why != "" {
			text += " (" + s.Why + ")"
		}
		return text
	}
	text := "installed as " + s.Name
	switch s.Enabled {
	case "yes":
		text += ", enabled"
	case "no":
		text += ", not enabled: nothing is started after a reboot"
	default:
		text += ", enabled or not is unknown"
	}
	switch s.Active {
	case "yes":
		text += ", watching the daemon"
	case "no":
		text += ", not watching the daemon"
	default:
		text += ", watching the daemon or not is unknown"
	}
	if s.Outdated {
		text += "; `netsky service install` renews its files"
	}
	if s.Why != "" {
		text += " (" + s.Why + ")"
	}
	return text + "; " + s.Note
}
