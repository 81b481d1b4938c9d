package home

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"netsky/agent"
	"netsky/internal/advice"
	"netsky/internal/execx"
)

// MaxHome is the maximum length of the home's path in bytes: a unix socket's path must fit
// in 104 bytes on macOS, and netsky's are in run/ below it.
const MaxHome = 80

// A Dir is the directory that holds all of one netsky: $NETSKY_HOME, else ~/.netsky. Paths
// below it are relative to it, with slashes, and opened without following a symbolic link;
// the home itself must not be one. Check says which directories can be a home.
type Dir struct {
	dir  string // the path
	user string // $HOME, "" if not set
}

// Find resolves the home directory from the environment. It creates nothing. A directory
// that can be reached by several paths, through a link above it, is one home, by the path
// under which it was made: the tmux server, its sessions and the lines in netsky.toml go by
// that.
func Find(getenv func(string) string) (Dir, error) {
	h, err := named(getenv)
	if err == nil {
		h.dir = h.first()
	}
	return h, err
}

// rootFile holds the path under which the home was made, and the inode of the directory.
const rootFile = "state/root"

func rootOf(h Dir) (path, inode string, err error) {
	data, err := h.ReadFile(rootFile, 1<<10)
	path, rest, _ := strings.Cut(string(data), "\n")
	return path, strings.TrimSuffix(rest, "\n"), err
}

// rootText is what rootFile holds of this home.
func rootText(h Dir) string { return fmt.Sprintf("%s\n%d\n", h.dir, h.Mark().ino) }

// ErrCopied is returned for a home that is a copy of one that is still there.
var ErrCopied = errors.New("is a copy")

// copied returns ErrCopied of a home whose records name the processes of another: what was
// copied with the directory beside it. One that was moved is there once.
func copied(h Dir) error {
	path, inode, err := rootOf(h)
	if err != nil || inode == "" || path == h.dir || inode == strconv.FormatUint(h.Mark().ino, 10) || !h.IsOther(path) {
		return nil
	}
	return advice.With(fmt.Errorf("%s %w of %s, whose agents it would take for its own", h.dir, ErrCopied, path),
		"`NETSKY_HOME=%s netsky init` makes it a home of its own, with its mail and records, in which no agent was started yet", advice.Word(h.dir))
}

// ofProcesses are the files that tell of processes and starts, and so mean nothing in a copy.
var ofProcesses = []string{RunDir, KeeperDir, LaunchDir, ReportDir, DesiredDir, strayDir, ApprovalDir, tmuxFile, tickerFile, daemonFile}

// Adopt makes a home of its own of one for which Check returns ErrCopied: it forgets what was
// started in the other. A crash leaves a copy, of which less is left to forget.
func Adopt(h Dir) error {
	if copied(h) == nil {
		return nil
	}
	state, err := h.OpenDir(filepath.Dir(rootFile), false) // through no link
	if err != nil {
		return err
	}
	defer state.Close()
	for _, rel := range ofProcesses {
		if err := os.RemoveAll(h.Path(rel)); err != nil {
			return err
		}
	}
	return h.WriteFile(rootFile, []byte(rootText(h)), true)
}

// first returns the path under which the home was made, if it still leads there.
func (h Dir) first() string {
	path, _, err := rootOf(h)
	if err != nil || path == h.dir {
		return h.dir
	}
	was, err := named(func(string) string { return path }) // as NETSKY_HOME
	if err != nil || was.dir != path || !same(h.dir, path) {
		return h.dir // copied or moved
	}
	return path
}

// keepRoot records the path of a home that is new, or was copied or moved. Without it, a
// home is as many as it has paths; no verb fails for that.
func (h Dir) keepRoot() {
	if data, err := h.ReadFile(rootFile, 1<<10); err != nil || string(data) != rootText(h) {
		_ = h.WriteFile(rootFile, []byte(rootText(h)), false)
	}
}

// same reports whether two paths are the same directory, and neither is a link.
func same(a, b string) bool {
	at, err := os.Lstat(a)
	bt, berr := os.Lstat(b)
	return err == nil && berr == nil && at.IsDir() && os.SameFile(at, bt)
}

func named(getenv func(string) string) (Dir, error) {
	home := getenv("HOME")
	usual := ""
	if filepath.IsAbs(home) {
		usual = filepath.Join(home, ".netsky")
	}
	dir := getenv("NETSKY_HOME")
	switch {
	case dir == "" && usual == "":
		return Dir{}, errors.New("neither NETSKY_HOME nor HOME is set")
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
		return Dir{}, fmt.Errorf("NETSKY_HOME: %q is %d bytes long; the limit is %d, as unix sockets below it must fit", dir, len(dir), MaxHome)
	}
	if strings.ContainsAny(dir, "\x00\n\r") {
		return Dir{}, fmt.Errorf("NETSKY_HOME: %q holds a control character", dir)
	}
	return Dir{dir: dir, user: home}, nil
}

// At returns the home at an absolute path, for tests and tours.
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

// Root returns the home's absolute path.
func (h Dir) Root() string { return h.dir }

// Path returns the absolute path of a file below the home.
func (h Dir) Path(rel ...string) string {
	return filepath.Join(append([]string{h.dir}, rel...)...)
}

// TmuxSocket returns the name of this home's tmux server: "netsky" for .netsky below the
// user's login directory, and one with a hash of the path for any other. tmux has one
// directory of sockets per user, whatever HOME says: so two homes of one user never share
// a server.
func (h Dir) TmuxSocket() string {
	if filepath.Base(h.dir) == ".netsky" && filepath.Dir(h.dir) == loginDir() {
		return "netsky"
	}
	sum := sha256.Sum256([]byte(h.dir))
	return "netsky-" + hex.EncodeToString(sum[:4])
}

// loginDir returns the user's directory in the user database, "" without one. HOME may
// name any other.
var loginDir = sync.OnceValue(func() string {
	u, err := execx.LookupUser(os.Getuid())
	if err != nil || !filepath.IsAbs(u.HomeDir) {
		return ""
	}
	return filepath.Clean(u.HomeDir)
})

// Paths below a home, each defined once.
const (
	MarkerFile   = ".netsky-home"
	ConfigFile   = "netsky.toml"
	TmuxConfFile = "tmux.conf"
	DBFile       = "meta.db"
	Channels     = "channels/agent"
	Links        = "channels/link"        // the mail for other hosts, by host
	LinkSelf     = "state/link/self.json" // who this host is in its team
	SpoolDir     = "state/spool"
	DemoDir      = "state/demo"
	ReportDir    = "state/agents"
	KeeperDir    = "state/keepers"
	DesiredDir   = "state/desired"
	OwnerRead    = "state/owner-read" // names of the owner's mail that was shown, one per line
	PhoneAccess  = "state/phone-access.json"
	LaunchDir    = "state/launch"
	BreakersDir  = "state/breakers"
	EventsDir    = "state/events"
	PromptDir    = "state/prompts"
	LockDir      = "run/lock"
	RunDir       = "run"
	LogDir       = "logs"
	WorkDir      = "workspaces"
	DaemonPID    = "run/daemon.pid"
	DaemonSocket = "run/daemon.sock"
	LookSocket   = "run/look.sock"
)

// IsOther reports whether dir is there and not this home, which may have been moved, or
// have other paths.
func (h Dir) IsOther(dir string) bool {
	own, err := os.Stat(h.dir)
	there, derr := os.Stat(dir)
	return err == nil && derr == nil && !os.SameFile(own, there)
}

// Mailbox returns the directory of an address on the bus; of one on another host, the
// directory of what is to go there.
func Mailbox(id agent.ID) string {
	if host := id.Host(); host != "" {
		return Links + "/" + host + "/" + string(id.Local())
	}
	return Channels + "/" + string(id)
}

// PromptFile returns the file with the agent's rendered system prompt.
func PromptFile(id agent.ID) string { return PromptDir + "/" + string(id) + ".md" }

// EventsFile returns the file with what other processes observed of the agent.
func EventsFile(id agent.ID) string { return EventsDir + "/" + string(id) + ".jsonl" }

// Workspace returns the directory for a clone's git worktrees.
func Workspace(id agent.ID) string { return WorkDir + "/" + string(id) }

// StrayFile returns the file with what an agent does outside of its worktree.
func StrayFile(id agent.ID) string { return strayDir + "/" + string(id) }

const strayDir = "state/strayed"

func launchFile(id agent.ID) string { return LaunchDir + "/" + string(id) + ".json" }
func keeperFile(id agent.ID) string { return KeeperDir + "/" + string(id) + ".json" }
func reportFile(id agent.ID) string { return ReportDir + "/" + string(id) + ".json" }
func desiredFile(n string) string   { return DesiredDir + "/" + n }

// homeDirs are created with the home; mailboxes when they are needed.
var homeDirs = []string{
	Channels, PromptDir, LaunchDir, KeeperDir, ReportDir, EventsDir, DesiredDir,
	SpoolDir, DemoDir, "state/codex", "state/approvals", LockDir, WorkDir, LogDir,
}
