package fleet

import (
	"context"
	"errors"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/time/rate"

	"netsky/attention"
	"netsky/config"
	"netsky/home"
	"netsky/link"
	"netsky/spawn"
	"netsky/store"
	"netsky/view"
)

// A Telling is what this host tells the owner's. It is made anew when something may have
// changed.
type Telling struct {
	home  home.Dir
	mail  *attention.Mail
	known func(context.Context) ([]view.Agent, uint64, error)

	records func() *store.DB
	journal *store.Journal
	braked  map[string]*rate.Limiter // by host, how many entries of its log are taken

	look   uint64    // of the list
	asked  home.Mark // of the approvals that the needs hold
	looked time.Time // when the needs were derived
	needs  jsontext.Value
	logged int64 // the last entry of the log that the following ends with
	log    jsontext.Value
}

// needsEvery is after how long it is looked for what shows neither in the agents' states nor
// among the approvals.
const needsEvery = 10 * time.Second

// NewTelling returns what is told of the netsky of a launcher. known returns the agents'
// states at the last look, and its number; records returns the open database, or nil.
func NewTelling(l *spawn.Launcher, known func(context.Context) ([]view.Agent, uint64, error), records func() *store.DB) *Telling {
	return &Telling{home: l.Home, mail: attention.NewMail(l.Bus), known: known, records: records, journal: l.Journal, braked: make(map[string]*rate.Limiter)}
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

// Entries returns the newest entries of the log here, nil as long as there is no database.
func (t *Telling) Entries(ctx context.Context) (jsontext.Value, error) {
	db := t.records()
	if db == nil {
		return nil, nil
	}
	last, err := db.LastLog(ctx)
	if err != nil || last == t.logged {
		return t.log, err
	}
	list, err := db.Logs(ctx, store.LogFilter{Own: true, Page: store.Page{Limit: attention.MaxEntries}})
	if err != nil {
		return nil, err
	}
	t.logged = last
	t.log, err = attention.TellEntries(list.Items)
	return t.log, err
}

// Entries of another host that are recorded a minute, after as many as it can tell at once.
// The rest comes when it tells them again, or is said to be missing.
const entriesAMinute = 60

// TakeEntries records what another host has told of its log, from the entry after from.Last on, and returns the last.
func (t *Telling) TakeEntries(ctx context.Context, from link.Host, told jsontext.Value) (int64, error) {
	brake := t.braked[from.Name]
	if brake == nil {
		brake = rate.NewLimiter(rate.Every(time.Minute/entriesAMinute), attention.MaxEntries)
		t.braked[from.Name] = brake
	}
	last := from.Last
	var ops []store.Op
	for _, e := range attention.ReadEntries(from, told, time.Now()) {
		if !brake.Allow() {
			break
		}
		last, ops = e.ID, append(ops, store.AddLog(e))
	}
	if len(ops) == 0 {
		return last, nil
	}
	if err := t.journal.Record(ctx, ops...); err != nil && !errors.Is(err, store.ErrSpooled) {
		return from.Last, err
	}
	return last, nil
}
