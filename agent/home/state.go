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
)

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
func (h Dir) SaveTicker(t agent.Ticker) error { return h.Save(tickerFile, t, false) }

func (h Dir) LoadTicker() (agent.Ticker, error) { return Load[agent.Ticker](h, tickerFile) }

const maxStateFile = 4 << 20

// Save replaces a small file with v as JSON, by way of WriteFile.
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

// SaveReport, SaveLaunch and SaveKeeper replace the agent's file; the Load
// functions read it, and their error matches fs.ErrNotExist if there is none.
func (h Dir) SaveReport(id agent.ID, r agent.Report) error { return h.Save(reportFile(id), r, false) }

func (h Dir) SaveLaunch(l agent.Launch) error { return h.Save(launchFile(l.Agent), l, false) }

// SaveKeeper replaces the keeper's record, also on a disk that is full if there
// is one: what ended there must not look unproved for that.
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

// SetDesired stores what is wanted of an agent (or of DaemonName) so that it
// survives a loss of power.
func (h Dir) SetDesired(name string, up bool, by string) error {
	return h.Save(desiredFile(name), agent.Desired{Up: up, AtMS: time.Now().UnixMilli(), By: by}, true)
}

// Forget stores that an agent is to stay down and to be shown no longer, until it
// is wanted again or more than so many messages wait for it.
func (h Dir) Forget(id agent.ID, by string, waiting int) error {
	return h.Save(desiredFile(string(id)), agent.Desired{AtMS: time.Now().UnixMilli(), By: by, Forgotten: &waiting}, true)
}

// SetAllDesired is SetDesired of several agents in one go.
func (h Dir) SetAllDesired(ids []agent.ID, up bool, by string) error {
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
	return h.writeFiles(DesiredDir, names, append(data, '\n'), true)
}

// LoadDesired is what is wanted; nothing on file means down.
func (h Dir) LoadDesired(name string) (agent.Desired, error) {
	return Load[agent.Desired](h, desiredFile(name))
}

// ClearReports removes what an earlier start of the agent left to be believed:
// its report and its keeper's word.
func (h Dir) ClearReports(id agent.ID) error {
	if err := h.Remove(reportFile(id)); err != nil {
		return err
	}
	return h.Remove(keeperFile(id))
}
