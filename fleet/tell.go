package fleet

import (
	"context"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"netsky/attention"
	"netsky/config"
	"netsky/home"
	"netsky/spawn"
	"netsky/view"
)

// A Telling is what this host tells the owner's. It is made anew when something may have
// changed.
type Telling struct {
	home  home.Dir
	mail  *attention.Mail
	known func(context.Context) ([]view.Agent, uint64, error)

	look   uint64    // of the list
	asked  home.Mark // of the approvals that the needs hold
	looked time.Time // when the needs were derived
	needs  jsontext.Value
}

// needsEvery is after how long it is looked for what shows neither in the agents' states nor
// among the approvals.
const needsEvery = 10 * time.Second

// NewTelling returns what is told of the netsky of a launcher. known returns the agents'
// states at the last look, and its number.
func NewTelling(l *spawn.Launcher, known func(context.Context) ([]view.Agent, uint64, error)) *Telling {
	return &Telling{home: l.Home, mail: attention.NewMail(l.Bus), known: known}
}

// Agents returns the agents' states.
func (t *Telling) Agents(ctx context.Context) (jsontext.Value, error) {
	list, _, err := t.known(ctx)
	if err != nil {
		return nil, err
	}
	return attention.TellAgents(list)
}

// Needs returns what needs the owner here.
func (t *Telling) Needs(ctx context.Context) (jsontext.Value, error) {
	list, look, err := t.known(ctx)
	if err != nil {
		return nil, err
	}
	asked := t.home.Mark(home.ApprovalDir)
	if t.needs != nil && look == t.look && asked.Same(t.asked) && time.Since(t.looked) < needsEvery {
		return t.needs, nil
	}
	s := attention.Sources{Now: time.Now(), Agents: list, Daemon: attention.DaemonRuns} // this process
	s.Mistake, s.Prevents = config.Mistake(t.home)
	found, _ := attention.Collect(ctx, t.home, t.mail, s) // `netsky needs` here says what can't be read
	t.look, t.asked, t.looked = look, asked, s.Now
	t.needs, err = attention.TellNeeds(found)
	return t.needs, err
}
