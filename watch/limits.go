package watch

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"netsky/agent"
	"netsky/cost/breaker"
	"netsky/home"
	"netsky/store"
)

// limits are the accounts that serve nobody, by name, as far as they are on record.
type limits map[string]*limitNote

// A limitNote is what was recorded and sent about an account since it stopped serving.
type limitNote struct {
	Fault   agent.Fault `json:"fault"`
	By      agent.ID    `json:"by"`
	SinceMS int64       `json:"since_ms"`
	Mail    string      `json:"mail,omitempty"` // the id of the mail to the owner
}

const (
	limitsFile  = "state/watchdog/limits.json"
	limitsEvery = 2 * time.Second
	// limitSettles is how long an account that waits for its owner or for a stated time is
	// observed before the owner is notified, and passing how long one that may serve again
	// at any moment is.
	limitSettles, passing = 5 * time.Second, 2 * time.Minute
)

// limit notifies the owner of the accounts that serve nobody, once, and records when they
// serve again.
func (l *loop) limit(ctx context.Context) {
	h := l.o.Launcher.Home
	if l.limits == nil {
		known, err := home.Load[limits](h, limitsFile)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			l.o.Log.Warn("limits", "error", err) // it is sent again, under the same id
		}
		if l.limits = known; known == nil {
			l.limits = make(limits)
		}
	}
	list, err := breaker.List(h)
	if words := fmt.Sprint(err); err != nil && words != l.badBreaker {
		l.badBreaker = words
		l.o.Log.Warn("limits", "error", err)
	}
	changed := false
	tripped := make(map[string]bool)
	for _, s := range list {
		if s.Unneeded(time.Now()) || s.Fault.Reason == agent.Budget { // of which the owner is told by whoever accounts for it
			continue
		}
		tripped[s.Account] = true
		changed = l.limited(ctx, s) || changed
	}
	for account, n := range l.limits {
		if !tripped[account] && err == nil {
			l.served(ctx, account, n)
			delete(l.limits, account)
			changed = true
		}
	}
	if !changed {
		return
	}
	if err := h.Save(limitsFile, l.limits, false); err != nil {
		l.o.Log.Warn("limits", "error", err)
	}
}

// limited records that an account serves nobody, and notifies the owner when that is due.
func (l *loop) limited(ctx context.Context, s breaker.State) (changed bool) {
	n := l.limits[s.Account]
	if n == nil || n.SinceMS != s.SinceMS {
		n = &limitNote{By: s.By, SinceMS: s.SinceMS}
		l.limits[s.Account], changed = n, true
		l.event(ctx, limitID(s), store.LevelWarn, s.By, "", fmt.Sprintf("%s: %s; its agents are given nothing", s.Account, s.Fault))
	}
	n.Fault = s.Fault
	wait := passing
	if s.Fault.Reason == agent.Login || s.Fault.Reason == agent.Billing || s.Fault.UntilMS != 0 {
		wait = limitSettles
	}
	if n.Mail != "" || time.Since(time.UnixMilli(s.SinceMS)) < wait {
		return changed
	}
	if id := limitID(s); l.page(ctx, s.By, id, l.limitText(s)) {
		n.Mail = id
		return true
	}
	return changed
}

// limitText tells the owner what an account's fault means, and what to do about it.
func (l *loop) limitText(s breaker.State) string {
	var names []string
	for _, st := range l.last.list {
		if st.Report.Fault.Account == s.Account && st.Alive() {
			names = append(names, string(st.Agent))
		}
	}
	if len(names) == 0 {
		names = []string{string(s.By)}
	}
	then := "They continue by themselves as soon as the model answers again."
	switch {
	case s.Fault.Reason == agent.Login:
		then = fmt.Sprintf("One of them tries now and then, and they continue by themselves as soon as the login is accepted. "+
			"If you have to log in (netsky attach %s, or the program's own login in a terminal), it is tried at once; so it is after `netsky up`.", s.By)
	case s.Fault.UntilMS != 0:
		then = fmt.Sprintf("They continue by themselves at %s.", agent.Clock(s.Retry(), time.Now()))
	case s.Fault.Reason == agent.Billing:
		then = "They continue by themselves once the account has credit; one of them tries now and then."
	}
	if s.Fault.Scope != "" {
		then += " Agents on other models of this account work on."
	}
	text := strings.ReplaceAll(s.Fault.String(), "<", "&lt;")
	return fmt.Sprintf("%s: %s\nIt concerns %s. Until then their mail waits, and what they were working on is given to them again.\n%s",
		s.Account, text, strings.Join(names, ", "), then)
}

// served records that an account serves again; the mail about it is settled then.
func (l *loop) served(ctx context.Context, account string, n *limitNote) {
	lasted := time.Since(time.UnixMilli(n.SinceMS)).Round(time.Second)
	l.event(ctx, fmt.Sprintf("served-%s-%d", limitHash(account), n.SinceMS), store.LevelInfo, n.By, "",
		fmt.Sprintf("%s is held back no longer, after %s (%s)", account, lasted, n.Fault.Reason.Text()))
	if n.Mail == "" {
		return
	}
	if err := l.settled(n.Mail); err != nil {
		l.o.Log.Warn("limits", "mail", n.Mail, "error", err)
	}
}

func limitHash(account string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(account)))[:8] }

func limitID(s breaker.State) string {
	return fmt.Sprintf("limit-%s-%d", limitHash(s.Account), s.SinceMS)
}
