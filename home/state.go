package home

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"netsky/agent"
	"netsky/internal/proc"
)

// Removed reports whether the program at an absolute path no longer exists.
func Removed(path string) bool {
	if path == "" {
		return false
	}
	_, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist)
}

const tickerFile = "state/ticker.json"

// SaveTicker replaces the ticker's file; LoadTicker reads it, and its error matches
// fs.ErrNotExist if there is none.
func (h Dir) SaveTicker(t agent.Ticker) error { return h.Save(tickerFile, t, false) }

func (h Dir) LoadTicker() (agent.Ticker, error) { return Load[agent.Ticker](h, tickerFile) }

const tmuxFile = "state/tmux.json"

type tmuxServer struct {
	Socket string `json:"socket"`
	proc.Process
}

// Servers are the tmux servers that a home has had.
type Servers Dir

// NoteTmuxServer remembers the process of the tmux server at that path; TmuxServers
// returns those that are remembered, the last one first.
func (h Servers) NoteTmuxServer(socket string, p proc.Process) error {
	list, err := Load[[]tmuxServer](Dir(h), tmuxFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	now := tmuxServer{socket, p}
	if slices.Contains(list, now) {
		return nil
	}
	list = slices.DeleteFunc(list, func(s tmuxServer) bool { return s.Gone() })
	return Dir(h).Save(tmuxFile, append([]tmuxServer{now}, list...), false)
}

func (h Servers) TmuxServers(socket string) (list []proc.Process) {
	all, _ := Load[[]tmuxServer](Dir(h), tmuxFile)
	for _, s := range all {
		if s.Socket == socket {
			list = append(list, s.Process)
		}
	}
	return list
}

// Ticks reports whether a ticker runs that can start another daemon: its last tick has not
// failed to, and its program is still there.
func (h Dir) Ticks() bool {
	t, err := h.LoadTicker()
	return err == nil && t.Alive() && t.Error == "" && !Removed(t.Binary)
}

const maxStateFile = 4 << 20

// Save replaces a small file with v as JSON, using WriteFile.
func (h Dir) Save(rel string, v any, sync bool) error {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("%s: %w", rel, err)
	}
	return h.WriteFile(rel, append(data, '\n'), sync)
}

// Load reads what Save wrote. Its error matches fs.ErrNotExist if there is no file.
func Load[T any](h Dir, rel string) (v T, err error) {
	data, err := h.ReadFile(rel, maxStateFile)
	if err != nil {
		return v, err
	}
	if err := json.Unmarshal(data, &v); err != nil {
		return v, fmt.Errorf("%s: %w", h.Path(rel), err)
	}
	return v, nil
}

// OwnersHost returns the name of the host where the owner is reached, "" if that is this one.
func OwnersHost(h Dir) string {
	s, err := Load[struct{ Name, Owner string }](h, LinkSelf)
	if err != nil || s.Name == s.Owner || !agent.IsHost(s.Owner) {
		return ""
	}
	return s.Owner
}

// SaveReport, SaveLaunch and SaveKeeper replace the agent's file; the Load
// functions read it, and their error matches fs.ErrNotExist if there is none.
func (h Dir) SaveReport(id agent.ID, r agent.Report) error { return h.Save(reportFile(id), r, false) }

func (h Dir) SaveLaunch(l agent.Launch) error { return h.Save(launchFile(l.Agent), l, false) }

// SaveKeeper replaces the keeper's record, even on a full disk if there is one already: a
// full disk must not make an ended start look unproved.
func (h Dir) SaveKeeper(id agent.ID, k agent.Keeper) error {
	err := h.Save(keeperFile(id), k, false)
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		if data, merr := json.Marshal(k); merr == nil && h.rewrite(keeperFile(id), append(data, '\n')) == nil {
			return nil
		}
	}
	return err
}

func (h Dir) LoadReport(id agent.ID) (agent.Report, error) {
	return Load[agent.Report](h, reportFile(id))
}

func (h Dir) LoadLaunch(id agent.ID) (agent.Launch, error) {
	return Load[agent.Launch](h, launchFile(id))
}

func (h Dir) LoadKeeper(id agent.ID) (agent.Keeper, error) {
	return Load[agent.Keeper](h, keeperFile(id))
}

// Desired is which agents are wanted up.
type Desired Dir

// Set stores the desired state of an agent (or of DaemonName) so that it survives a
// power loss.
func (h Desired) Set(name string, up bool, by string) error {
	return Dir(h).Save(desiredFile(name), agent.Desired{Up: up, AtMS: time.Now().UnixMilli(), By: by}, true)
}

// Forget stores that an agent stays down and hidden, until it is wanted again or more than
// that many messages wait for it.
func (h Desired) Forget(id agent.ID, by string, waiting int) error {
	return Dir(h).Save(desiredFile(string(id)), agent.Desired{AtMS: time.Now().UnixMilli(), By: by, Forgotten: &waiting}, true)
}

// SetAll is Set for several agents at once.
func (h Desired) SetAll(ids []agent.ID, up bool, by string) error {
	data, err := json.Marshal(agent.Desired{Up: up, AtMS: time.Now().UnixMilli(), By: by})
	if err != nil || len(ids) == 0 {
		return err
	}
	names := make([]string, len(ids))
	for i, id := range ids {
		names[i] = string(id)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	return Dir(h).writeFiles(DesiredDir, names, append(data, '\n'), true)
}

// Load returns the desired state; without a file it is down.
func (h Desired) Load(name string) (agent.Desired, error) {
	return Load[agent.Desired](Dir(h), desiredFile(name))
}

// ClearReports removes what an earlier start of the agent left: its report and its
// keeper's record.
func (h Dir) ClearReports(id agent.ID) error {
	if err := h.Remove(reportFile(id)); err != nil {
		return err
	}
	return h.Remove(keeperFile(id))
}
