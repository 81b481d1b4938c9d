package attention

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"netsky/agent"
	"netsky/bus/envelope"
	"netsky/cost/breaker"
	"netsky/internal/words"
	"netsky/spawn"
	"netsky/spawn/pane"
	"netsky/view"
	"netsky/watch/backoff"
	"netsky/watch/hang"
)

// typing is how long a mistake in netsky.toml has to stay: until then somebody may be typing.
const typing = 5 * time.Second

// Gone is that all sessions ended at once. It needs nobody, and so is on no list, and is told once.
const Gone Kind = "gone"

// A Notice is what the owner, or an agent, is told of one thing while it lasts.
type Notice struct {
	ID    string   `json:"-"`    // of the mail; the same thing has the same one
	Kind  Kind     `json:"kind"` // of the item on the list
	About agent.ID `json:"about,omitempty"`
	To    agent.ID `json:"-"` // who is told; "" is the owner
	Text  string   `json:"-"`
	// SinceMS is since when it has been so, 0 if that is when it was first seen; After is for how long it has
	// to be so before the owner is told.
	SinceMS int64         `json:"since_ms"`
	After   time.Duration `json:"-"`
	Every   time.Duration `json:"every,omitempty"` // after which it is told again, each time under the next id; 0: never
	Held    bool          `json:"-"`               // it is not told now
	Wake    bool          `json:"-"`               // agentinfinity is told, too, the first time
	Start   string        `json:"start,omitempty"` // of the agent
	Phone   bool          `json:"-"`               // the mail is for the owner's phone, too
	// What is recorded when it is first seen, when the owner is told, and, before for how long it was so, when
	// it is over; "" for nothing.
	Began  string        `json:"-"`
	Told   string        `json:"-"`
	Over   string        `json:"over,omitempty"`
	Dialog *agent.Dialog `json:"dialog,omitempty"` // at which the agent waits
	// WordMS is when the owner set the desired state of the agent under which it was so, if a later word of
	// theirs ends it.
	WordMS int64 `json:"word_ms,omitempty"`
}

// A Seen is an agent, and what its watchdog alone has to know of it.
type Seen struct {
	view.Agent
	By       agent.Reporter // who says what its state is
	Alive    bool
	Attended bool // somebody is at its pane
	Shows    bool // its program can show dialogs
	Dialog   agent.Dialog
}

// SeenOf returns that of an agent whose runtime is r.
func SeenOf(st spawn.Status, r any) Seen {
	_, served := r.(spawn.Served)
	_, screens := r.(pane.Screens)
	return Seen{Agent: view.Of(st, r), By: st.Report.By, Alive: st.Alive(), Attended: st.Watched(), Shows: served || screens, Dialog: st.Shown()}
}

// A scene is what the notices are derived from.
type scene struct {
	Sources
	seen     []Seen
	quiet    bool       // it is an hour of quiet
	answered []agent.ID // agents that have asked the owner, or were answered a moment ago
	restarts map[agent.ID]backoff.Record
	hangs    map[agent.ID]hang.Record // of those that hang
	repage   time.Duration            // see [TellerOptions]
	fell     *Notice                  // of Gone, or nil
}

// notices derives what the owner is told, and agents of their conflicts, each under the id that it has as long as it lasts.
func (s scene) notices() (list []Notice) {
	if s.Mistake != "" {
		list = append(list, Notice{
			ID: fmt.Sprintf("config-%x", sha256.Sum256([]byte(s.Mistake)))[:len("config-")+12], Kind: Config, After: typing,
			Text: fmt.Sprintf("%s\nUntil it is corrected, %s. What the daemon itself reads there counts after `netsky daemon restart`.", s.Mistake, s.Prevents),
			Told: s.Mistake + "; until it is corrected, " + s.Prevents,
		})
	}
	if s.Blind.Why != "" {
		list = append(list, Notice{
			ID: s.Blind.ID(), Kind: Daemon, SinceMS: s.Blind.SinceMS, Phone: true,
			Text: "netsky can't look after the agents: " + s.Blind.Why +
				"\nUntil it can, none that dies is started again, and you are told of none that hangs. `netsky doctor` looks for the cause.",
		})
	}
	for _, b := range s.Breakers {
		if !b.Unneeded(s.Now) && b.Fault.Reason != agent.Budget { // of which the owner is told by whoever accounts for it
			list = append(list, s.limited(b))
		}
	}
	for _, k := range s.Conflicts {
		for _, id := range k.Agents {
			list = append(list, Notice{
				ID: "conflict-" + k.Digest() + "-" + string(id), To: id, Kind: Conflict, SinceMS: int64(k.Since), Text: envelope.SafeText(k.Message(id)),
			})
		}
	}
	if s.fell != nil {
		list = append(list, *s.fell)
	}
	for _, a := range s.seen {
		list = append(list, s.about(a)...)
	}
	for _, id := range slices.SortedFunc(maps.Keys(s.restarts), agent.Compare) {
		if n, ok := looping(id, s.restarts[id]); ok {
			list = append(list, n)
		}
	}
	return list
}

// looping is about an agent whose restarts are of no use. It is so until it has been healthy for a while, or the owner
// acts.
func looping(id agent.ID, r backoff.Record) (n Notice, ok bool) {
	n = Notice{About: id, WordMS: r.WordMS, Wake: true}
	switch {
	case r.Stuck != "":
		n.ID, n.Kind = "no-restart-"+r.Stuck, Dead
		n.Text = fmt.Sprintf("%s is dead (%s) and can't be restarted: %s\nIt is tried again every %.0f minutes; `netsky agent %s` tries now, `netsky down %s` leaves it down.",
			id, r.How, r.Failed, backoff.Longest.Minutes(), id.N(), id.N())
	case r.LoopMS != 0:
		n.ID, n.Kind = fmt.Sprintf("crash-loop-%s-%d", id, r.LoopMS), Looping
		n.Text = fmt.Sprintf("%s is in a crash loop: it died %d times within %.0f minutes, the last time %s. "+
			"It is started again every %.0f minutes.\n`netsky show %s` shows its last lines, `netsky agent %s` starts it now, `netsky down %s` leaves it down.",
			id, backoff.LoopDeaths, backoff.LoopWithin.Minutes(), r.How, backoff.LoopEvery.Minutes(), id, id.N(), id.N())
	}
	return n, n.ID != ""
}

// about is about one agent.
func (s scene) about(a Seen) (list []Notice) {
	add := func(kind Kind, id, text string) *Notice {
		list = append(list, Notice{ID: id, Kind: kind, About: a.ID, Text: text})
		return &list[len(list)-1]
	}
	if a.State == agent.Starting && a.By == agent.ByWatchdog && a.Wanted && s.Now.Sub(a.Since.Time()) >= agent.StartsWithin {
		add(Unready, "unready-"+a.Start, fmt.Sprintf("%s has been started, and does not report that it is ready: %s.\n`netsky attach %[1]s` opens its pane, `netsky doctor` looks for the cause.", a.ID, a.Detail))
	}
	if r := s.hangs[a.ID]; r.Start != "" && s.repage > 0 {
		n := add(Hung, fmt.Sprintf("hang-%s-%d", r.Start, r.SinceMS), fmt.Sprintf("%s hangs: %s.\n`netsky peek %[1]s` shows its pane, `netsky attach %[1]s` opens it, `netsky interrupt %[1]s` ends its turn; `netsky quiet 1h` stops these messages for an hour.", a.ID, r.Words(s.Now)))
		n.SinceMS, n.Start, n.Every, n.Held, n.Wake = r.SinceMS, r.Start, s.repage, s.quiet, true
		n.Told = fmt.Sprintf("told you that it hangs (%s)", words.Span(s.Now.Sub(time.UnixMilli(r.SinceMS))))
	}
	if a.Asks() && a.Shows {
		list = append(list, s.dialog(a))
	}
	return list
}

const (
	// unattended is how long an agent may wait at a dialog with nobody at its pane before the owner is told.
	unattended = 30 * time.Second
	// implied is the same before it has a receiver: the dialog may be about to get its implied answer.
	implied = 5 * time.Second
	// answering is how long an agent may take to continue after an answer.
	answering = 15 * time.Second
)

// dialog is about an agent that waits at one, in a pane that nobody is at. A dialog that the owner was asked about
// as a question is not told again; one before the program has reported anything can be no such question.
func (s scene) dialog(a Seen) Notice {
	d := a.Dialog
	d.Name = cmp.Or(d.Name, "unknown dialog")
	d.Text = strings.ReplaceAll(d.Text, "<", "&lt;") // a pane's text must not look like a message
	n := Notice{
		ID: fmt.Sprintf("dialog-%s-%d", a.Start, int64(a.Since)), Kind: Dialog, About: a.ID, SinceMS: int64(a.Since), Start: a.Start, Dialog: &d,
		Told: "told you that it is waiting at a dialog: " + d.Name,
		Text: fmt.Sprintf("%s is waiting at a dialog in its pane (%s): %s\nOnly you can answer it: netsky attach %[1]s", a.ID, d.Name, cmp.Or(d.Text, d.Name)),
	}
	if a.Decidable {
		n.Text += fmt.Sprintf(", or netsky approve %s (--deny says no, --all-same answers all agents at the same dialog)", a.ID)
	}
	n.After, n.Held = unattended, a.Attended || slices.Contains(s.answered, a.ID)
	if a.By == agent.ByPane {
		n.After, n.Held = implied, a.Attended
	}
	return n
}

// limitSettles is how long an account that waits for its owner or for a stated time is observed before the owner is
// told, and passing how long one that may serve again at any moment is.
const limitSettles, passing = 5 * time.Second, 2 * time.Minute

// limited is about an account that serves nobody.
func (s scene) limited(b breaker.State) Notice {
	n := Notice{
		ID: fmt.Sprintf("limit-%s-%d", fmt.Sprintf("%x", sha256.Sum256([]byte(b.Account)))[:8], b.SinceMS), Kind: kindOf(b.Fault.Reason), About: b.By,
		SinceMS: b.SinceMS, After: passing,
		Began: fmt.Sprintf("%s: %s; its agents are given nothing", b.Account, b.Fault),
		Over:  fmt.Sprintf("%s is held back no longer (%s)", b.Account, b.Fault.Reason.Text()),
	}
	if b.Fault.Reason == agent.Login || b.Fault.Reason == agent.Billing || b.Fault.UntilMS != 0 {
		n.After = limitSettles
	}
	var names []string
	for _, a := range s.seen {
		if a.Fault.Account == b.Account {
			names = append(names, string(a.ID))
		}
	}
	if len(names) == 0 {
		names = []string{string(b.By)}
	}
	then := "They continue by themselves as soon as the model answers again."
	switch {
	case b.Fault.Reason == agent.Login:
		then = fmt.Sprintf("One of them tries now and then, and they continue by themselves as soon as the login is accepted. "+
			"If you have to log in (netsky attach %s, or the program's own login in a terminal), it is tried at once; so it is after `netsky up`.", b.By)
	case b.Fault.UntilMS != 0:
		then = fmt.Sprintf("They continue by themselves at %s.", agent.Clock(b.Retry(), s.Now))
	case b.Fault.Reason == agent.Billing:
		then = "They continue by themselves once the account has credit; one of them tries now and then."
	}
	if b.Fault.Scope != "" {
		then += " Agents on other models of this account work on."
	}
	n.Text = fmt.Sprintf("%s: %s\nIt concerns %s. Until then their mail waits, and what they were working on is given to them again.\n%s",
		b.Account, strings.ReplaceAll(b.Fault.String(), "<", "&lt;"), strings.Join(names, ", "), then)
	return n
}
