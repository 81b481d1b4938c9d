// Package doctor examines a netsky: the programs it needs, its home, its records and what
// should be running. It reports what is wrong and what to do about it, and repairs what
// netsky can prove to be its own.
//
// Each check is an entry of one table, runs beside the others, is given a few seconds, and
// needs neither the daemon nor the database nor tmux. It spends no tokens and changes
// nothing; a finding may carry a repair, which runs only on request. A crash in a repair
// leaves what the repaired part's own writer would leave; the next run continues.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"time"

	"netsky/config"
	"netsky/daemon/upkeep"
	"netsky/fleet/service"
	"netsky/home"
	"netsky/internal/advice"
	"netsky/spawn"
)

// A Level is how serious a finding is.
type Level string

const (
	OK    Level = "ok"
	Warn  Level = "warn"  // it works; look at it
	Wrong Level = "wrong" // something does not work, or is in danger
)

// A Finding is one line of the report.
type Finding struct {
	Check string `json:"check"`
	Level Level  `json:"level"`
	Text  string `json:"text"`
	Do    string `json:"do,omitempty"` // what to do about it
	// Fixable reports whether --fix repairs it.
	Fixable bool `json:"fixable,omitempty"`

	fix func(context.Context) (done string, err error)
}

// A Report is the result of an examination.
type Report struct {
	Version  string    `json:"version"`
	Home     string    `json:"home"`
	Wrong    int       `json:"wrong"`
	Warnings int       `json:"warnings"`
	Fixed    []string  `json:"fixed"` // what was repaired, with --fix
	Failed   []string  `json:"failed,omitempty"`
	Checks   []Finding `json:"checks"`
}

// Options say what is examined.
type Options struct {
	Home      home.Dir
	HomeErr   error           // why the home can't be used
	Launcher  *spawn.Launcher // nil without a home
	Runtimes  map[string]spawn.Runtime
	Config    config.Config
	ConfigErr error
	Service   service.Options
	Upkeep    upkeep.Keeper // the zero value removes nothing
	Version   string
	Environ   []string
	UserHome  string
	Now       func() time.Time
	Within    time.Duration // for each check; 0 is 5 s

	// Start starts the daemon and the ticker if they should be running, for Fix.
	Start func(context.Context) error
}

// A check is one entry of the table.
type check struct {
	name  string
	homed bool // it needs a home that exists
	run   func(ctx context.Context, e *exam) []Finding
}

// checks are all checks, in the order of the report and of the repairs: a repair may rely
// on those before it. A new one needs no more than its entry.
var checks = []check{
	{"home", false, checkHome},
	{"config", false, checkConfig},
	{"tmux", false, checkTmux},
	{"git", false, checkGit},
	{"claude", false, checkClaude},
	{"codex", false, checkCodex},
	{"accounts", true, checkAccounts},
	{"budgets", true, checkBudgets},
	{"paths", true, checkPaths},
	{"files", true, checkFiles},
	{"mailboxes", true, checkMailboxes},
	{"mail", true, checkMail},
	{"records", true, checkRecords},
	{"spool", true, checkSpool},
	{"alerts", true, checkAlerts},
	{"phone", true, checkPhone},
	{"locks", true, checkLocks},
	{"daemon", true, checkDaemon},
	{"link", true, checkLink},
	{"link server", true, checkLinkServer},
	{"ticker", true, checkTicker},
	{"service", true, checkService},
	{"agents", true, checkAgents},
	{"conversations", true, checkConversations},
	{"orphans", true, checkOrphans},
	{"versions", true, checkVersions},
	{"disk", true, checkDisk},
	{"growth", true, checkGrowth},
	{"clock", true, checkClock},
}

// exam is one run of all checks: what several of them look at is read once.
type exam struct {
	Options
	files  func() (survey, error)
	agents func() (spawn.Statuses, error)
}

func (o Options) exam(ctx context.Context) *exam {
	e := &exam{Options: o}
	if e.Now == nil {
		e.Now = time.Now
	}
	if e.Within == 0 {
		e.Within = 5 * time.Second
	}
	within := e.Within * 4 / 5 // what is late is better reported by the check
	e.files = sync.OnceValues(func() (survey, error) {
		ctx, cancel := context.WithTimeout(ctx, within)
		defer cancel()
		return look(ctx, o.Home)
	})
	e.agents = sync.OnceValues(func() (spawn.Statuses, error) {
		ctx, cancel := context.WithTimeout(ctx, within)
		defer cancel()
		return o.Launcher.Inspect(ctx)
	})
	return e
}

// Run examines without changing anything.
func Run(ctx context.Context, o Options) Report { return report(o, run(ctx, o)) }

const (
	// maxRounds bounds Fix: a repair may make another one possible.
	maxRounds = 4
	// fixWithin bounds one repair, which may wait for an up or a down.
	fixWithin = time.Minute
)

// Fix examines, repairs what can be repaired, and examines again, until no repair has an
// effect. A second Fix finds nothing to repair.
func Fix(ctx context.Context, o Options) Report {
	fixed, failed := []string{}, []string(nil)
	tried := make(map[string]bool)
	for range maxRounds {
		list := run(ctx, o)
		done := 0
		for _, f := range list {
			if f.fix == nil || tried[f.Check+f.Text] || ctx.Err() != nil {
				continue
			}
			tried[f.Check+f.Text] = true
			limited, cancel := context.WithTimeout(ctx, fixWithin)
			text, err := f.fix(limited)
			cancel()
			if text != "" {
				fixed = append(fixed, f.Check+": "+text)
				done++
			}
			if err != nil {
				failed = append(failed, f.Check+": "+err.Error())
			}
		}
		if done == 0 {
			r := report(o, list)
			r.Fixed, r.Failed = fixed, failed
			return r
		}
	}
	r := report(o, run(ctx, o))
	r.Fixed, r.Failed = fixed, failed
	return r
}

func report(o Options, list []Finding) Report {
	r := Report{Version: o.Version, Home: o.Home.Root(), Fixed: []string{}, Checks: list}
	for _, f := range list {
		switch f.Level {
		case Wrong:
			r.Wrong++
		case Warn:
			r.Warnings++
		}
	}
	return r
}

// run runs all checks side by side and returns their findings in the order of the table.
func run(ctx context.Context, o Options) (list []Finding) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	e := o.exam(ctx)
	absent := e.HomeErr != nil || e.unused()
	found := make([][]Finding, len(checks))
	var all sync.WaitGroup
	for i, c := range checks {
		if !c.homed || !absent {
			all.Go(func() { found[i] = e.bounded(ctx, c) })
		}
	}
	all.Wait()
	for i, c := range checks {
		for _, f := range found[i] {
			f.Check, f.Fixable = c.name, f.fix != nil
			list = append(list, f)
		}
	}
	return list
}

// unused reports whether the home does not exist, or netsky has made nothing in it yet.
func (e *exam) unused() bool {
	return !e.Home.Mark(home.Channels).Exists() && !e.Home.Mark(home.DesiredDir).Exists()
}

// bounded runs one check, and reports one that takes too long. What it waits for may keep
// its goroutine until the process ends.
func (e *exam) bounded(ctx context.Context, c check) []Finding {
	ctx, cancel := context.WithTimeout(ctx, e.Within)
	defer cancel()
	done := make(chan []Finding, 1)
	go func() {
		defer func() {
			if r := recover(); r != nil {
				done <- []Finding{{Level: Wrong, Text: fmt.Sprintf("this check failed: %v", r), Do: "report this as a mistake in netsky"}}
			}
		}()
		done <- c.run(ctx, e)
	}()
	grace := time.NewTimer(e.Within + 200*time.Millisecond) // a check that obeys its context has said more
	defer grace.Stop()
	select {
	case list := <-done:
		return list
	case <-grace.C:
		return []Finding{{Level: Wrong, Text: fmt.Sprintf("no answer within %v", e.Within), Do: "something that this check asks hangs; run `netsky doctor` again"}}
	}
}

func ok(format string, args ...any) Finding {
	return Finding{Level: OK, Text: fmt.Sprintf(format, args...)}
}

// failed is a finding about an error, with the error's own advice if it carries one.
func failed(level Level, what string, err error, do string) Finding {
	text := strings.TrimSpace(err.Error())
	if what != "" {
		text = what + ": " + text
	}
	if next := advice.Of(err); next != "" {
		do = next
	}
	for _, short := range []error{syscall.EMFILE, syscall.ENFILE, syscall.EAGAIN, syscall.ENOMEM} {
		if errors.Is(err, short) { // it says nothing of the program
			do = "the system has no more open files, processes or memory for this: see `ulimit -n` and `ulimit -u`"
		}
	}
	return Finding{Level: level, Text: text, Do: do}
}

// cut reports whether an error means only that there was no time.
func cut(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

// plural returns "1 file" or "3 files".
func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	if strings.HasSuffix(what, "x") {
		return fmt.Sprintf("%d %ses", n, what)
	}
	if base, ok := strings.CutSuffix(what, "y"); ok && !strings.HasSuffix(base, "a") {
		return fmt.Sprintf("%d %sies", n, base)
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// some joins the first names of a list.
func some(names []string) string {
	const most = 3
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", len(names)-most)
}

// Print prints the report, one finding a line and what to do below it.
func (r Report) Print(print func(format string, args ...any)) {
	for _, text := range r.Fixed {
		print("fixed  %s", text)
	}
	for _, text := range r.Failed {
		print("failed %s", text)
	}
	for _, f := range r.Checks {
		line := fmt.Sprintf("%-6s %-10s %s", f.Level, f.Check, f.Text)
		if f.Do != "" {
			line += "; " + f.Do
		}
		print("%s", strings.ReplaceAll(line, "\n", "; "))
	}
	switch {
	case r.Wrong > 0:
		print("%s wrong, %s", plural(r.Wrong, "thing"), plural(r.Warnings, "warning"))
	case r.Warnings > 0:
		print("nothing is wrong, %s", plural(r.Warnings, "warning"))
	default:
		print("all is well")
	}
}
