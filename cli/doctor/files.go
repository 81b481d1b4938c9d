package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/home"
	"netsky/internal/words"
	"netsky/watch/backoff"
)

// A survey is what one look at all files of the home has found. Lists are cut; counts are
// whole.
type survey struct {
	open    []string // netsky's own, with a mode that lets others in or itself out
	links   []string // symbolic links and other files in the place of netsky's own
	temps   []home.Item
	foreign []string // in mailboxes, not netsky's
	future  []string // written after now
	ahead   time.Duration
	bytes   map[string]int64 // by the first word of the path
	files   map[string]int

	doubtful bool // others can write to the list of who may speak by phone
}

const maxListed = 10_000

func add(list *[]string, rel string) {
	if len(*list) < maxListed {
		*list = append(*list, rel)
	}
}

func look(ctx context.Context, h home.Dir) (survey, error) {
	s := survey{bytes: make(map[string]int64), files: make(map[string]int)}
	now := time.Now()
	err := home.Walk(ctx, h, func(i home.Item) {
		top, _, _ := strings.Cut(i.Rel, "/")
		s.bytes[top] += i.Size
		s.files[top]++
		switch {
		case i.Own():
			if wrongMode(i) {
				add(&s.open, i.Rel)
			}
			if i.Rel == home.PhoneAccess && i.Mode.Perm()&0o022 != 0 {
				s.doubtful = true
			}
			if i.Temporary() && len(s.temps) < maxListed {
				s.temps = append(s.temps, i)
			}
		case i.Dir || i.File:
			add(&s.links, i.Rel)
		case i.Box:
			add(&s.foreign, i.Rel)
		}
		if d := i.Changed.Sub(now); d > time.Minute {
			add(&s.future, i.Rel)
			s.ahead = max(s.ahead, d)
		}
	})
	return s, err
}

// wrongMode reports whether others could enter, or netsky itself could not. A person
// writes the configuration, and any program writes into mailboxes.
func wrongMode(i home.Item) bool {
	mode := i.Mode.Perm()
	switch {
	case i.Mode.IsDir():
		return mode&0o077 != 0 || mode&0o700 != 0o700
	case i.Rel == home.PhoneAccess && mode&0o022 != 0: // whoever could write it may have: see checkFiles
		return false
	case !i.Mode.IsRegular(), i.Rel == home.ConfigFile, i.Rel == home.TmuxConfFile, strings.HasPrefix(i.Rel, home.Channels+"/"):
		return false
	}
	return mode&0o077 != 0 || mode&0o600 != 0o600
}

func checkHome(_ context.Context, e *exam) []Finding {
	switch {
	case e.HomeErr != nil:
		f := failed(Wrong, "", e.HomeErr, "choose another with NETSKY_HOME, or see docs/home.md")
		if errors.Is(e.HomeErr, home.ErrHomeOpen) {
			f.Do = "chmod 700 it, if nobody else is to read your agents' mail"
		}
		return []Finding{f}
	case e.unused():
		return []Finding{ok("%s has not been used yet; `netsky up` makes it", e.tilde(e.Home.Root()))}
	}
	f := ok("%s", e.tilde(e.Home.Root()))
	if missing := e.Home.Missing(); len(missing) > 0 {
		return []Finding{{
			Level: Wrong, Text: fmt.Sprintf("%s: %s missing: %s", e.tilde(e.Home.Root()), isAre(len(missing)), some(missing)),
			Do:  "`netsky doctor --fix` makes them",
			fix: func(context.Context) (string, error) { _, err := e.Home.Make(); return "made " + some(missing), err },
		}}
	}
	return []Finding{f}
}

func isAre(n int) string {
	if n == 1 {
		return "a directory is"
	}
	return fmt.Sprintf("%d directories are", n)
}

func (e *exam) tilde(path string) string { return words.Tilde(e.UserHome, path) }

func checkConfig(_ context.Context, e *exam) []Finding {
	if e.HomeErr != nil {
		return nil
	}
	if e.ConfigErr != nil {
		return []Finding{failed(Wrong, "", e.ConfigErr, "correct it; until then nothing can be started")}
	}
	if !e.Home.Mark(home.ConfigFile).Exists() {
		return []Finding{ok("no netsky.toml: all defaults")}
	}
	return []Finding{ok("netsky.toml is valid")}
}

// checkFiles reports modes, links and leftovers in the home.
func checkFiles(_ context.Context, e *exam) []Finding {
	s, err := e.files()
	var list []Finding
	if n := len(s.open); n > 0 {
		list = append(list, Finding{
			Level: Wrong, Text: fmt.Sprintf("%s in the home with a wrong mode: %s", plural(n, "entry"), some(s.open)),
			Do:  "`netsky doctor --fix` sets 0700 and 0600",
			fix: func(context.Context) (string, error) { return e.restrict(s.open) },
		})
	}
	if s.doubtful {
		list = append(list, Finding{
			Level: Wrong, Text: home.PhoneAccess + ": others can write to it, so nobody may give orders by phone",
			Do: "look at whom it allows, then chmod 600 it",
		})
	}
	if n := len(s.links); n > 0 {
		list = append(list, Finding{
			Level: Wrong, Text: fmt.Sprintf("a link or another kind of file is where netsky needs its own: %s", some(s.links)),
			Do: "netsky follows no link in its home: move it away",
		})
	}
	if dead := slices.DeleteFunc(slices.Clone(s.temps), stillWritten); len(dead) > 0 {
		list = append(list, Finding{
			Level: Warn, Text: plural(len(dead), "unfinished file") + " left by processes that were killed",
			Do:  "`netsky doctor --fix` removes them",
			fix: func(context.Context) (string, error) { return e.removeTemps(dead) },
		})
	}
	switch {
	case cut(err):
		list = append(list, Finding{Level: Warn, Text: fmt.Sprintf("too many files to look at all of them in %v", e.Within), Do: "see growth"})
	case err != nil:
		list = append(list, failed(Wrong, "", err, "correct the mode or the disk; `netsky doctor --fix` sets modes"))
	}
	if len(list) == 0 {
		list = append(list, ok("modes and types are right"))
	}
	return list
}

func (e *exam) restrict(rels []string) (string, error) {
	var errs []error
	n := 0
	for _, rel := range rels {
		if err := home.Restrict(e.Home, rel); err != nil {
			errs = append(errs, err)
			continue
		}
		n++
	}
	if n == 0 {
		return "", errors.Join(errs...)
	}
	return fmt.Sprintf("set the mode of %s", some(rels)), errors.Join(errs...)
}

// stillWritten reports whether a temporary file may still be written: it is young, or the
// process that its name tells runs.
func stillWritten(i home.Item) bool {
	if time.Since(i.Written) < time.Minute {
		return true
	}
	name := i.Rel[strings.LastIndex(i.Rel, "/")+1:]
	pid, _ := strconv.Atoi(strings.Split(strings.TrimPrefix(name, ".tmp-"), "-")[0])
	return running(pid)
}

func (e *exam) removeTemps(list []home.Item) (string, error) {
	n := 0
	var errs []error
	for _, i := range list {
		if stillWritten(i) {
			continue
		}
		if err := e.Home.Remove(i.Rel); err != nil {
			errs = append(errs, err)
			continue
		}
		n++
	}
	if n == 0 {
		return "", errors.Join(errs...)
	}
	return "removed " + plural(n, "unfinished file"), errors.Join(errs...)
}

// checkMailboxes reports missing parts of mailboxes, what is not mail in them, and poison.
func checkMailboxes(_ context.Context, e *exam) []Finding {
	b := e.Launcher.Bus
	names, err := os.ReadDir(e.Home.Path(home.Channels))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return []Finding{failed(Wrong, "", err, "")}
	}
	var list []Finding
	whole := 0
	for _, entry := range names {
		id, err := agent.Parse(entry.Name())
		if err != nil || !entry.IsDir() {
			list = append(list, Finding{Level: Warn, Text: fmt.Sprintf("%s/%s is no mailbox", home.Channels, entry.Name()), Do: "if it is not yours either, remove it"})
			continue
		}
		if missing := e.missingParts(id); len(missing) > 0 {
			f := Finding{Level: Wrong, Text: fmt.Sprintf("%s: its mailbox lacks %s", id, strings.Join(missing, ", "))}
			if len(missing) < len(bus.Places()) && (b.Used(id) || e.known(id)) {
				f.Do = "`netsky doctor --fix` makes what is missing; mail that was there is lost"
				f.fix = func(context.Context) (string, error) {
					return "made " + strings.Join(missing, ", ") + " of " + string(id), b.Make(id)
				}
			} else {
				f.Level, f.Do = Warn, "it may be a directory of yours; if it is not, remove it, and `netsky up` makes what it needs"
			}
			list = append(list, f)
			continue
		}
		whole++
		if n, first, err := b.Strays(id); err == nil && n > 0 {
			list = append(list, Finding{
				Level: Warn, Text: fmt.Sprintf("%s: %s in its inbox that nobody reads: %s", id, plural(n, "file"), some(first)),
				Do: "only names that end in .json and do not begin with a dot are messages: rename or remove them",
			})
		}
		if n, err := b.Count(id, bus.Poison); err == nil && n > 0 {
			list = append(list, Finding{
				Level: Warn, Text: fmt.Sprintf("%s: %s set aside as invalid", id, plural(n, "message")),
				Do: fmt.Sprintf("`netsky channel poison ls %s` lists them with the reasons", id),
			})
		}
	}
	if s, err := e.files(); err == nil && len(s.foreign) > 0 {
		others := slices.DeleteFunc(slices.Clone(s.foreign), func(rel string) bool { return strings.Contains(rel, "/inbox/") || strings.Count(rel, "/") < 3 })
		if len(others) > 0 {
			list = append(list, Finding{Level: Warn, Text: fmt.Sprintf("%s in mailboxes that netsky did not make: %s", plural(len(others), "file"), some(others)), Do: "netsky leaves them alone; remove them if they are not yours"})
		}
	}
	if len(list) == 0 {
		list = append(list, ok("%s, all whole", plural(whole, "mailbox")))
	}
	return list
}

// known reports whether netsky has started the agent; the owner needs no start.
func (e *exam) known(id agent.ID) bool {
	_, err := e.Home.LoadLaunch(id)
	return err == nil || id == agent.Owner
}

func (e *exam) missingParts(id agent.ID) (list []string) {
	for _, p := range bus.Places() {
		info, err := os.Lstat(e.Home.Path(home.Mailbox(id), string(p)))
		if errors.Is(err, fs.ErrNotExist) || err == nil && !info.IsDir() && info.Mode()&fs.ModeSymlink == 0 {
			list = append(list, string(p))
		}
	}
	return list
}

// How old mail may be before it is reported.
const (
	oldClaimed = time.Hour
	oldWaiting = 24 * time.Hour
)

// checkMail reports mail that was taken and never confirmed, and mail that nobody takes.
func checkMail(ctx context.Context, e *exam) []Finding {
	b, now := e.Launcher.Bus, e.Now()
	ids, err := b.Mailboxes()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return []Finding{failed(Wrong, "", err, "")}
	}
	var list []Finding
	states, _ := e.agents()
	for _, id := range ids {
		if ctx.Err() != nil {
			return append(list, Finding{Level: Warn, Text: "too much mail to look at all of it in time", Do: "see growth"})
		}
		if id == agent.Owner {
			continue // it waits for the owner to read it
		}
		if st := states.Find(id); st.Died() && st.Waiting() > 0 && !backoff.Soon(e.Home, id, st.Start) {
			list = append(list, Finding{
				Level: Warn, Text: fmt.Sprintf("%s: %s waiting for it, and it is %s", id, plural(st.Waiting(), "message"), st.State),
				Do: fmt.Sprintf("`netsky up %s` starts it", id),
			})
			continue
		}
		if n, age := e.older(b, id, bus.Claimed, now.Add(-oldClaimed)); n > 0 {
			list = append(list, Finding{
				Level: Warn, Text: fmt.Sprintf("%s: %s taken and not confirmed, for up to %s", id, plural(n, "message"), words.Ago(age)),
				Do: fmt.Sprintf("`netsky peek %s` shows what it is doing; after a restart it gets them again", id),
			})
		}
		if n, age := e.older(b, id, bus.Inbox, now.Add(-oldWaiting)); n > 0 {
			list = append(list, Finding{
				Level: Warn, Text: fmt.Sprintf("%s: %s waiting for up to %s", id, plural(n, "message"), words.Ago(age)),
				Do: fmt.Sprintf("`netsky up %[1]s` if it is down; `netsky channel ls %[1]s` lists them", id),
			})
		}
		if n, age := e.older(b, id, bus.Outbox, now.Add(-time.Hour)); n > 0 {
			list = append(list, Finding{
				Level: Warn, Text: fmt.Sprintf("%s: %s in its outbox, unsent for up to %s", id, plural(n, "message"), words.Ago(age)),
				Do: "the daemon sends them; `netsky channel route` does it now",
			})
		}
	}
	if len(list) == 0 {
		list = append(list, ok("nothing is stuck"))
	}
	return list
}

// older counts the messages in a place since before then, and returns the age of the oldest.
func (e *exam) older(b *bus.Bus, id agent.ID, p bus.Place, then time.Time) (n int, age time.Duration) {
	names, err := b.Names(id, p)
	if err != nil {
		return 0, 0
	}
	for _, name := range names {
		i, err := home.Stat(e.Home, home.Mailbox(id)+"/"+string(p)+"/"+name)
		if err != nil || !i.Changed.Before(then) {
			continue
		}
		n++
		age = max(age, e.Now().Sub(i.Changed))
	}
	return n, age
}
