package attention

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/cost/breaker"
	"netsky/home"
	"netsky/store"
	"netsky/watch/backoff"
	"netsky/watch/hang"
	"netsky/work/merge"
)

// TellerOptions configure a Teller.
type TellerOptions struct {
	Home home.Dir
	Bus  *bus.Bus
	// Agents returns the agents as of the last look at them; false: nobody has looked yet.
	Agents func() (list []Seen, known bool)
	// Mistake returns what is wrong in the configuration now and what that prevents, "" for nothing. nil: nothing
	// ever is.
	Mistake func() (text, then string)
	Repage  time.Duration // after which the owner is told again that an agent hangs; 0: they are told of none
	Wakes   int           // how often agentinfinity may be woken in 24 hours
	// Pressed reports whether netsky has answered the dialog of that name under that start.
	Pressed func(id agent.ID, start, name string) bool
	// Fell returns what to tell of the last time that all sessions ended at once, nil if they never did; may be nil.
	Fell func() *Notice
	// Escalate reaches the owner outside of netsky and returns how; nil: there is no way.
	Escalate func(ctx context.Context, subject, body string) (by string, err error)
	Record   func(ctx context.Context, ops ...store.Op)
	Part     string // of netsky, for the records
	Log      *slog.Logger
}

// A Teller tells the owner by mail of what needs them, and agents of their conflicts, and takes that back when it is
// over. What was told is in state/attention.json, which the teller alone writes, before it sends anything. Without that
// file it tells all that holds once more, under the same ids, which has no further effect.
type Teller struct {
	o   TellerOptions
	mem *memory // nil: not read yet

	read              time.Time // when netsky.toml was, where these were found
	mistake, prevents string
	alerts            escalation
	said              map[string]string // the errors that were logged last, by what they are about
}

// NewTeller returns a Teller, which does nothing until Run.
func NewTeller(o TellerOptions) *Teller { return &Teller{o: o, said: make(map[string]string)} }

const tellEvery = 2 * time.Second

// Run tells the owner until ctx ends. The caller sees to it that there is one at a time.
func (t *Teller) Run(ctx context.Context) {
	tick := time.NewTicker(tellEvery)
	defer tick.Stop()
	for {
		if err := errors.Join(t.pass(ctx), t.escalate(ctx)); ctx.Err() == nil {
			t.failed("error", err)
		}
		select {
		case <-ctx.Done():
			if t.alerts.over != nil {
				<-t.alerts.over // another one repeats what was cut off
			}
			return
		case then := <-t.alerts.over:
			then()
		case <-tick.C:
		}
	}
}

// olds are the files of earlier versions in which memoryFile's contents were.
var olds = []string{"state/watchdog/mistake.json", "state/watchdog/limits.json", "state/watchdog/wakes.json", "state/watchdog/escalated.json", "state/watchdog/dialogs.json"}

// open reads what was told, once.
func (t *Teller) open() (err error) {
	if t.mem != nil {
		return nil
	}
	for _, old := range olds {
		err = errors.Join(err, t.o.Home.Remove(old))
	}
	m, lerr := home.Load[memory](t.o.Home, memoryFile)
	if !errors.Is(lerr, fs.ErrNotExist) {
		err = errors.Join(err, lerr)
	}
	if m.Standing == nil {
		m.Standing = make(map[string]*standing)
	}
	maps.DeleteFunc(m.Standing, func(_ string, s *standing) bool { return s == nil })
	t.mem = &m
	return err
}

func (t *Teller) save() error { return t.o.Home.Save(memoryFile, t.mem, false) }

// pass looks once, and tells and takes back what is due.
func (t *Teller) pass(ctx context.Context) (err error) {
	err = t.open()
	now := time.Now()
	from, lacks := t.sources(now)
	begun, due, over := t.mem.next(from.notices(), func(k Kind) bool { return lacks[k] }, now)
	for _, s := range begun {
		if s.Began != "" {
			t.event(ctx, s.ID, store.LevelWarn, s.About, "", s.Began)
		}
	}
	changed := len(begun) > 0
	for _, s := range over {
		if oerr := t.over(ctx, s); oerr != nil {
			err = errors.Join(err, oerr) // the next pass tries it again
			continue
		}
		delete(t.mem.Standing, s.ID)
		changed = true
	}
	for _, s := range due {
		s.ToldMS = now.UnixMilli()
	}
	if changed = changed || len(due) > 0; changed { // before it is told: else nobody would take it back after a crash
		err = errors.Join(err, t.save())
	}
	for _, s := range due {
		if terr := t.tell(ctx, s); terr != nil {
			err, s.ToldMS = errors.Join(err, terr), 1 // as on a full disk; the next pass tries it again
			continue
		}
		if s.Times == 0 && s.Wake {
			t.wake(ctx, s, now)
		}
		s.Times++
	}
	if len(due) > 0 {
		err = errors.Join(err, t.save())
	}
	return err
}

// sources are what the notices are derived from. Of what lacks, nothing is known now.
func (t *Teller) sources(now time.Time) (s scene, lacks map[Kind]bool) {
	s, lacks = scene{Sources: Sources{Now: now}}, make(map[Kind]bool)
	if t.o.Mistake != nil && now.Sub(t.read).Abs() >= typing {
		t.read = now
		t.mistake, t.prevents = t.o.Mistake()
	}
	s.Mistake, s.Prevents = t.mistake, t.prevents
	s.Blind = LoadBlind(t.o.Home)
	var known bool
	if s.seen, known = t.o.Agents(); !known {
		for _, k := range []Kind{Dialog, Unready, Hung} {
			lacks[k] = true
		}
	}
	var err error
	if s.Breakers, err = breaker.List(t.o.Home); err != nil {
		lacks[Login], lacks[Limit], lacks[Blocked] = true, true, true
	}
	t.failed("accounts", err)
	if s.Conflicts, err = merge.Load(t.o.Home); err != nil {
		lacks[Conflict] = true
	}
	t.failed("conflicts", err)
	if s.restarts, err = backoff.All(t.o.Home); err != nil {
		lacks[Looping], lacks[Dead] = true, true
	}
	t.failed("restarts", err)
	s.quiet = QuietNow(t.o.Home, now).UntilMS != 0
	if slices.ContainsFunc(s.seen, func(a Seen) bool { return a.Asks() }) {
		asked, err := home.Approvals(t.o.Home).List()
		t.failed("approvals", err)
		s.answered = home.Approvals(t.o.Home).JustSettled(answering)
		for _, q := range asked {
			s.answered = append(s.answered, q.Agent)
		}
		for _, a := range s.seen {
			if err != nil { // it may be any of them
				s.answered = append(s.answered, a.ID)
			}
		}
	}
	if t.o.Fell != nil {
		s.fell = t.o.Fell()
	}
	s.repage, s.hangs = t.o.Repage, make(map[agent.ID]hang.Record)
	for _, a := range s.seen {
		if a.State == agent.Hung {
			s.hangs[a.ID] = hang.Load(t.o.Home, a.ID, a.Start)
		}
	}
	return s, lacks
}

// failed logs what can't be read, once.
func (t *Teller) failed(what string, err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != t.said[what] && text != "" {
		t.o.Log.Warn("attention", what, text)
	}
	t.said[what] = text
}

// tell sends the mail.
func (t *Teller) tell(ctx context.Context, s *standing) error {
	e := envelope.Envelope{
		ID: s.mail(s.Times), From: s.from(), To: cmp.Or(s.To, agent.Owner), Kind: envelope.KindNotice, Via: "code", Text: s.Text, Time: time.Now(),
	}
	level := store.LevelWarn
	if s.Kind == Dialog {
		e.Kind, level = envelope.KindApproval, store.LevelInfo
	}
	if s.Phone {
		e.Extra = envelope.ToPhone()
	}
	if s.To != "" {
		_, _, err := t.o.Bus.SendOnce(ctx, e)
		if errors.Is(err, bus.ErrNoMailbox) || errors.Is(err, bus.ErrUsed) {
			return nil // the agent was removed, or has been told
		}
		return err
	}
	_, err := t.o.Bus.Send(ctx, e)
	if err == nil && s.Told != "" {
		t.event(ctx, e.ID, level, s.About, s.Start, s.Told)
	}
	return err
}

// over takes back what was told.
func (t *Teller) over(ctx context.Context, s *standing) error {
	if s.Over != "" {
		lasted := time.Since(time.UnixMilli(s.SinceMS)).Round(time.Second)
		t.event(ctx, s.ID+"-over", store.LevelInfo, s.About, "", fmt.Sprintf("%s, after %s", s.Over, lasted))
	}
	how, acted := t.ended(s)
	if s.Dialog != nil && s.Times > 0 {
		t.o.Record(ctx, store.AddLog{Key: s.ID + "-over", Part: "approval", Actor: s.About, About: s.ID, Text: how + ": " + s.Dialog.String()})
	}
	as := home.ShownMail(t.o.Home).MarkSettled
	if acted {
		as = home.ShownMail(t.o.Home).Mark
	}
	if s.ToldMS == 0 || s.Kind == Conflict || s.Kind == Gone {
		return nil
	}
	if err := t.o.Bus.Settle(ctx, bus.SettledMail{ID: s.ID, All: s.Every > 0, From: s.from(), Read: acted}); err != nil {
		return err
	}
	return t.mark(func(id string) bool { return id == s.ID || s.Every > 0 && strings.HasPrefix(id, s.ID+"-") }, as)
}

// ended says how a dialog has gone, and reports whether the owner has ended the thing, and so knows of it.
func (t *Teller) ended(s *standing) (how string, acted bool) {
	switch {
	case s.Dialog == nil && s.WordMS == 0:
		return "", s.Kind == Config
	case s.Dialog == nil:
		d, err := home.Desired(t.o.Home).Load(string(s.About))
		return "", err == nil && d.AtMS != s.WordMS
	}
	if k, err := t.o.Home.LoadKeeper(s.About); err != nil || k.Start != s.Start || k.EndedMS != 0 {
		return "gone with the agent's session", false
	}
	if t.o.Pressed(s.About, s.Start, s.Dialog.Name) {
		return "answered by netsky", false
	}
	return "answered in the pane", true
}

// event records what was seen or done, once by its key.
func (t *Teller) event(ctx context.Context, key, level string, id agent.ID, about, text string) {
	t.o.Log.Info("event", "agent", id, "text", text)
	t.o.Record(ctx, store.AddLog{Key: key, Level: level, Part: t.o.Part, Actor: id, About: about, Text: text})
}

// mark marks all mail to the owner of its ids that was not shown.
func (t *Teller) mark(its func(id string) bool, as func(files ...string) error) error {
	shown, err := home.ShownMail(t.o.Home).Names()
	if err != nil {
		return err
	}
	names, err := t.o.Bus.Mail(agent.Owner, false)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, bus.ErrNoMailbox) {
		return nil
	}
	if err != nil {
		return err
	}
	list, err := t.o.Bus.FindAll(agent.Owner, slices.DeleteFunc(names, func(name string) bool { return shown[name] }))
	var files []string
	for _, e := range list {
		if e.Err == nil && its(e.Envelope.ID) {
			files = append(files, e.Name)
		}
	}
	return errors.Join(err, as(files...))
}
