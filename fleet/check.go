package fleet

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"time"

	"netsky/agent"
)

// patience is how long a model is kept waiting: its program gives up on a tool after a minute.
const patience = 45 * time.Second

// Checks runs `netsky check` for a model, one at a time for each agent. A check ends with its
// process, not with the call, and not with the server.
type Checks struct {
	Binary   string
	Environ  []string
	Patience time.Duration // 0 is 45 s

	mu      sync.Mutex
	running map[agent.ID]*checking // guarded by mu
}

type checking struct {
	began time.Time
	done  chan struct{} // closed when the fields below are set
	text  string
	err   error
}

// Check runs the check of an agent's work, or waits for the one that runs.
func (k *Checks) Check(ctx context.Context, id agent.ID, again bool) (string, error) {
	one := k.start(id, again)
	limit := time.NewTimer(cmp.Or(k.Patience, patience))
	defer limit.Stop()
	select {
	case <-one.done:
	case <-limit.C:
		return fmt.Sprintf("the check of %s has run for %v and is not done: call work_check again to wait for it", id, time.Since(one.began).Round(time.Second)), nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
	k.mu.Lock()
	if k.running[id] == one {
		delete(k.running, id)
	}
	k.mu.Unlock()
	return one.text, one.err
}

func (k *Checks) start(id agent.ID, again bool) *checking {
	k.mu.Lock()
	defer k.mu.Unlock()
	if one := k.running[id]; one != nil {
		return one
	}
	if k.running == nil {
		k.running = make(map[agent.ID]*checking)
	}
	one := &checking{began: time.Now(), done: make(chan struct{})}
	k.running[id] = one
	args := []string{"check", string(id)}
	if again {
		args = append(args, "--again")
	}
	go func() {
		defer close(one.done)
		one.text, one.err = k.run(args)
	}()
	return one
}

// run runs the verb to its end. A check that has failed is a result, not an error.
func (k *Checks) run(args []string) (string, error) {
	var out, errs bytes.Buffer // a check prints its last lines, no more
	cmd := exec.Command(k.Binary, args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = k.Environ, &out, &errs
	err := cmd.Run()
	text := strings.TrimSpace(out.String() + errs.String())
	if ee := new(exec.ExitError); errors.As(err, &ee) && ee.ExitCode() == 1 && out.Len() > 0 {
		err = nil
	}
	if err != nil {
		return "", errors.New(cmp.Or(text, err.Error()))
	}
	return text, nil
}
