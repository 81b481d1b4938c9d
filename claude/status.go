package claude

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"time"

	"netsky/agent"
	"netsky/internal/proc"
)

// The evidence for a state.
const (
	byRegistry = "claude's session registry"
	byHook     = "hook"
	byPane     = "pane"
	byFile     = "conversation"
)

const (
	// lookAgain is how long a screen capture stays valid if the registry does not change.
	lookAgain = time.Second
	// lagging is how far the registry may lag behind a hook.
	lagging = 3 * time.Second
	// silent is how long a turn may show no activity before the screen is consulted.
	silent = 5 * time.Second
	// doubtEvery is how often the screen is compared with a registry that nothing
	// contradicts: it stands still while the disk is full.
	doubtEvery = 30 * time.Second
	// lookWithin limits a look at the screen; tmux may hang.
	lookWithin = 2 * time.Second
)

// State returns the session's State, Evidence and Detail as a report.
func (s *Session) State(ctx context.Context) agent.Report {
	r, err := FindSession(s.ConfigDir, s.PID)
	f := s.known()
	now := time.Now()
	if err != nil {
		return s.unregistered(ctx, r, f, err)
	}
	switch r.Status {
	case statusIdle, statusShell:
		return s.doubt(ctx, r, f, now, s.idle(ctx, r, f, now))
	case statusBusy:
		return s.doubt(ctx, r, f, now, s.busy(ctx, r, f, now))
	case statusWaiting:
		return s.waiting(ctx, r, f)
	case "":
		return s.unregistered(ctx, r, f, nil)
	}
	d := s.byScreen(ctx, r, f)
	d.Detail = strings.TrimSuffix("status "+line(r.Status, 40)+": "+d.Detail, ": ")
	return d
}

// Works returns what an idle session still works on by itself.
func (s *Session) Works() []agent.Work {
	r, err := FindSession(s.ConfigDir, s.PID)
	if err != nil {
		return nil
	}
	return s.known().works(r, time.Now())
}

// idle judges a session that is idle according to the registry.
func (s *Session) idle(ctx context.Context, r Registered, f facts, now time.Time) agent.Report {
	prompted := time.UnixMilli(f.prompted)
	switch {
	case f.prompted > r.StatusMS && f.prompted > f.ended && now.Sub(prompted) < lagging:
		return agent.Report{State: agent.Busy, Evidence: byHook}
	case f.failed.full(now):
		return agent.Report{State: agent.Blocked, Evidence: byHook, Detail: f.failed.fault.String(), Fault: f.failed.fault}
	}
	if f.ended == 0 && !s.loggedInSince(f.began) { // it may not be, which no hook has reported yet
		if d, ok := Recognise(plain(s.look(ctx, r))); ok && d.Name == loginDialog {
			return blockedBy(d)
		}
	}
	report := agent.Report{State: agent.Idle, Evidence: byRegistry}
	if r.Status == statusShell {
		report.Detail = "a command runs in the background"
	}
	return report
}

// doubt returns the registry's verdict that nobody is needed, unless the hooks or the screen
// know better. A question that a hook has reported since the registry's last change counts
// at once; otherwise the screen decides, where a dialog and a running turn can't be forged.
func (s *Session) doubt(ctx context.Context, r Registered, f facts, now time.Time, d agent.Report) agent.Report {
	if d.State != agent.Idle && d.State != agent.Busy || d.Fault.Reason != "" {
		return d
	}
	asked := f.wants.tool != "" && f.wants.ms >= r.StatusMS
	begun := d.State == agent.Idle && f.prompted > max(r.StatusMS, f.ended)
	over := d.State == agent.Busy && f.ended > max(r.StatusMS, f.prompted)
	asking := f.wants.tool != "" && now.Sub(time.UnixMilli(f.wants.ms)).Abs() < lagging
	s.mu.Lock()
	due := s.doubted || now.Sub(s.compared) >= doubtEvery
	if asking && !asked { // the registry may have changed just after, for another reason: look now
		s.glanced, due = time.Time{}, true
	}
	s.mu.Unlock()
	if !asked && !begun && !over && !due {
		return d
	}
	seen := s.seen(ctx, r, f)
	switch {
	case seen.State == agent.Waiting && asked, asked && asking:
		seen = asks(f, byHook)
	case seen.State == agent.Waiting, seen.State == agent.Blocked && seen.Detail != notLoggedIn.String():
	case seen.State == agent.Busy && d.State == agent.Idle, seen.State == agent.Idle && over:
	default:
		seen = d
	}
	s.mu.Lock()
	s.doubted, s.compared = seen.State != d.State, now
	s.mu.Unlock()
	return seen
}

// asks is the report of a session whose tool waits for a permission.
func asks(f facts, evidence string) agent.Report {
	d := agent.Dialog{Name: permission, Text: line(f.wants.String(), 200)}
	return agent.Report{State: agent.Waiting, Evidence: evidence, Detail: d.String(), Dialog: d.Name}
}

// loggedInSince reports whether somebody has logged in since a time. The screen keeps
// saying the contrary until the next turn, which works.
func (s *Session) loggedInSince(ms int64) bool {
	_, changed := s.Account()
	return !changed.IsZero() && changed.UnixMilli() > ms
}

// busy judges a session in which a turn runs.
func (s *Session) busy(ctx context.Context, r Registered, f facts, now time.Time) agent.Report {
	if n := len(f.tools); n > 0 {
		return agent.Report{State: agent.Busy, Evidence: byRegistry + ", " + byHook, Detail: line(f.tools[n-1].String(), 200)}
	}
	report := agent.Report{State: agent.Busy, Evidence: byRegistry}
	latest := time.UnixMilli(max(r.StatusMS, f.prompted))
	if now.Sub(latest) < silent {
		return report
	}
	if retry, ok := Retrying(plain(s.look(ctx, r))); ok {
		report.Evidence += ", " + byPane
		if tried, ok := lastTry(s.transcript()); ok {
			retry, report.Evidence = tried, byRegistry+", "+byFile
		}
		report.Fault, report.Attempt, report.Of, report.Detail = retry.Fault, retry.Attempt, retry.Of, retry.String()
		if retry.Fault.Reason == agent.UsageLimit { // the program may wait for hours
			report.State = agent.Blocked
		}
	}
	return report
}

// waiting judges a session that shows a dialog.
func (s *Session) waiting(ctx context.Context, r Registered, f facts) agent.Report {
	if (r.WaitingFor == "permission prompt" || r.WaitingFor == "") && f.wants.tool != "" {
		return asks(f, byRegistry+", "+byHook)
	}
	seen := s.seen(ctx, r, f)
	switch seen.State {
	case agent.Blocked, agent.Busy: // the registry stands still if it is busy
		return seen
	case agent.Waiting:
		seen.Evidence = byRegistry + ", " + byPane
		return seen
	}
	return agent.Report{State: agent.Waiting, Evidence: byRegistry, Detail: line(r.WaitingFor, 200)}
}

// unregistered judges a session that is not in the registry, or has no status there yet.
func (s *Session) unregistered(ctx context.Context, r Registered, f facts, err error) agent.Report {
	if _, gone := proc.Find(s.PID); errors.Is(gone, fs.ErrNotExist) {
		return agent.Report{State: agent.Unknown, Evidence: "process", Detail: "claude has exited"}
	}
	d := s.byScreen(ctx, r, f)
	if d.State == agent.Starting && err != nil && !errors.Is(err, fs.ErrNotExist) {
		d.Detail = line(err.Error(), 200)
	}
	return d
}

// byScreen judges a session by its screen and what the hooks say.
func (s *Session) byScreen(ctx context.Context, r Registered, f facts) agent.Report {
	d := s.seen(ctx, r, f)
	switch {
	case d.State == agent.Idle && f.failed.full(time.Now()):
		return agent.Report{State: agent.Blocked, Evidence: byHook, Detail: f.failed.fault.String(), Fault: f.failed.fault}
	case f.began == 0 && (d.State == agent.Idle || d.State == agent.Unknown):
		d.State = agent.Starting
	}
	return d
}

// seen is what the screen alone shows; Unknown if that is nothing.
func (s *Session) seen(ctx context.Context, r Registered, f facts) agent.Report {
	screen := plain(s.look(ctx, r))
	d, ok := Recognise(screen)
	l := readScreen(screen)
	report := agent.Report{State: agent.Unknown, Evidence: byPane}
	switch {
	case ok && (d.Name == loginDialog || d.Name == limitDialog):
		report = blockedBy(d)
		if f.failed.fault.Reason == report.Fault.Reason { // it knows until when
			report.Fault = f.failed.fault
		}
	case ok && d.Name == transcriptView:
		report.Detail = d.String()
	case ok:
		report.State, report.Detail, report.Dialog = agent.Waiting, d.String(), d.Name
	case !l.composer:
	case l.below("Continuing automatically at"):
		report = blockedBy(agent.Dialog{Name: limitDialog, Text: "the program continues by itself when it is over"})
		report.Dialog = ""
		if f.failed.fault.Reason == agent.UsageLimit {
			report.Fault, report.Detail = f.failed.fault, f.failed.fault.String()
		}
	case l.below(" to interrupt"):
		report.State = agent.Busy
	default:
		report.State = agent.Idle
	}
	return report
}

func blockedBy(d agent.Dialog) agent.Report {
	f := agent.Fault{Reason: agent.Login, Text: line(d.Text, 200)}
	if d.Name == limitDialog {
		f.Reason = agent.UsageLimit
	}
	return agent.Report{State: agent.Blocked, Evidence: byPane, Detail: d.String(), Dialog: d.Name, Fault: f}
}

// look returns the screen, possibly as of lookAgain ago; "" if there is none.
func (s *Session) look(ctx context.Context, r Registered) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Pane == nil {
		return ""
	}
	if r == s.glancedAt && time.Since(s.glanced) < lookAgain {
		return s.glance
	}
	ctx, cancel := context.WithTimeout(ctx, lookWithin)
	defer cancel()
	screen, err := s.Pane.Screen(ctx)
	if err != nil {
		screen = ""
	}
	s.glance, s.glanced, s.glancedAt = screen, time.Now(), r
	return screen
}
