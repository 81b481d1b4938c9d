package watch

import (
	"fmt"
	"time"

	"netsky/agent"
	"netsky/bus/courier"
	"netsky/cost/breaker"
	"netsky/home"
	"netsky/spawn"
)

// Accounted is implemented by a Runtime whose agents use a vendor's account.
type Accounted interface {
	// Account names the account that the launch uses, as its breaker does, "" if that is
	// unknown, and returns when its login last changed.
	Account(la agent.Launch) (name string, changed time.Time)
}

// askAgain is how long an account that serves nobody is believed: it may serve again early.
const askAgain = 30 * time.Second

// mayStart reports why an agent may not be started now as it was last, and when to ask
// again; "" if it may.
func (w *Watchdog) mayStart(st spawn.Status, now time.Time) (why string, again time.Time) {
	return mayStartAgain(w.o.Launcher.Home, w.o.Runtimes(), st.Agent, false, now)
}

// Barred reports why a restart that was asked for should not start an agent as it was last, ""
// if it may. A login that is refused bars nothing then: the program may have to be started again
// to be accepted.
func Barred(h home.Dir, runtimes map[string]spawn.Runtime, id agent.ID) string {
	why, _ := mayStartAgain(h, runtimes, id, true, time.Now())
	return why
}

func mayStartAgain(h home.Dir, runtimes map[string]spawn.Runtime, id agent.ID, asked bool, now time.Time) (why string, again time.Time) {
	la, err := h.LoadLaunch(id)
	if err != nil {
		return "", now
	}
	return mayStart(h, runtimes[la.Runtime], la, courier.ReadLedger(h, id).Limited(la.Start), asked, now)
}

// MayStart reports why nothing should be started on the account that a launch uses, as it
// serves nobody; "" if it may be. asked reports that somebody wants it now, whatever the account says
// of its login. A limit of one model bars nothing: the launch may use another.
func MayStart(h home.Dir, runtime spawn.Runtime, la agent.Launch, asked bool, now time.Time) (why string) {
	why, _ = mayStart(h, runtime, la, "", asked, now)
	return why
}

// mayStart is MayStart for an agent that uses the model of a scope, if that is not "". It also returns
// when to ask again.
func mayStart(h home.Dir, runtime spawn.Runtime, la agent.Launch, scope string, asked bool, now time.Time) (why string, again time.Time) {
	accounted, ok := runtime.(Accounted)
	if !ok {
		return "", now
	}
	name, changed := accounted.Account(la)
	list, _ := breaker.List(h) // an unreadable one stops nobody
	for _, s := range list {
		retry := s.Retry() // from then on one agent tries
		switch {
		case name == "" || s.Account != name && s.Account != breaker.Name(name, scope):
		case s.Acted(now, changed), s.Due(now), asked && s.Refuses(now):
		default:
			again = now.Add(askAgain)
			if !retry.IsZero() && retry.Before(again) {
				again = retry
			}
			return fmt.Sprintf("account %s: %s", s.Account, s.Fault), again
		}
	}
	return "", now
}
