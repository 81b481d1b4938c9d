package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"slices"
	"strings"
	"time"

	"netsky/agent"
	"netsky/internal/proc"
	"netsky/tmux"
)

// netsky runs a verb in the home and returns what it printed.
func (d *Drill) netsky(ctx context.Context, words ...string) (string, error) {
	out, err := d.Command(ctx, words...).CombinedOutput()
	text := strings.TrimRight(string(out), "\n")
	if d.Trace != nil {
		fmt.Fprintf(d.Trace, "%s netsky %s: %v\n%s\n", time.Now().Format(time.TimeOnly), strings.Join(words, " "), err, text)
	}
	return text, err
}

// query runs a verb that prints JSON.
func (d *Drill) query(ctx context.Context, into any, words ...string) error {
	out, err := d.Command(ctx, words...).Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			err = fmt.Errorf("%w: %s", err, strings.TrimSpace(string(exit.Stderr)))
		}
		return fmt.Errorf("netsky %s: %w", strings.Join(words, " "), err)
	}
	return json.Unmarshal(out, into)
}

// status is the part of `netsky status --json` that counts here.
type status struct {
	Daemon struct {
		State string `json:"state"`
		PID   int    `json:"pid"`
	} `json:"daemon"`
	Ticker bool     `json:"ticker"`
	Agents []member `json:"agents"`
}

type member struct {
	Agent    agent.ID    `json:"agent"`
	State    agent.State `json:"state"`
	Detail   string      `json:"detail"`
	Evidence string      `json:"evidence"`
	Start    string      `json:"start"`
}

// recover waits until all is up again, as status reports it, and each agent answers. It
// returns how long that took since the fault had ended.
func (d *Drill) recover(ctx context.Context, hit Hit, since time.Time) (time.Duration, error) {
	within, cancel := context.WithTimeout(ctx, d.Within)
	defer cancel()
	if err := d.awaitUp(within, hit); err != nil {
		return 0, err
	}
	err := d.probe(within)
	return time.Since(since).Round(100 * time.Millisecond), err
}

// awaitUp waits until everything is up and nothing of what was killed is there any more.
func (d *Drill) awaitUp(ctx context.Context, hit Hit) error {
	for {
		why := d.notUp(ctx, hit)
		if why == nil {
			return nil
		}
		if proc.Sleep(ctx, 200*time.Millisecond) != nil {
			return fmt.Errorf("not up: %w", d.lastly(why))
		}
	}
}

// lastly replaces an error that only the end of the time has caused.
func (d *Drill) lastly(why error) error {
	if errors.Is(why, context.DeadlineExceeded) || strings.Contains(why.Error(), "signal: ") {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if again := d.notUp(ctx, Hit{}); again != nil {
			return again
		}
	}
	return why
}

// notUp returns what is not up, or nil.
func (d *Drill) notUp(ctx context.Context, hit Hit) error {
	for _, p := range hit.Gone {
		if p.Alive() {
			return fmt.Errorf("process %d has not ended", p.PID)
		}
	}
	var s status
	if err := d.query(ctx, &s, "status", "--json"); err != nil {
		return err
	}
	var wrong []string
	if s.Daemon.State != "running" {
		wrong = append(wrong, "daemon "+s.Daemon.State)
	}
	if t, err := d.Home.LoadTicker(); !s.Ticker || err != nil || !t.Alive() {
		wrong = append(wrong, "no ticker")
	}
	for _, id := range d.Agents {
		i := slices.IndexFunc(s.Agents, func(m member) bool { return m.Agent == id })
		if i < 0 {
			wrong = append(wrong, string(id)+" missing")
			continue
		}
		a := s.Agents[i]
		switch {
		case a.State != agent.Idle && a.State != agent.Busy:
			wrong = append(wrong, fmt.Sprintf("%s %s (%s; %s)", id, a.State, a.Detail, a.Evidence))
		case slices.Contains(hit.Fresh, a.Start):
			wrong = append(wrong, string(id)+" not started again")
		}
	}
	if len(wrong) > 0 {
		return errors.New(strings.Join(wrong, ", "))
	}
	return nil
}

// daemon returns the daemon's process.
func (d *Drill) daemon() (proc.Process, error) {
	who, running := d.Home.LockHolder(agent.DaemonName)
	if !running {
		return proc.Process{}, errors.New("no daemon is running")
	}
	return who.Process, nil
}

// tmux returns the process of the home's tmux server.
func (d *Drill) tmux(ctx context.Context) (proc.Process, error) {
	within, cancel := context.WithTimeout(ctx, 10*time.Second) // it may be stopped
	defer cancel()
	panes, err := (&tmux.Server{Socket: d.Socket}).Panes(within)
	if err != nil {
		return proc.Process{}, err
	}
	var pid int
	if len(panes) == 0 {
		return proc.Process{}, errors.New("no tmux server is running")
	}
	if _, err := fmt.Sscan(strings.Split(panes[0].Server, ",")[0], &pid); err != nil || pid < 2 {
		return proc.Process{}, fmt.Errorf("tmux: pid %q", panes[0].Server)
	}
	return proc.Find(pid)
}

// most is how many deaths of one agent within ten minutes a drill causes: one less than
// what would be a crash loop.
const most, window = 4, 10 * time.Minute

// victim picks an agent that is up and may die once more.
func (d *Drill) victim(among []agent.ID) (agent.ID, agent.Keeper, error) {
	for _, i := range d.rng.Perm(len(among)) {
		id := among[i]
		d.deaths[id] = slices.DeleteFunc(d.deaths[id], func(t time.Time) bool { return time.Since(t) > window })
		if len(d.deaths[id]) >= most-1 {
			continue
		}
		k, err := d.Home.LoadKeeper(id)
		if errors.Is(err, fs.ErrNotExist) || err == nil && !(k.Alive() && k.Own.Alive()) { // another fault has killed it
			continue
		}
		return id, k, err
	}
	return "", agent.Keeper{}, errors.New("each agent has died as often as one may without being in a crash loop")
}
