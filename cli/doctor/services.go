package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"syscall"
	"time"

	"netsky/agent"
	"netsky/attention"
	"netsky/cli/view"
	"netsky/fleet/bridge"
	"netsky/fleet/service"
	"netsky/home"
	"netsky/internal/words"
	"netsky/link/server"
	"netsky/phone/chat"
	"netsky/spawn"
	"netsky/store"
)

func running(pid int) bool { return pid > 0 && syscall.Kill(pid, 0) != syscall.ESRCH }

func checkRecords(ctx context.Context, e *exam) []Finding {
	db, err := store.OpenRead(ctx, e.Home)
	if errors.Is(err, fs.ErrNotExist) {
		if store.Launched(e.Home) {
			return []Finding{{Level: Warn, Text: "meta.db is missing", Do: "the next verb that reads it rebuilds it from the mailboxes"}}
		}
		return []Finding{ok("none yet")}
	}
	if err == nil {
		defer db.Close()
		err = db.QuickCheck(ctx)
	}
	switch {
	case err == nil:
		return []Finding{ok("meta.db is whole, schema %d", store.Schema())}
	case errors.Is(err, store.ErrOlder):
		return []Finding{{Level: Warn, Text: err.Error(), Do: "netsky was updated: the next verb that uses them migrates them; `netsky daemon restart` replaces an older daemon"}}
	case store.Damaged(err):
		return []Finding{{Level: Wrong, Text: err.Error(), Do: view.RepairRecords(e.Home)}}
	case cut(err) || ctx.Err() != nil:
		return []Finding{{Level: Warn, Text: fmt.Sprintf("meta.db is too large, or too busy, to be checked in %v", e.Within)}}
	}
	return []Finding{failed(Wrong, "", err, "")}
}

func checkPhone(_ context.Context, e *exam) []Finding {
	p := bridge.Phone{Config: e.Config, Home: e.Home, UserHome: e.UserHome, Env: e.Environ}
	if !p.On() {
		return []Finding{ok("none is set up")}
	}
	var list []Finding
	for _, f := range p.Glance() {
		level := OK
		if f.State == chat.Bad {
			level = Wrong
		}
		list = append(list, Finding{Level: level, Text: f.Name + ": " + f.Detail, Do: f.Next})
	}
	return append(list, ok("`netsky imessage doctor` examines the way to it"))
}

func checkSpool(_ context.Context, e *exam) []Finding {
	s, err := store.SpoolSize(e.Home)
	if err != nil {
		return []Finding{failed(Wrong, "", err, "")}
	}
	var list []Finding
	if s.Files > 0 {
		list = append(list, Finding{
			Level: Warn, Text: fmt.Sprintf("%s in state/spool for the database", plural(s.Files, "record")),
			Do: "the daemon loads them; `netsky doctor --fix` does it now", fix: e.replay,
		})
	}
	if s.Bad > 0 {
		list = append(list, Finding{
			Level: Warn, Text: fmt.Sprintf("%s in state/spool could not be read", plural(s.Bad, "record")),
			Do: "the reason is in the .why beside each .bad in " + e.tilde(e.Home.Path(home.SpoolDir)),
		})
	}
	if len(list) == 0 {
		list = append(list, ok("empty"))
	}
	return list
}

func checkAlerts(_ context.Context, e *exam) []Finding {
	failed, err := attention.Failed(e.Home)
	switch {
	case err != nil:
		return []Finding{{Level: Wrong, Text: err.Error(), Do: "`netsky escalate --clear` replaces it"}}
	case len(failed) > 0:
		return []Finding{{Level: Wrong, Text: failed[len(failed)-1].String(), Do: "mend what it names under [escalate] in netsky.toml, and try `netsky escalate \"a test\"`"}}
	}
	return []Finding{ok("none has failed")}
}

func checkLink(ctx context.Context, e *exam) (list []Finding) {
	r, err := attention.LinkOf(e.Home)
	switch {
	case err != nil:
		return []Finding{failed(Wrong, "", err, "")}
	case r == nil:
		return []Finding{ok("this host belongs to no team")}
	case view.DaemonOf(ctx, e.Home).State != "running":
		return []Finding{ok("it comes with the daemon")}
	}
	hosts, err := attention.Hosts(e.Home, e.Now())
	if err != nil {
		list = append(list, failed(Wrong, "", err, ""))
	}
	for _, n := range attention.List(attention.Sources{Now: e.Now(), Daemon: attention.DaemonRuns, Link: r, Hosts: hosts}) {
		if n.Kind == attention.Link {
			list = append(list, Finding{Level: Wrong, Text: n.Line(), Do: "`netsky link` shows how it is; " + n.Otherwise})
		}
	}
	if len(list) == 0 && !r.Connected {
		list = append(list, Finding{Level: Warn, Text: fmt.Sprintf("not connected since %s: %s", agent.Clock(r.Since, e.Now()), r.Why), Do: "it is tried again by itself; `netsky link` shows how it is"})
	}
	if len(list) == 0 {
		list = append(list, ok("connected since %s", agent.Clock(r.Since, e.Now())))
	}
	for _, h := range hosts {
		if off := time.Duration(h.Behind) * time.Second; off.Abs() >= time.Minute {
			list = append(list, Finding{Level: Warn, Text: fmt.Sprintf("the clocks of %s and of this host are %s apart", h.Name, words.Span(off.Abs())), Do: "set the one that is wrong; mail is in order meanwhile, its times are not"})
		}
	}
	return list
}

func checkLinkServer(ctx context.Context, e *exam) []Finding {
	s, serving := server.Look(e.Home)
	switch err := server.Trouble(e.Home); {
	case errors.Is(err, server.ErrEnded) && view.DaemonOf(ctx, e.Home).State != "running":
		return []Finding{ok("it comes with the daemon")}
	case err != nil:
		return []Finding{failed(Wrong, "", err, "")}
	case serving:
		return []Finding{ok("running, pid %d, at %s", s.PID, s.Address)}
	}
	return []Finding{ok("this host runs none")}
}

func (e *exam) replay(ctx context.Context) (string, error) {
	db, err := store.Open(ctx, e.Home)
	if err != nil {
		return "", err
	}
	defer db.Close()
	n, err := db.ReplaySpool(ctx)
	if n == 0 {
		return "", err
	}
	return "loaded " + plural(n, "record") + " into the database", err
}

func checkDaemon(ctx context.Context, e *exam) []Finding {
	v := view.DaemonOf(ctx, e.Home)
	switch {
	case v.State == "running" && !home.Removed(v.Binary):
		f := ok("running, pid %d", v.PID)
		if v.Version != e.Version {
			f = Finding{Level: Warn, Text: fmt.Sprintf("running, pid %d, as netsky %s; this is %s", v.PID, v.Version, e.Version), Do: "`netsky daemon restart`; agents and their mail continue meanwhile"}
		}
		list := []Finding{f}
		if why := v.Web.Error; why != "" {
			do := "`listen` under [dashboard] in netsky.toml sets another address"
			if v.Web.Taken {
				do = "`netsky dashboard --free-port` has this home take another port; " + do
			}
			list = append(list, Finding{Level: Warn, Text: "the dashboard is not served: " + why, Do: do})
		}
		return list
	case !v.Wanted && v.State == "stopped":
		return append([]Finding{ok("stopped, as wanted")}, e.staleDoor()...)
	}
	text, level := "not running, but should be: outboxes, schedules and the records of deaths wait", Wrong
	switch v.State {
	case "running":
		text = "its program " + v.Binary + " is gone"
	case "hung":
		text = "it does not answer"
		if !v.Wanted {
			return []Finding{{Level: Wrong, Text: text, Do: "`netsky daemon stop` ends it"}}
		}
	}
	if e.Home.Ticks() && e.ConfigErr == nil {
		text, level = fmt.Sprintf("%s; the ticker starts another within %v", text, e.Config.Watchdog.Tick.Duration), Warn
	}
	return []Finding{e.gone(level, text, "started the daemon")}
}

// gone reports that the daemon or the ticker is gone, and how it is started.
func (e *exam) gone(level Level, text, done string) Finding {
	if e.ConfigErr != nil {
		return Finding{Level: level, Text: text, Do: "correct netsky.toml first; then `netsky doctor --fix` starts it, or `netsky up`"}
	}
	return Finding{
		Level: level, Text: text, Do: "`netsky doctor --fix` starts it, or `netsky up`",
		fix: func(ctx context.Context) (string, error) {
			if err := e.Start(ctx); err != nil {
				return "", err
			}
			return done, nil
		},
	}
}

// staleDoor reports the files that a daemon has left that was killed.
func (e *exam) staleDoor() []Finding {
	if held, err := e.Home.Locked(home.DaemonLock); held || err != nil {
		return nil
	}
	var left []string
	for _, rel := range []string{home.DaemonSocket, home.DaemonPID} {
		if e.Home.Mark(rel).Exists() {
			left = append(left, rel)
		}
	}
	if len(left) == 0 {
		return nil
	}
	return []Finding{{
		Level: Warn, Text: "left by a daemon that was killed: " + some(left), Do: "`netsky doctor --fix` removes them",
		fix: func(context.Context) (string, error) {
			lock, err := e.Home.Lock(home.DaemonLock) // no daemon can start meanwhile
			if err != nil {
				return "", err
			}
			defer lock.Unlock()
			for _, rel := range left {
				if err := e.Home.Remove(rel); err != nil {
					return "", err
				}
			}
			return "removed " + some(left), nil
		},
	}}
}

func checkTicker(ctx context.Context, e *exam) []Finding {
	up, err := e.Launcher.TickerUp(ctx)
	d, derr := home.Desired(e.Home).Load(agent.DaemonName)
	wanted := derr == nil && d.Up
	t, terr := e.Home.LoadTicker()
	switch {
	case err != nil && !up:
		return []Finding{failed(Warn, "", err, "")}
	case !up && !wanted:
		return []Finding{ok("not running; nothing is wanted up")}
	case up && terr == nil && t.Alive() && !home.Removed(t.Binary):
		age := e.Now().Sub(time.UnixMilli(t.TickMS))
		if t.Error != "" && view.DaemonOf(ctx, e.Home).Since <= store.Time(t.TickMS) { // it has not been started since
			return []Finding{{Level: Wrong, Text: fmt.Sprintf("it could not start the daemon %s ago: %s", words.Ago(age), t.Error), Do: "`netsky daemon run` shows why"}}
		}
		if t.TickMS > 0 && age > 5*time.Minute+2*e.Config.Watchdog.Tick.Duration {
			return []Finding{{Level: Wrong, Text: fmt.Sprintf("its last tick was %s ago", words.Ago(age)), Do: "`netsky down --all`, then `netsky up`, starts another"}}
		}
		return []Finding{ok("running, pid %d", t.PID)}
	case up && terr != nil:
		return []Finding{ok("running")} // it has just started
	}
	if up {
		return []Finding{e.gone(Wrong, "its program "+t.Binary+" is gone: it can't start the daemon", "started the ticker")}
	}
	text, level := "not running: nothing restarts the daemon if it dies", Wrong
	list, err := e.agents()
	if v := view.DaemonOf(ctx, e.Home); err == nil && v.State == "running" && !home.Removed(v.Binary) && slices.ContainsFunc(list, func(st spawn.Status) bool { return st.Wanted && st.Alive() }) {
		text, level = "not running; the daemon starts another within a minute", Warn
	}
	return []Finding{e.gone(level, text, "started the ticker")}
}

// checkLocks reports locks that are held by a process that nobody knows: the kernel
// releases those of the dead, so something still has the file open.
func checkLocks(ctx context.Context, e *exam) []Finding {
	list, err := os.ReadDir(e.Home.Path(home.LockDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return []Finding{failed(Warn, "", err, "")}
	}
	var stuck []string
	held := 0
	for _, f := range list {
		if is, err := e.Home.Locked(f.Name()); err != nil || !is || ctx.Err() != nil {
			continue
		}
		held++
		if who, _ := e.Home.LockHolder(f.Name()); who.Named() && !who.Alive() {
			stuck = append(stuck, f.Name())
		}
	}
	if len(stuck) > 0 {
		return []Finding{{
			Level: Warn, Text: fmt.Sprintf("%s whose holder is dead, but a child of it has kept: %s", plural(len(stuck), "lock"), some(stuck)),
			Do: "if that lasts, end the process that has " + e.tilde(e.Home.Path(home.LockDir, stuck[0])) + " open",
		}}
	}
	return []Finding{ok("%d held, each by a process that runs", held)}
}

// checkOrphans reports ends that are not proved: something of those agents may still run.
func checkOrphans(ctx context.Context, e *exam) []Finding {
	list := e.Launcher.Unproved()
	var out []Finding
	if len(list) > 0 {
		f := Finding{Level: Warn, Text: fmt.Sprintf("something may still run of %s: %s", plural(len(list), "killed agent"), list[0].What), Do: "`netsky forget --unproved` lists the processes that it could be, and asks you"}
		f.fix = func(ctx context.Context) (string, error) {
			if err := e.Launcher.Prove(ctx); err != nil {
				return "", err
			}
			if n := len(list) - len(e.Launcher.Unproved()); n > 0 {
				return fmt.Sprintf("proved that nothing is left of %s", plural(n, "killed agent")), nil
			}
			return "", nil
		}
		out = append(out, f)
	}
	rest, err := e.Launcher.Remnants(ctx)
	if err != nil {
		out = append(out, failed(Warn, "", err, ""))
	}
	statuses, err := e.agents()
	var stray []spawn.Remnant
	for _, r := range rest {
		if st := statuses.Find(r.Agent); err == nil && r.Agent != "" && !st.Wanted && !st.Alive() && st.State != agent.Dead {
			stray = append(stray, r)
		}
	}
	if len(stray) > 0 {
		out = append(out, Finding{Level: Warn, Text: fmt.Sprintf("%s of agents that are down: %s", plural(len(stray), "leftover"), stray[0].What), Do: fmt.Sprintf("`netsky down %s --force --verify` ends it", stray[0].Agent)})
	}
	if len(out) == 0 {
		out = append(out, ok("none"))
	}
	return out
}

// checkClock reports a clock that can't be right: it is before this program's files or
// what is on record.
func checkClock(ctx context.Context, e *exam) []Finding {
	now := e.Now()
	if info, err := os.Stat(e.Launcher.Binary); err == nil && info.ModTime().After(now.Add(time.Hour)) {
		return []Finding{{Level: Wrong, Text: fmt.Sprintf("the clock says %s, but this program was built %s", now.Format(time.DateTime), info.ModTime().Format(time.DateTime)), Do: "set the clock"}}
	}
	if db, err := store.OpenRead(ctx, e.Home); err == nil {
		defer db.Close()
		list, err := db.Logs(ctx, store.LogFilter{Page: store.Page{Limit: 1}})
		if err == nil && len(list.Items) > 0 && list.Items[0].Time.Time().After(now.Add(time.Minute)) {
			return []Finding{{Level: Warn, Text: fmt.Sprintf("the newest log entry is from %s, after now: the clock was set back", list.Items[0].Time.Time().Local().Format(time.DateTime)), Do: "check the clock; schedules wait until their last run is past"}}
		}
	}
	if s, _ := e.files(); len(s.future) > 0 {
		return []Finding{{
			Level: Warn, Text: fmt.Sprintf("%s changed in the future, up to %v ahead: %s; the clock was set back", plural(len(s.future), "file"), s.ahead.Round(time.Second), some(s.future)),
			Do: "check the clock; messages are delivered, but ages and times mislead until then",
		}}
	}
	return []Finding{ok("%s", now.Format("2006-01-02 15:04:05 MST"))}
}

// checkService reports whether what is wanted up is brought up after a reboot.
func checkService(ctx context.Context, e *exam) []Finding {
	s := service.Inspect(ctx, e.Service)
	f := ok("%s", s)
	if s.Installed && (s.Enabled == "no" || s.Outdated) {
		f.Level, f.Do = Warn, "`netsky service install` corrects that"
	}
	return []Finding{f}
}
