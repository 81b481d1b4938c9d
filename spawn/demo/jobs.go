package demo

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	"netsky/agent"
	"netsky/home"
)

// A job is something sent to another agent on behalf of an asker who waits for the
// result.
type job struct {
	To      agent.ID `json:"to"`
	Asker   agent.ID `json:"asker,omitempty"`   // none: a person at the pane
	Message string   `json:"message,omitempty"` // the id of the asker's message
	Thread  string   `json:"thread,omitempty"`
	Hops    int      `json:"hops,omitempty"`
	AtMS    int64    `json:"at_ms"`
}

// jobs are the open ones by the id of what was sent. Each change is on disk, and
// survives a loss of power, before the function that made it returns.
type jobs struct {
	home home.Dir
	rel  string
	open map[string]job
}

const (
	maxJobs  = 1000               // a brake: each waits for an agent that may never answer
	maxAge   = 7 * 24 * time.Hour // the bus forgets an answer after that
	maxState = 4 << 20            // of the file; 1000 jobs take less
)

// loadJobs reads what was open when the last start ended. An invalid file is moved
// aside, and notice reports that.
func loadJobs(h home.Dir, id agent.ID) (j *jobs, notice string, err error) {
	j = &jobs{home: h, rel: home.DemoDir + "/" + string(id) + ".json", open: map[string]job{}}
	data, err := h.ReadFile(j.rel, maxState)
	if errors.Is(err, fs.ErrNotExist) {
		return j, "", nil
	}
	if err != nil {
		return nil, "", fmt.Errorf("read what was delegated: %w", err)
	}
	if err := json.Unmarshal(data, &j.open); err != nil {
		aside := j.rel + ".bad"
		if err := h.WriteFile(aside, data, true); err != nil {
			return nil, "", err
		}
		j.open = map[string]job{}
		return j, fmt.Sprintf("%s: %v; moved to %s; earlier delegations are forgotten", j.rel, err, aside), nil
	}
	if j.open == nil { // the file said null
		j.open = map[string]job{}
	}
	oldest := time.Now().Add(-maxAge).UnixMilli()
	maps.DeleteFunc(j.open, func(_ string, o job) bool { return o.AtMS < oldest })
	return j, "", nil
}

// add stores a job, unless it is stored already, from before a crash.
func (j *jobs) add(sent string, o job) error {
	if _, known := j.open[sent]; known {
		return nil
	}
	o.AtMS = time.Now().UnixMilli()
	j.open[sent] = o
	err := j.save()
	if err != nil {
		delete(j.open, sent) // it is not stored
	}
	return err
}

func (j *jobs) drop(sent string) error {
	o, known := j.open[sent]
	if !known {
		return nil
	}
	delete(j.open, sent)
	err := j.save()
	if err != nil {
		j.open[sent] = o
	}
	return err
}

func (j *jobs) full() bool { return len(j.open) >= maxJobs }

func (j *jobs) save() error {
	data, err := json.Marshal(j.open)
	if err != nil {
		return err
	}
	if err := j.home.WriteFile(j.rel, append(data, '\n'), true); err != nil {
		return fmt.Errorf("write what is delegated: %w", err)
	}
	return nil
}

// waiting names the agents whose answers are awaited; "" if none.
func (j *jobs) waiting() string {
	ids := map[agent.ID]bool{}
	for _, o := range j.open {
		ids[o.To] = true
	}
	var names []string
	for _, id := range slices.SortedFunc(maps.Keys(ids), agent.Compare) {
		names = append(names, string(id))
	}
	return strings.Join(names, ", ")
}
