package merge

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"netsky/agent"
	"netsky/home"
	"netsky/store"
	"netsky/work/git"
	"netsky/work/tree"
)

// File is where the conflicts are that the last look found, below the home.
const File = "state/forecast.json"

// A Known is a conflict that was found, and since when.
type Known struct {
	Conflict
	Since store.Time `json:"since"`
}

// saved is what File holds.
type saved struct {
	Conflicts []Known `json:"conflicts"`
}

// Load returns the conflicts that the daemon's last look found.
func Load(h home.Dir) ([]Known, error) {
	s, err := home.Load[saved](h, File)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return s.Conflicts, err
}

// Options configure a Service.
type Options struct {
	Home home.Dir
	Log  *slog.Logger
	Tick time.Duration // between looks at whether a turn has ended; 0 is 2 s
	Slow time.Duration // between looks at the worktrees if none has; 0 is 5 minutes
	// Share is how many times as long as a look has cost nothing is done after it; 0 is 49.
	Share float64
}

// A Service looks at the worktrees in the background, after each turn of an agent. What it finds is in File, from
// which the owner's list of needs is made and the agents are told. It uses at most a fiftieth of a core, as long as
// Share is 49.
//
// A crash leaves at most a scratch directory, which the next Service removes.
type Service struct {
	o       Options
	fc      *Forecaster
	trees   home.Mark // of the worktrees' records
	watched []watched
}

// NewService returns a Service.
func NewService(o Options) *Service {
	if o.Tick <= 0 {
		o.Tick = 2 * time.Second
	}
	if o.Slow <= 0 {
		o.Slow = 5 * time.Minute
	}
	if o.Share <= 0 {
		o.Share = 49
	}
	return &Service{o: o, fc: New(o.Home)}
}

// Run runs the service until ctx ends.
func (s *Service) Run(ctx context.Context) error {
	defer func() {
		if err := s.fc.Close(); err != nil {
			s.o.Log.Warn("forecast", "error", err)
		}
	}()
	if err := git.SweepScratch(s.o.Home, time.Now().Add(-24*time.Hour)); err != nil { // a verb whose pager is open may use a younger one
		s.o.Log.Warn("forecast", "error", err)
	}
	tick := time.NewTicker(s.o.Tick)
	defer tick.Stop()
	var next, slow time.Time
	due := true
	for {
		due = s.ended() || due
		if now := time.Now(); (due || now.After(slow)) && now.After(next) {
			before := spent()
			err := s.look(ctx)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err != nil {
				s.o.Log.Warn("forecast", "error", err)
			}
			due, next, slow = false, time.Now().Add(time.Duration(s.o.Share*float64(spent()-before))), time.Now().Add(s.o.Slow)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// spent is what this process' children have used of the processor, which is at least what its gits
// have.
func spent() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_CHILDREN, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// A watched is an agent whose worktree is looked at.
type watched struct {
	id    agent.ID
	index string // of its worktree
	at    time.Time
	mark  home.Mark // of its report
}

// ended reports whether an agent's turn may have ended since it was last asked: the agent is idle, or
// its worktree's index was written, as by a commit. Programs of the user's own report no turns.
func (s *Service) ended() (any bool) {
	if now := s.o.Home.Mark(tree.Dirname); !s.trees.Same(now) {
		s.trees, any = now, true
		list, _ := tree.List(s.o.Home) // one that can't be read is logged by the look
		before := s.watched
		s.watched = nil
		for _, w := range list {
			if i := slices.IndexFunc(before, func(o watched) bool { return o.id == w.Agent }); i >= 0 {
				s.watched = append(s.watched, before[i])
				continue
			}
			one := watched{id: w.Agent}
			if entry, err := tree.Link(w.Dir); err == nil && w.Away == nil { // else the record is written
				one.index = filepath.Join(entry, "index")
			}
			s.watched = append(s.watched, one)
		}
	}
	for i := range s.watched {
		w := &s.watched[i]
		if info, err := os.Stat(w.index); err == nil && !info.ModTime().Equal(w.at) {
			w.at, any = info.ModTime(), true
		}
		now := s.o.Home.Mark("state/agents", string(w.id)+".json")
		if w.mark.Same(now) {
			continue
		}
		w.mark = now
		r, err := s.o.Home.LoadReport(w.id)
		any = any || err == nil && r.State == agent.Idle
	}
	return any
}

// look looks once.
func (s *Service) look(ctx context.Context) error {
	c, err := s.fc.Look(ctx)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	before, lerr := home.Load[saved](s.o.Home, File)
	if lerr != nil && !errors.Is(lerr, fs.ErrNotExist) {
		err = errors.Join(err, lerr) // it starts anew
	}
	now, changed := saved{Conflicts: []Known{}}, false
	for _, k := range c.Conflicts {
		known := Known{Conflict: k, Since: store.At(time.Now())}
		i := slices.IndexFunc(before.Conflicts, func(o Known) bool { return o.Digest() == k.Digest() })
		if i >= 0 {
			known.Since = before.Conflicts[i].Since
		}
		changed = changed || i < 0
		now.Conflicts = append(now.Conflicts, known)
	}
	if !changed && len(now.Conflicts) == len(before.Conflicts) {
		return err
	}
	return errors.Join(err, s.o.Home.Save(File, now, false))
}

// Digest stands for the pair and its files.
func (c Conflict) Digest() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %d", c.Agents, c.Target, c.Files, c.More))
	return hex.EncodeToString(sum[:16])
}

// maxNamed is how many files a message names.
const maxNamed = 20

// Message is what the agent is told.
func (c Conflict) Message(id agent.ID) string {
	var b strings.Builder
	fmt.Fprintf(&b, "netsky has merged what you have so far, committed or not, with %s, to see whether that works; your files are as they were. It conflicts in:\n", c.withWords(id))
	for _, name := range c.Files[:min(len(c.Files), maxNamed)] {
		fmt.Fprintf(&b, "- %s\n", git.Shown(name))
	}
	switch n := len(c.Files) - maxNamed + c.More; {
	case len(c.Files) == 0:
		b.WriteString("- the names of directories\n")
	case len(c.Files) > maxNamed:
		fmt.Fprintf(&b, "- %d more\n", n)
	}
	other := c.With(id)
	if id.Host() != "" && agent.ID(other).Host() == "" && c.Target == "" {
		other += ", of the host that this comes from,"
	}
	if c.Target == "" {
		fmt.Fprintf(&b, "%s gets the same message. If it matters for what you are doing, agree with it who changes these files; whoever lands second has to merge what the other has landed and resolve the rest.", other)
	} else {
		fmt.Fprintf(&b, "Merge %s into your branch and resolve the conflicts before your work is to land.", other)
	}
	return b.String()
}

func (c Conflict) withWords(id agent.ID) string {
	if c.Target != "" {
		return "the branch " + c.Target + ", which it is to land on"
	}
	return c.With(id) + "'s work"
}
