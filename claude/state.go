package claude

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"netsky/agent"
	"netsky/home"
)

const stateDir = "state/claude"

// StateFile returns the file that names an agent's conversation, below the home.
func StateFile(id agent.ID) string { return stateDir + "/" + string(id) + ".json" }

// A State is state/claude/<agent>.json: the conversation that the agent continues when it
// is started again.
type State struct {
	Session    string `json:"session"`              // a UUID
	Transcript string `json:"transcript,omitempty"` // the conversation's file, as a hook named it
	Dir        string `json:"dir"`                  // where it was begun
	Start      string `json:"start"`                // the last start that has it
	// Used is set once the conversation has taken its first text. Before that Claude Code
	// has no file of it, and it has not seen the startup text.
	Used bool `json:"used"`
	// Lost is the conversation before, until this one is used.
	Lost agent.Lost `json:"lost,omitzero"`
}

// errDamaged reports a state file that cannot be used.
var errDamaged = errors.New("not a valid conversation state")

// maxState is far more than a state needs, in bytes.
const maxState = 64 << 10

// LoadState reads the agent's state; the zero State if there is none.
func LoadState(home home.Dir, id agent.ID) (State, error) {
	file := StateFile(id)
	data, err := home.ReadFile(file, maxState)
	if errors.Is(err, fs.ErrNotExist) {
		return State{}, nil
	}
	if err != nil {
		return State{}, fmt.Errorf("%s: %w", id, err)
	}
	var s State
	if err := json.Unmarshal(data, &s); err != nil || !isUUID(s.Session) {
		return State{}, fmt.Errorf("%s: %s: %w", id, home.Path(file), errDamaged)
	}
	return s, nil
}

// SaveState replaces the agent's state so that it survives a power loss: without it the
// agent would lose its memory.
func SaveState(home home.Dir, id agent.ID, s State) error {
	if !isUUID(s.Session) { // LoadState would refuse it
		return fmt.Errorf("%s: %.80q is not a Claude Code session id", id, s.Session)
	}
	if err := home.Save(StateFile(id), s, true); err != nil {
		return fmt.Errorf("%s: save its conversation: %w", id, err)
	}
	return nil
}

// Forget makes the agent's next start a fresh conversation. Claude Code keeps its file of
// the old one.
func Forget(home home.Dir, id agent.ID) error { return home.Remove(StateFile(id)) }

// keepAside renames a damaged state, for a person to look at.
func keepAside(home home.Dir, id agent.ID) error {
	data, err := home.ReadFile(StateFile(id), maxState)
	if err != nil {
		return fmt.Errorf("%s: %w", id, err)
	}
	return home.WriteFile(StateFile(id)+".bad", data, false)
}

// next decides which conversation a start has: the one on record if it belongs to the same
// directory and Claude Code has a file of it, else a new one. A conversation without
// messages has no file, and resuming it would end Claude Code at once; so would starting
// another under the id of an existing one.
func next(home home.Dir, l *agent.Launch) (s State, resume bool, err error) {
	if l.Resume != "" {
		if !isUUID(l.Resume) {
			return State{}, false, fmt.Errorf("%s: %q is not a Claude Code session id", l.Agent, l.Resume)
		}
		if findTranscript(l.Env, l.Resume) == "" {
			return State{}, false, fmt.Errorf("%s: no conversation %s in %s", l.Agent, l.Resume, configDir(l.Env))
		}
	}
	s, err = LoadState(home, l.Agent)
	if errors.Is(err, errDamaged) {
		s, err = State{}, keepAside(home, l.Agent)
	}
	if err != nil {
		return State{}, false, err
	}
	if l.Resume != "" && l.Resume != s.Session {
		s = State{Session: l.Resume, Dir: l.Dir, Used: true}
	}
	if s.Session != "" && (s.Dir == l.Dir || l.Resume != "") {
		if file := findTranscript(l.Env, s.Session); file != "" {
			s.Transcript, s.Dir, s.Start, s.Used, s.Lost = file, l.Dir, l.Start, true, agent.Lost{}
			return s, true, nil
		}
		l.Lost = lost(home, l, s)
	}
	return State{Session: newUUID(), Dir: l.Dir, Start: l.Start, Lost: l.Lost}, false, nil
}

// lost says why a conversation of which there is no file to be found can't be continued;
// nothing if it was never used.
func lost(home home.Dir, l *agent.Launch, s State) agent.Lost {
	if !s.Used {
		return s.Lost
	}
	projects := filepath.Join(configDir(l.Env), "projects")
	days, set := CleanupDays(home, l.Agent, l.Env)
	why := fmt.Sprintf("Claude Code has no file of it in %s any more; it removes what nothing was written to for %d days (cleanupPeriodDays in %s)", projects, days, set)
	if info, err := os.Stat(s.Transcript); err == nil && info.Mode().IsRegular() {
		if why = s.Transcript + " holds no message"; !strings.HasPrefix(s.Transcript, projects+"/") {
			why = fmt.Sprintf("its file is %s, and Claude Code looks in %s now", s.Transcript, projects)
		}
	}
	return agent.Lost{Conversation: s.Session, Why: why}
}

// CleanupDays returns after how many days without a change Claude Code removes an agent's
// conversation, and the file that sets that, or would.
func CleanupDays(home home.Dir, id agent.ID, env []string) (days int, file string) {
	file = filepath.Join(configDir(env), "settings.json")
	for _, f := range []string{home.Path(settingsFile(id)), file} {
		o, err := readObject(f)
		var n float64
		if err == nil && json.Unmarshal(o["cleanupPeriodDays"], &n) == nil && n >= 1 && n < 1e6 {
			return int(n), f
		}
	}
	return 30, file
}

// findTranscript returns Claude Code's file of a conversation, or "". It ignores the file
// that a hook named: that may be below another configuration directory, where this start
// would not find it.
func findTranscript(env []string, session string) string {
	projects := filepath.Join(configDir(env), "projects")
	entries, err := os.ReadDir(projects)
	if err != nil {
		return ""
	}
	for _, e := range entries {
		file := filepath.Join(projects, e.Name(), session+".jsonl")
		if holdsTurn(file) {
			return file
		}
	}
	return ""
}

// holdsTurn reports whether a conversation's file holds a user's message. Claude Code
// refuses to resume one without.
func holdsTurn(file string) bool {
	const enough = 1 << 20 // there are only a few lines before the first message
	f, err := os.OpenFile(file, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return false
	}
	head, err := io.ReadAll(io.LimitReader(f, enough))
	return err == nil && (bytes.Contains(head, []byte(`"type":"user"`)) || len(head) == enough)
}
