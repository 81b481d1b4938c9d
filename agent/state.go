package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// A State is how an agent is, in one word.
type State string

const (
	Starting     State = "starting"
	Idle         State = "idle"
	Busy         State = "busy"
	Waiting      State = "waiting" // for a dialog or an approval
	Blocked      State = "blocked" // login, quota
	Hung         State = "hung"
	Dead         State = "dead"
	CrashLooping State = "crash-looping"
	Down         State = "down"
	Unknown      State = "unknown"
)

// Ready reports whether an agent in this state has finished starting.
func (s State) Ready() bool { return s == Idle || s == Busy || s == Waiting || s == Blocked }

// A Report is state/agents/<agent>.json: what the agent's receiver says of it.
type Report struct {
	Start    string `json:"start"`
	State    State  `json:"state"`
	SinceMS  int64  `json:"since_ms"`
	Evidence string `json:"evidence,omitempty"` // what the verdict rests on
	Detail   string `json:"detail,omitempty"`   // what it is busy with or waits for
}

// A Launch is state/launch/<agent>.json: all that the keeper in the pane needs.
// It may hold secrets (the environment), so it is never printed.
type Launch struct {
	Agent      ID       `json:"agent"`
	Start      string   `json:"start"` // the start id
	Runtime    string   `json:"runtime"`
	Argv       []string `json:"argv"` // argv[0] is an absolute path
	Env        []string `json:"env"`  // the whole environment
	Dir        string   `json:"dir"`
	PromptFile string   `json:"prompt_file"`
	Model      string   `json:"model,omitempty"`
	Resume     string   `json:"resume,omitempty"` // the conversation to go on with
	Silent     bool     `json:"silent,omitempty"` // the program reports nothing and holds no mailbox
	Socket     string   `json:"socket,omitempty"` // of the tmux server that its session was made on
	StartedMS  int64    `json:"started_ms"`
}

// A Keeper is state/keepers/<agent>.json: the program in the pane and how it
// ended, written by the keeper. EndedMS is 0 while the program runs; after it
// exactly one of Status, Signal and Lost is set.
type Keeper struct {
	Start   string `json:"start"`
	Process        // the program
	Program string `json:"program"`
	// Own is the keeper's process, which all that the program starts hangs below
	// while it lives (Linux).
	Own       Process `json:"keeper,omitzero"`
	Above     Lineage `json:"above,omitzero"`    // the keeper's
	Version   string  `json:"version,omitempty"` // of the netsky that the keeper runs
	StartedMS int64   `json:"started_ms"`
	EndedMS   int64   `json:"ended_ms,omitempty"`
	Status    *int    `json:"status,omitempty"` // 0 to 255
	Signal    string  `json:"signal,omitempty"` // "SIGKILL"
	// Lost is why the keeper could not record the end, in words; another process
	// did then, and EndedMS is when it noticed. Status and Signal are not known.
	Lost string `json:"lost,omitempty"`
	// ClearedMS is when nothing was left below the keeper, as it ended: the proof
	// that nothing of this start runs. 0: nobody has seen that.
	ClearedMS int64 `json:"cleared_ms,omitempty"`
	ClearedBy ID    `json:"cleared_by,omitempty"` // whose word ClearedMS is, where it is no proof
}

// A Ticker is state/ticker.json: the process that starts the daemon again, and
// how its last try went. It is written by that process.
type Ticker struct {
	Process
	Binary string `json:"binary"`
	Socket string `json:"socket,omitempty"` // of the tmux server that its session is on
	TickMS int64  `json:"tick_ms,omitempty"`
	Error  string `json:"error,omitempty"` // "" if the daemon runs or is not wanted
}

// Removed reports whether a program that was at an absolute path is not there any
// more.
func Removed(path string) bool {
	if path == "" {
		return false
	}
	_, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist)
}

const tickerFile = "state/ticker.json"

// SaveTicker replaces the ticker's file; LoadTicker reads it, and its error
// matches fs.ErrNotExist if there has been none.
func (h Home) SaveTicker(t Ticker) error   { return h.save(tickerFile, t, false) }
func (h Home) LoadTicker() (Ticker, error) { return load[Ticker](h, tickerFile) }

// Ending says in words how the program ended: "3", "SIGKILL"; "" while it runs.
func (k Keeper) Ending() string {
	switch {
	case k.EndedMS == 0:
		return ""
	case k.Status != nil:
		return fmt.Sprint(*k.Status)
	case k.Lost != "":
		return k.Lost
	}
	return k.Signal
}

// How says it in a sentence: "exited 3", "killed by SIGKILL".
func (k Keeper) How() string {
	switch {
	case k.Status != nil:
		return fmt.Sprintf("exited %d", *k.Status)
	case k.Lost != "":
		return k.Lost
	}
	return "killed by " + k.Signal
}

// Desired is state/desired/<agent> or state/desired/daemon: what the owner last
// wanted. Nothing restarts what is wanted down.
type Desired struct {
	Up   bool   `json:"up"`
	AtMS int64  `json:"at_ms"`
	By   string `json:"by"`
	// Forgotten, unless it is nil, says that the owner wants to see no more of an
	// agent that is down, and how many messages waited for it then.
	Forgotten *int `json:"forgotten,omitempty"`
}

// DaemonName is the daemon's name among the desired states and the locks.
const DaemonName = "daemon"

const maxStateFile = 4 << 20

func (h Home) save(rel string, v any, sync bool) error {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("%s: %w", rel, err)
	}
	return h.WriteFile(rel, append(data, '\n'), sync)
}

func load[T any](h Home, rel string) (v T, err error) {
	data, err := h.ReadFile(rel, maxStateFile)
	if err != nil {
		return v, err
	}
	if err := json.Unmarshal(data, &v); err != nil {
		return v, fmt.Errorf("%s: %w", h.Path(rel), err)
	}
	return v, nil
}

// SaveReport, SaveLaunch and SaveKeeper replace the agent's file; the Load
// functions read it, and their error matches fs.ErrNotExist if there is none.
func (h Home) SaveReport(id ID, r Report) error { return h.save(reportFile(id), r, false) }
func (h Home) SaveLaunch(l Launch) error        { return h.save(launchFile(l.Agent), l, false) }

// SaveKeeper replaces the keeper's record, also on a disk that is full if there
// is one: what ended there must not look unproved for that.
func (h Home) SaveKeeper(id ID, k Keeper) error {
	err := h.save(keeperFile(id), k, false)
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		if data, merr := json.Marshal(k); merr == nil && h.rewrite(keeperFile(id), append(data, '\n')) == nil {
			return nil
		}
	}
	return err
}

func (h Home) LoadReport(id ID) (Report, error) { return load[Report](h, reportFile(id)) }
func (h Home) LoadLaunch(id ID) (Launch, error) { return load[Launch](h, launchFile(id)) }
func (h Home) LoadKeeper(id ID) (Keeper, error) { return load[Keeper](h, keeperFile(id)) }

// SetDesired puts down what is wanted of an agent (or of DaemonName) so that it
// survives a loss of power.
func (h Home) SetDesired(name string, up bool, by string) error {
	return h.save(desiredFile(name), Desired{Up: up, AtMS: time.Now().UnixMilli(), By: by}, true)
}

// Forget puts down that an agent is to stay down and to be shown no more, until it
// is wanted again or more than so many messages wait for it.
func (h Home) Forget(id ID, by string, waiting int) error {
	return h.save(desiredFile(string(id)), Desired{AtMS: time.Now().UnixMilli(), By: by, Forgotten: &waiting}, true)
}

// SetAllDesired is SetDesired of several agents in one go.
func (h Home) SetAllDesired(ids []ID, up bool, by string) error {
	data, err := json.Marshal(Desired{Up: up, AtMS: time.Now().UnixMilli(), By: by})
	if err != nil || len(ids) == 0 {
		return err
	}
	names := make([]string, len(ids))
	for i, id := range ids {
		names[i] = string(id)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	return h.writeFiles(DesiredDir, names, append(data, '\n'), true)
}

// LoadDesired is what is wanted; nothing on file means down.
func (h Home) LoadDesired(name string) (Desired, error) {
	return load[Desired](h, desiredFile(name))
}

// ClearReports removes what an earlier start of the agent left to be believed:
// its report and its keeper's word.
func (h Home) ClearReports(id ID) error {
	if err := h.Remove(reportFile(id)); err != nil {
		return err
	}
	return h.Remove(keeperFile(id))
}
