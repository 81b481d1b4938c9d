package chaos

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"netsky/agent"
	"netsky/home"
)

// What a drill on demo agents is like.
const (
	maxAgents = 50
	maxFor    = 24 * time.Hour
	limitFor  = 12 * time.Second // above the time after which the owner is told
	stopFor   = 5 * time.Second
	fullFor   = 8 * time.Second
	mailEvery = 500 * time.Millisecond
	diskBytes = 256 << 20
	// Config lets the daemon return within seconds instead of a minute, and an agent that
	// only seems to hang be noticed.
	Config = "[watchdog]\ntick = \"5s\"\nhang = \"1m\"\n"
)

// Alone is a drill on demo agents in a temporary home.
type Alone struct {
	Clones  int
	For     time.Duration
	Seed    uint64
	Only    []string // the names of faults; none: all
	Keep    bool
	Binary  string
	Environ []string
	Err     io.Writer // of the process beside it
	NoDisk  error     // why there is no small disk; nil: try
	Say     func(Line)
}

func (o Alone) faults() ([]Fault, error) {
	all := Faults(limitFor, stopFor, fullFor)
	var list []Fault
	for _, name := range o.Only {
		i := slices.IndexFunc(all, func(f Fault) bool { return f.Name == name })
		if i < 0 {
			var names []string
			for _, f := range all {
				names = append(names, f.Name)
			}
			return nil, fmt.Errorf("--only %q: no such fault; there are %s", name, strings.Join(names, ", "))
		}
		list = append(list, all[i])
	}
	if len(list) == 0 {
		return all, nil
	}
	return list, nil
}

// Plan says what the drill will do, or what is wrong with the options.
func (o Alone) Plan() (string, error) {
	switch {
	case o.Clones < 1 || o.Clones > maxAgents:
		return "", fmt.Errorf("--agents %d: must be 1 to %d", o.Clones, maxAgents)
	case o.For <= 0 || o.For > maxFor:
		return "", fmt.Errorf("--for %s: must be above 0 and at most %s", o.For, maxFor)
	}
	list, err := o.faults()
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("This starts %d demo agents in a temporary home with a tmux server of its own. They have no model and cost\n"+
		"nothing. While mail flows between them, it does each of these once, in random order (seed %d), then\n"+
		"further ones, some upon each other, until %s have passed:\n%s"+
		"After each it waits until everything is up and answers again. At the end it accounts for every message,\n"+
		"ends everything and removes the home. Nothing of yours is touched. (Demo agents have no MCP servers to kill.)",
		o.Clones+2, o.Seed, o.For, plan(list)), nil
}

// Run runs the drill. kept is the home if it is still there: if that was asked for, or
// anything has failed.
func (o Alone) Run(ctx context.Context) (r *Report, kept string, err error) {
	list, err := o.faults()
	if err != nil {
		return nil, "", err
	}
	size := int64(diskBytes)
	if o.NoDisk != nil {
		size = 0
	}
	h, err := NewSandbox(SandboxOptions{What: "drill", Binary: o.Binary, Environ: o.Environ, Err: o.Err, Disk: size, Rough: true})
	if err != nil {
		return nil, "", err
	}
	defer func() {
		if o.Keep || ctx.Err() == nil && (err != nil || r.Has(Failed)) {
			h.Keep()
			kept = h.Root()
		}
		if ctx.Err() != nil {
			err = ErrInterrupted
		}
		err = errors.Join(err, h.Close(ctx))
	}()
	if err := o.configure(h.Dir); err != nil {
		return nil, "", err
	}
	trace, err := os.Create(filepath.Join(filepath.Dir(h.Root()), logName))
	if err != nil {
		return nil, "", err
	}
	defer trace.Close()
	agents := []agent.ID{agent.Root}
	for n := range o.Clones {
		agents = append(agents, agent.Clone(n+1))
	}
	w := World{
		Home: h.Dir, Socket: h.Socket, Command: h.Command, NoDisk: errors.Join(o.NoDisk, h.NoDisk), Spare: []int{h.Beside()},
		Up:     []string{"up", strconv.Itoa(o.Clones), "--type", "demo", "--no-attach", "--here"},
		Agents: append(slices.Clone(agents), agent.Infinity), Demos: agents,
	}
	r, err = Run(ctx, Options{World: w, Faults: list, For: o.For, Burst: 2, Seed: o.Seed, Every: mailEvery, Say: o.Say, Trace: trace})
	return r, "", err
}

// ErrInterrupted is returned when the context has ended the drill.
var ErrInterrupted = errors.New("the drill was interrupted; everything it started has ended")

// Kept says what to do with a home that is kept.
func Kept(dir string) string {
	return fmt.Sprintf("the home is kept: NETSKY_HOME=%s netsky log; the verbs that ran are in %s; rm -r %s removes both",
		dir, filepath.Join(filepath.Dir(dir), logName), filepath.Dir(dir))
}

// logName is the file beside the home in which the verbs are written that the drill has run.
const logName = "drill.log"

// Apart runs the same drill as a process that can mount its small disk, and returns how it
// exited; see [Rerun].
func (o Alone) Apart(ctx context.Context, asJSON bool, out io.Writer, sig func() os.Signal) (status int, err error) {
	words := []string{"drill", "--inside", "--agents", strconv.Itoa(o.Clones), "--for", o.For.String(), "--seed", strconv.FormatUint(o.Seed, 10),
		"--keep=" + strconv.FormatBool(o.Keep), "--json=" + strconv.FormatBool(asJSON)}
	if o.Only != nil {
		words = append(words, "--only", strings.Join(o.Only, ","))
	}
	cmd := exec.Command(o.Binary, words...)
	cmd.Env, cmd.Stdout, cmd.Stderr = o.Environ, out, o.Err
	return Rerun(ctx, cmd, sig)
}

func (o Alone) configure(h home.Dir) error {
	if _, err := h.Make(); err != nil {
		return err
	}
	return h.WriteFile(home.ConfigFile, []byte(Config), false)
}
