package attention

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"time"

	"netsky/agent"
	"netsky/cost/breaker"
	"netsky/spawn"
)

// typing is how long a mistake in netsky.toml has to stay: until then somebody may be typing.
const typing = 5 * time.Second

// A Seen is an agent, and what its watchdog alone has to know of it.
type Seen struct {
	Agent
	By agent.Reporter // who says what its state is
}

// SeenOf returns that of an agent whose runtime is r.
func SeenOf(st spawn.Status, r any) Seen { return Seen{Agent: Of(st, r), By: st.Report.By} }

// A scene is what the notices are derived from.
type scene struct {
	Sources
	seen []Seen
}

// notices derives what the owner is told, each under the id that it has as long as it lasts.
func (s scene) notices() (list []Notice) {
	if s.Mistake != "" {
		list = append(list, Notice{
			ID: fmt.Sprintf("config-%x", sha256.Sum256([]byte(s.Mistake)))[:len("config-")+12], Kind: Config, After: typing,
			Text: fmt.Sprintf("%s\nUntil it is corrected, %s. What the daemon itself reads there counts after `netsky daemon stop` and `netsky up`.", s.Mistake, s.Prevents),
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
	for _, a := range s.seen {
		list = append(list, s.about(a)...)
	}
	return list
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
	return list
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
