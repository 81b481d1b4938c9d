// Package restart ends agents as `netsky down` does and starts them again on the same
// conversations, in a process that outlives whoever asked for it.
//
// A request is a file: whoever asks writes it to state/restart/new/, and the daemon claims
// it by a rename to state/restart/, carries it out and keeps each agent's progress in it,
// which the asker reads. All that could prevent the new starts is checked before anything
// is ended. The desired states stay up throughout.
//
// A crash leaves the request with the progress so far. Run continues it: it ends an agent
// only under the start that the request names, so an agent that is back already is left
// alone, and a handoff is sent under the same id, which has no second effect. A request
// that nobody claims is withdrawn by its asker or expires; then nothing was ended.
package restart

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"netsky/agent"
	"netsky/home"
	"netsky/internal/advice"
	"netsky/internal/proc"
)

const (
	// Dir holds the claimed requests, Dir/new those that are not.
	Dir    = "state/restart"
	newDir = Dir + "/new"

	// claimWithin is how long a request may wait to be claimed.
	claimWithin = time.Minute
	// keepFor is how long a finished request is kept, for its asker to read.
	keepFor = time.Hour
	// maxWaiting is how many requests may wait.
	maxWaiting = 100
	// followEvery is how often an asker reads the progress.
	followEvery = 50 * time.Millisecond
	// patience is how long an asker waits for its request to be claimed.
	patience = 15 * time.Second

	// MaxHandoff limits a handoff, in bytes.
	MaxHandoff = 64 << 10
)

// A Step is what has become of one agent.
type Step string

const (
	Ending Step = "ending" // from here on a crash is made up for
	Asked  Step = "asked"  // to finish its turn
	Ended  Step = "ended"  // and is about to be started
	Ready  Step = "ready"  // its new start has reported so
	Slow   Step = "slow"   // its new start has not reported in time; it may yet
	Failed Step = "failed" // see Note
	Left   Step = "left"   // nothing was done with it; see Note
)

// Over reports whether nothing more happens to the agent.
func (s Step) Over() bool { return s == Ready || s == Slow || s == Failed || s == Left }

// An Agent is one agent of a request.
type Agent struct {
	Agent        agent.ID `json:"agent"`
	From         string   `json:"from"`                   // the start to end
	Conversation string   `json:"conversation,omitempty"` // to be continued; "": it has none yet
	Step         Step     `json:"step,omitempty"`
	How          string   `json:"how,omitempty"`     // it ended
	Start        string   `json:"start,omitempty"`   // the new start
	Resumed      string   `json:"resumed,omitempty"` // the conversation of the new start
	Note         string   `json:"note,omitempty"`
}

// Whole reports whether the agent is back as it was to be.
func (a Agent) Whole() bool { return a.Step == Ready && a.Resumed == a.Conversation }

// A Request asks for agents to be restarted.
type Request struct {
	ID      string   `json:"id"`
	By      agent.ID `json:"by"`
	AtMS    int64    `json:"at_ms"`
	Force   bool     `json:"force,omitempty"`   // running turns are cut off
	Handoff string   `json:"handoff,omitempty"` // sent to each agent before its new start
	Agents  []Agent  `json:"agents"`
	Environ []string `json:"environ,omitempty"` // that the new starts inherit; nil: those of the old ones
	Refused string   `json:"refused,omitempty"` // why nothing was ended
	EndedMS int64    `json:"ended_ms,omitempty"`
}

func file(id string) string    { return Dir + "/" + id + ".json" }
func newFile(id string) string { return newDir + "/" + id + ".json" }

// Submit stores a request, which survives a loss of power, and gives it its ID.
func Submit(h home.Dir, r *Request) error {
	if waiting, err := home.Records(h, newDir); err != nil {
		return err
	} else if len(waiting) >= maxWaiting {
		return fmt.Errorf("%d restarts are waiting already", len(waiting))
	}
	now := time.Now()
	r.AtMS, r.ID = now.UnixMilli(), fmt.Sprintf("%020d-%d", now.UnixNano(), os.Getpid())
	return h.Save(newFile(r.ID), r, true)
}

// Withdraw takes back a request that is not claimed, and reports whether it was one.
func Withdraw(h home.Dir, id string) (bool, error) {
	err := os.Remove(h.Path(newFile(id)))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// Load returns a request with its progress; claimed is false as long as nobody has begun.
func Load(h home.Dir, id string) (r Request, claimed bool, err error) {
	r, err = home.Load[Request](h, file(id))
	if !errors.Is(err, fs.ErrNotExist) {
		return r, true, err
	}
	if r, err = home.Load[Request](h, newFile(id)); !errors.Is(err, fs.ErrNotExist) {
		return r, false, err
	}
	r, err = home.Load[Request](h, file(id)) // claimed between the two looks
	return r, err == nil, err
}

// Open claims what waits and returns the requests that are not finished, the oldest first.
// It removes old ones, and those that nobody claimed in time or can read. Only the holder
// of the lock "watchdog" calls it.
func Open(h home.Dir) (list []Request, err error) {
	waiting, err := home.Records(h, newDir)
	for _, id := range waiting {
		r, lerr := home.Load[Request](h, newFile(id))
		if lerr != nil || time.Since(time.UnixMilli(r.AtMS)) > claimWithin || r.ID != id {
			err = errors.Join(err, h.Remove(newFile(id)))
			continue
		}
		if rerr := os.Rename(h.Path(newFile(id)), h.Path(file(id))); !errors.Is(rerr, fs.ErrNotExist) {
			err = errors.Join(err, rerr)
		}
	}
	claimed, cerr := home.Records(h, Dir)
	err = errors.Join(err, cerr)
	for _, id := range claimed {
		r, lerr := home.Load[Request](h, file(id))
		switch {
		case lerr != nil, r.EndedMS != 0 && time.Since(time.UnixMilli(r.EndedMS)) > keepFor:
			err = errors.Join(err, h.Remove(file(id)))
		case r.EndedMS == 0:
			list = append(list, r)
		}
	}
	return list, err
}

// Waiting returns a mark that changes with the requests that are not claimed.
func Waiting(h home.Dir) home.Mark { return h.Mark(newDir) }

// Follow reads a request's progress until it is over, and passes on a line for each step.
// It returns ErrUnclaimed, with the request withdrawn, if nobody begins, and an error that
// matches ErrPartly unless all agents are back as they were.
func Follow(ctx context.Context, h home.Dir, id string, tell func(line string)) (r Request, err error) {
	told := make(map[agent.ID]Step)
	for began := time.Now(); ; {
		now, claimed, err := Load(h, id)
		if err != nil {
			return r, err
		}
		r = now
		if !claimed && time.Since(began) > patience {
			if ok, err := Withdraw(h, id); ok || err != nil {
				return r, cmp.Or(err, ErrUnclaimed)
			}
		}
		for _, a := range r.Agents {
			if line := a.Line(); told[a.Agent] != a.Step && line != "" && r.Refused == "" {
				tell(line)
			}
			told[a.Agent] = a.Step
		}
		if r.EndedMS != 0 {
			return r, r.outcome()
		}
		if time.Since(began) > patience+runWithin {
			return r, advice.With(fmt.Errorf("%w after %v", ErrPartly, patience+runWithin), "`netsky status` shows the agents, `netsky daemon status` the daemon, which continues it")
		}
		if proc.Sleep(ctx, followEvery) != nil {
			return r, ErrInterrupted
		}
	}
}

// ErrInterrupted is returned to an asker that does not wait for the end.
var ErrInterrupted = advice.With(errors.New("interrupted: the daemon continues the restart"), "`netsky log` shows how it went")

// ErrPartly is returned if not all agents are back as they were.
var ErrPartly = errors.New("not all agents are back as they were")

func (r Request) outcome() error {
	if r.Refused != "" {
		return fmt.Errorf("nothing was ended: %s", r.Refused)
	}
	whole := 0
	for _, a := range r.Agents {
		if a.Whole() {
			whole++
		}
	}
	if whole < len(r.Agents) {
		return advice.With(fmt.Errorf("%w: %d of %d are", ErrPartly, whole, len(r.Agents)), "`netsky status` shows the others")
	}
	return nil
}

// Names reports whether the request is about an agent.
func (r Request) Names(id agent.ID) bool {
	return slices.ContainsFunc(r.Agents, func(a Agent) bool { return a.Agent == id })
}

// A View is a request as `netsky restart --json` prints it.
type View struct {
	ID      string  `json:"id"`
	Agents  []Agent `json:"agents"`
	Refused string  `json:"refused,omitempty"`
}

// View returns the request's view.
func (r Request) View() View { return View{r.ID, r.Agents, r.Refused} }

// ErrUnclaimed is returned for a request that nobody began.
var ErrUnclaimed = advice.With(errors.New("the daemon did not take the restart up; nothing was ended"),
	"`netsky daemon status` says whether it runs and which version; `netsky daemon restart`, then this again, replaces it")

// Line describes an agent's step, "" if there is nothing to say.
func (a Agent) Line() string {
	switch a.Step {
	case Asked:
		return fmt.Sprintf("%s: asked to finish its turn", a.Agent)
	case Ended:
		return fmt.Sprintf("%s: ended (%s); starting", a.Agent, a.How)
	case Ready:
		switch {
		case a.Conversation == "" && a.Resumed == "":
			return fmt.Sprintf("%s: ready, start %s; it has no conversation yet", a.Agent, a.Start)
		case a.Conversation == "":
			return fmt.Sprintf("%s: ready, start %s, conversation %s; it had none before", a.Agent, a.Start, a.Resumed)
		case a.Resumed == a.Conversation:
			return fmt.Sprintf("%s: ready, start %s, conversation %s", a.Agent, a.Start, a.Resumed)
		}
		return fmt.Sprintf("%s: ready, start %s, but on another conversation: %s instead of %s", a.Agent, a.Start, cmp.Or(a.Resumed, "a new one"), a.Conversation)
	case Slow:
		return fmt.Sprintf("%s: started (%s), but not ready yet: %s", a.Agent, a.Start, a.Note)
	case Failed:
		return fmt.Sprintf("%s: failed: %s", a.Agent, a.Note)
	case Left:
		return fmt.Sprintf("%s: not restarted: %s", a.Agent, a.Note)
	}
	return ""
}
