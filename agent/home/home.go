package home

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"sync"
	"unicode/utf8"

	"netsky/agent"
)

// MaxHome is the longest home directory's path in bytes: a unix socket's path
// must fit in 104 bytes on macOS, and ours lie in run/ below it.
const MaxHome = 80

// A Dir is the directory that holds all of one netsky: $NETSKY_HOME, else
// ~/.netsky. Paths below it are written relative to it, with slashes, and are
// opened without following a symbolic link; the home itself is none either.
// Check says which directories can be one.
type Dir struct {
	dir  string // the path
	user string // $HOME, "" where it is not set
}

// Find resolves the home directory from the environment.
// It makes nothing.
func Find(getenv func(string) string) (Dir, error) {
	home := getenv("HOME")
	usual := ""
	if filepath.IsAbs(home) {
		usual = filepath.Join(home, ".netsky")
	}
	dir := getenv("NETSKY_HOME")
	switch {
	case dir == "" && usual == "":
		return Dir{}, errors.New("HOME: not set, and NETSKY_HOME neither")
	case dir == "":
		dir = usual
	case !filepath.IsAbs(dir):
		return Dir{}, fmt.Errorf("NETSKY_HOME: %q is not an absolute path", dir)
	}
	dir = filepath.Clean(dir)
	if !utf8.ValidString(dir) { // launch files and records are JSON, which has no other text
		return Dir{}, fmt.Errorf("NETSKY_HOME: %q is not valid UTF-8", dir)
	}
	if len(dir) > MaxHome {
		return Dir{}, fmt.Errorf("NETSKY_HOME: %q has %d bytes; unix sockets below it allow %d", dir, len(dir), MaxHome)
	}
	if strings.ContainsAny(dir, "\x00\n\r") {
		return Dir{}, fmt.Errorf("NETSKY_HOME: %q holds a control character", dir)
	}
	return Dir{dir: dir, user: home}, nil
}

// At is the home at an absolute path, for tests and for tours.
func At(dir string) (Dir, error) {
	return Find(func(k string) string {
		switch k {
		case "NETSKY_HOME":
			return dir
		case "HOME":
			return os.Getenv("HOME")
		}
		return ""
	})
}

// Dir is the home's absolute path.
func (h Dir) Root() string { return h.dir }

// Path is the absolute path of a file below the home.
func (h Dir) Path(rel ...string) string {
	return filepath.Join(append([]string{h.dir}, rel...)...)
}

// TmuxSocket is the name of the tmux server that belongs to this home: "netsky"
// for .netsky below the user's login directory, and one with a hash of the path
// for any other. tmux has one directory of sockets per user, whatever HOME says:
// so two homes of one user never share a server.
func (h Dir) TmuxSocket() string {
	if filepath.Base(h.dir) == ".netsky" && filepath.Dir(h.dir) == loginDir() {
		return "netsky"
	}
	sum := sha256.Sum256([]byte(h.dir))
	return "netsky-" + hex.EncodeToString(sum[:4])
}

// loginDir is the user's directory in the user database, "" without one. HOME
// may name any other.
var loginDir = sync.OnceValue(func() string {
	u, err := user.Current()
	if err != nil || !filepath.IsAbs(u.HomeDir) {
		return ""
	}
	return filepath.Clean(u.HomeDir)
})

// The files below a home. Each name stands once, here.
const (
	MarkerFile   = ".netsky-home"
	ConfigFile   = "netsky.toml"
	TmuxConfFile = "tmux.conf"
	DBFile       = "meta.db"
	Channels     = "channels/agent"
	SpoolDir     = "state/spool"
	DemoDir      = "state/demo"
	ReportDir    = "state/agents"
	KeeperDir    = "state/keepers"
	DesiredDir   = "state/desired"
	OwnerRead    = "state/owner-read" // names of the owner's mail that was shown, one a line
	LaunchDir    = "state/launch"
	EventsDir    = "state/events"
	PromptDir    = "state/prompts"
	LockDir      = "run/lock"
	RunDir       = "run"
	LogDir       = "logs"
	WorkDir      = "workspaces"
	DaemonPID    = "run/daemon.pid"
	DaemonSocket = "run/daemon.sock"
)

// Mailbox is the directory of an address on the bus.
func Mailbox(id agent.ID) string { return Channels + "/" + string(id) }

// PromptFile holds the agent's rendered system prompt.
func PromptFile(id agent.ID) string { return PromptDir + "/" + string(id) + ".md" }

// EventsFile holds what witnesses in other processes saw of the agent.
func EventsFile(id agent.ID) string { return EventsDir + "/" + string(id) + ".jsonl" }

// Workspace is where a clone puts its git worktrees.
func Workspace(id agent.ID) string { return WorkDir + "/" + string(id) }

func launchFile(id agent.ID) string { return LaunchDir + "/" + string(id) + ".json" }
func keeperFile(id agent.ID) string { return KeeperDir + "/" + string(id) + ".json" }
func reportFile(id agent.ID) string { return ReportDir + "/" + string(id) + ".json" }
func desiredFile(n string) string   { return DesiredDir + "/" + n }

// homeDirs are made with the home; mailboxes are made by whoever needs one.
var homeDirs = []string{
	Channels, PromptDir, LaunchDir, KeeperDir, ReportDir, EventsDir, DesiredDir,
	SpoolDir, DemoDir, "state/codex", "state/approvals", LockDir, WorkDir, LogDir,
}
