package attention

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"time"

	"netsky/agent"
	"netsky/cost/breaker"
)

// typing is how long a mistake in netsky.toml has to stay: until then somebody may be typing.
const typing = 5 * time.Second

// notices derives what the owner is told, each under the id that it has as long as it lasts.
func (s Sources) notices() (list []Notice) {
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
	return list
}

// limitSettles is how long an account that waits for its owner or for a stated time is observed before the owner is
// told, and passing how long one that may serve again at any moment is.
const limitSettles, passing = 5 * time.Second, 2 * time.Minute

// limited is about an account that serves nobody.
func (s Sources) limited(b breaker.State) Notice {
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
	for _, a := range s.Agents {
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
