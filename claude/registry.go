package claude

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	"netsky/home"
	"netsky/internal/proc"
)

// The statuses in Claude Code's session registry.
const (
	statusIdle    = "idle"
	statusBusy    = "busy"
	statusWaiting = "waiting"
	statusShell   = "shell" // idle, with a command running in the background
)

// A Registered is what Claude Code records about one of its own sessions, in
// sessions/<pid>.json below its configuration directory.
type Registered struct {
	PID        int    `json:"pid"`
	Session    string `json:"sessionId"`
	Dir        string `json:"cwd"`
	Version    string `json:"version"`
	Status     string `json:"status"` // "" until the session takes its first key
	WaitingFor string `json:"waitingFor"`
	StatusMS   int64  `json:"statusUpdatedAt"`
	Socket     string `json:"messagingSocketPath"`
	Birth      string `json:"procStart"`
}

// ConfigDir returns Claude Code's configuration directory in an environment.
func ConfigDir(getenv func(string) string) string {
	if dir := getenv("CLAUDE_CONFIG_DIR"); dir != "" {
		return dir
	}
	return filepath.Join(getenv("HOME"), ".claude")
}

const (
	maxRegistered = 64 << 10
	readTries     = 4
	readAgain     = 5 * time.Millisecond
)

// FindSession looks a process up in the registry. The error matches fs.ErrNotExist if it
// is not there, or if that process is gone: a killed one leaves its entry behind.
func FindSession(configDir string, pid int) (Registered, error) {
	p, err := proc.Find(pid)
	if err != nil {
		return Registered{}, fmt.Errorf("claude %d: %w", pid, err)
	}
	file := sessionFile(configDir, pid)
	r, err := readRegistered(file)
	if err != nil {
		return Registered{}, fmt.Errorf("claude %d: %w", pid, err)
	}
	if r.PID != pid || runtime.GOOS == "linux" && r.Birth != "" && r.Birth != strconv.FormatInt(p.Start, 10) {
		return Registered{}, fmt.Errorf("claude %d: %s belongs to another process: %w", pid, file, fs.ErrNotExist)
	}
	return r, nil
}

func sessionFile(configDir string, pid int) string {
	return filepath.Join(configDir, "sessions", strconv.Itoa(pid)+".json")
}

// readRegistered reads an entry. Claude Code writes it in place, so it may be half
// written; then it is read again.
func readRegistered(file string) (r Registered, err error) {
	for i := range readTries {
		if i > 0 {
			<-time.After(readAgain)
		}
		var data []byte
		if data, err = home.ReadOwn(file, maxRegistered); err != nil {
			return r, err
		}
		r = Registered{}
		if err = json.Unmarshal(data, &r); err == nil {
			return r, nil
		}
	}
	return Registered{}, fmt.Errorf("%s: %w", file, err)
}
