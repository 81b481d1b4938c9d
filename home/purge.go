package home

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"

	"netsky/agent"
	"netsky/internal/proc"

	"golang.org/x/sys/unix"
)

// Purge removes what netsky creates in a home, by name, and the home itself if nothing
// else is in it. It follows no link and leaves other file systems alone. left lists what
// it did not remove because it is not netsky's. The marker is removed last: after an
// error, or a crash, the rest is still a home and can be purged again.
//
// The caller has ended all that runs in the home.
func Purge(h Dir) (left []string, err error) {
	f, err := look(h)
	if err != nil {
		return nil, err
	}
	dir, err := h.OpenDir(".", false)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	p := purge{fd: int(dir.Fd()), made: f.made}
	var st unix.Stat_t
	if err := unix.Fstat(int(dir.Fd()), &st); err != nil {
		return nil, &fs.PathError{Op: "stat", Path: h.dir, Err: err}
	}
	p.dev = uint64(st.Dev)
	p.records = f.made || p.isRecords()
	names, err := dir.Readdirnames(0)
	if err != nil {
		return nil, err
	}
	// The locks, which keep others from starting anything, are removed late.
	slices.SortFunc(names, func(a, b string) int { return late(a) - late(b) })
	for _, name := range names {
		p.top(dir, name)
	}
	if p.err != nil {
		return p.left, p.err
	}
	if err := unix.Unlinkat(int(dir.Fd()), MarkerFile, 0); err != nil && err != unix.ENOENT {
		return p.left, &fs.PathError{Op: "remove", Path: h.Path(MarkerFile), Err: err}
	}
	if len(p.left) > 0 {
		return p.left, nil
	}
	if err := os.Remove(h.dir); err != nil {
		return nil, errors.Join(err, h.mark(false)) // something was added meanwhile
	}
	return nil, nil
}

func late(name string) int {
	if name == RunDir {
		return 1
	}
	return 0
}

type purge struct {
	fd   int  // of the home
	made bool // netsky made the home, so files with its names are netsky's
	dev  uint64

	records bool // DBFile is netsky's

	left []string // what is not netsky's, relative to the home
	err  error    // everything that could not be removed
}

// A shape is what netsky creates in a directory: nothing else there is removed, wherever
// it is from.
type shape struct {
	files string           // a pattern for whole names of files
	links string           // the same for symbolic links that a program makes in the place of a file
	dirs  map[string]shape // the directories
	boxes *shape           // for directories named by an address
	hosts *shape           // for directories named by a host
	tree  bool             // everything below is netsky's, or was checked before
}

const (
	addressName = `(owner|agent(infinity|0|[1-9][0-9]{0,3}))`
	anyAddress  = addressName + `(@[a-z][a-z0-9-]*)?`
	agentJSON   = addressName + `\.json`
	codexSocket = `cx-(infinity|[0-9]+)\.sock` // Codex makes a link to a socket elsewhere
	requestJSON = `[0-9]{20}-[0-9]+\.json`
	// A message, the reason beside it (a long name is cut short for it), or one half written.
	mail = `([^.].*\.json(\.why)?|[^.].{60,}\.why|\..*\.json\.tmp)`
)

// box is the shape of a mailbox.
var box = shape{
	files: `(seen|journal|\.(seen|journal)\.tmp|settings\.json|mcp-config\.json)`,
	dirs: map[string]shape{
		"inbox": {files: mail}, "claimed": {files: mail}, "delivered": {files: mail},
		"poison": {files: mail}, "outbox": {files: mail}, "sent": {files: mail},
		"attach": {tree: true},
	},
}

// shapes are those of the directories in ownNames. Old names stay here, as homes keep
// their files.
var shapes = map[string]shape{
	"channels": {dirs: map[string]shape{"agent": {boxes: &box}, "link": {hosts: &shape{files: `left|\.?reports(\.tmp)?`, boxes: &box}}}},
	"state": {
		files: `(owner-read|root|(ticker|daemon|dashboard|escalation|schedules|attention|upkeep|phone|phone-access|phone-pairing|agreed|landing|forecast|tmux)\.json)`,
		dirs: map[string]shape{
			"prompts":  {files: addressName + `\.md`},
			"launch":   {files: agentJSON},
			"keepers":  {files: agentJSON},
			"agents":   {files: agentJSON},
			"dialogs":  {files: agentJSON},
			"pointer":  {files: agentJSON},
			"unproved": {files: agentJSON},
			"screens":  {files: agentJSON},
			"own":      {files: agentJSON},
			"owed":     {files: agentJSON + `(\.bad-[0-9]+)?`},
			"events":   {files: addressName + `\.jsonl(\.1)?`},
			"desired":  {files: `(daemon|` + addressName + `)`},
			"spool":    {files: `[0-9]{20}-[0-9]{10}-[0-9a-zA-Z]+\.(json|bad|why)`},
			"demo":     {files: `(` + agentJSON + `(\.bad)?|` + addressName + `\.edits\.json|limit\.json)`},
			"claude":   {files: `(left-out|` + agentJSON + `(\.bad)?)`},
			"codex":    {files: agentJSON + `(\.bad-[0-9]+)?`},
			"codex-ui": {boxes: &shape{tree: true}}, // Codex writes there what it likes
			"watchdog": {
				files: `(dialogs|quiet|limits|escalated|mistake|wakes|blind)\.json`,
				dirs:  map[string]shape{"restarts": {files: agentJSON}, "hangs": {files: agentJSON}},
			},
			"recall":    {files: agentJSON},
			"worktrees": {files: agentJSON},
			"strayed":   {files: addressName},
			"git-hooks": {boxes: &shape{files: `[a-z.-]+`, dirs: map[string]shape{".kept": {files: `[a-z-]+`}, ".installed": {files: `[a-z-]+`}}}},
			"restart":   {files: requestJSON, dirs: map[string]shape{"new": {files: requestJSON}}},
			"breakers":  {files: `[a-z0-9-]*-[0-9a-f]{8}\.json`},
			"approvals": {files: `[0-9a-zA-Z]+\.(json|answer|settled)`},
			"link": {
				files: `(key|(self|team|server|asked|report|sent|tunnels)\.json)`,
				dirs:  map[string]shape{"hosts": {files: `[a-z][a-z0-9-]*\.json`}, "join": {files: `U[A-Z2-7]{55}\.json`}, "server": {tree: true}}, // NATS keeps there what it likes
			},
			// The runs, and copies of the records; beside one that was put aside is its log.
			"self": {files: `(run|installed|look)\.json|(check|self-[0-9]+(-aside|-undone)?)\.db(-[0-9a-zA-Z]+)*`},
		},
	},
	RunDir: {
		files: `(daemon\.(pid|sock)|(link|look)\.sock|link-server\.json|url|token|cx-(infinity|[0-9]+)\.(sock|json|sock\.lock))`,
		links: codexSocket,
		dirs: map[string]shape{
			"brakes":  {files: anyAddress + `-` + anyAddress},
			"ssh":     {files: `[0-9a-f]{12}(\.[0-9a-zA-Z]+)?`}, // connections that ssh keeps
			"scratch": {tree: true},                             // what git made and nobody keeps
			"lock":    {files: `(up|uninstall|tick|watchdog|quiet|daemon|router|tmux|records|upkeep|breakers|escalate|phone|phone-access|worktrees|landing|tasks|self|link|link-server|receiver-` + anyAddress + `|(codex|dialog|worktree|check)-` + addressName + `)`},
		},
	},
	LogDir:  {files: `((check|setup)-[0-9a-zA-Z]+\.log|daemon\.log(\.1)?|supervisor\.log|netsky(-[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9.-]+)?\.jsonl)`},
	WorkDir: {dirs: map[string]shape{".scratch": {tree: true}}, boxes: &shape{tree: true}},
}

// top removes one entry at the top of the home if it is netsky's.
func (p *purge) top(home *os.File, name string) {
	mode := kind(home, name)
	dir, own := ownNames[name]
	switch {
	case mode == 0, name == MarkerFile:
	case mode == unix.S_IFREG && (own && !dir || tempName().MatchString(name)):
		if !p.proved(name) {
			p.left = append(p.left, name)
			return
		}
		p.unlink(home, name, name, 0)
	case mode != unix.S_IFDIR || !dir:
		p.left = append(p.left, name)
	default:
		p.shaped(home, name, name, shapes[name])
	}
}

// tempName matches the names made by writeTemp.
var tempName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\.tmp-[0-9]+-[0-9]+$`) })

// proved reports whether a file at the top is netsky's. If netsky made the directory, the
// name proves it; if a person did, the content must.
func (p *purge) proved(name string) bool {
	switch {
	case p.made:
		return true
	case name == TmuxConfFile:
		return bytes.HasPrefix(p.head(name), []byte("# The tmux server that netsky's agents live in."))
	case strings.HasPrefix(name, DBFile):
		return p.records
	}
	return true
}

// isRecords reports whether DBFile is an SQLite database with netsky's tables. Only its
// journal may have them yet.
func (p *purge) isRecords() bool {
	db := p.head(DBFile)
	if !bytes.HasPrefix(db, []byte("SQLite format 3\x00")) {
		return false
	}
	for _, data := range [][]byte{db, p.head(DBFile + "-wal")} {
		if bytes.Contains(data, []byte("CREATE TABLE actors (")) && bytes.Contains(data, []byte("CREATE TABLE sessions (")) {
			return true
		}
	}
	return false
}

// head returns the beginning of a file at the top, nil if it can't be read.
func (p *purge) head(name string) []byte {
	fd, err := proc.Openat(p.fd, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil
	}
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	data, _ := io.ReadAll(io.LimitReader(f, 1<<20))
	return data
}

// below returns the shape of a directory in one of this shape, nil if netsky makes none of
// that name.
func (s shape) below(name string) *shape {
	if below, known := s.dirs[name]; known {
		return &below
	}
	if _, err := agent.Parse(name); err == nil && s.boxes != nil {
		return s.boxes
	}
	if agent.IsHost(name) {
		return s.hosts
	}
	return nil
}

// shaped removes from a directory what its shape has, and the directory itself if it is
// then empty.
func (p *purge) shaped(parent *os.File, name, rel string, s shape) {
	if s.tree {
		p.tree(parent, name, rel)
		return
	}
	files := regexp.MustCompile(`^(?s:` + s.files + `)$`) // of a constant
	links := regexp.MustCompile(`^(?s:` + s.links + `)$`)
	p.only(parent, name, rel, func(dir *os.File, name string) {
		rel := rel + "/" + name
		switch mode := kind(dir, name); {
		case mode == 0:
		case mode == unix.S_IFDIR && s.below(name) != nil:
			p.shaped(dir, name, rel, *s.below(name))
		case (mode == unix.S_IFREG || mode == unix.S_IFSOCK) && (files.MatchString(name) || tempName().MatchString(name)):
			p.unlink(dir, name, rel, 0)
		case mode == unix.S_IFLNK && links.MatchString(name):
			p.unlink(dir, name, rel, 0)
		default:
			p.left = append(p.left, rel)
		}
	})
}

// only passes the entries of a directory to each, and removes the directory if it is then
// empty.
func (p *purge) only(parent *os.File, name, rel string, each func(dir *os.File, name string)) {
	dir := p.open(parent, name, rel)
	if dir == nil {
		return
	}
	defer dir.Close()
	names, err := dir.Readdirnames(0)
	p.fail(rel, err)
	before := len(p.left)
	for _, n := range names {
		each(dir, n)
	}
	if len(p.left) == before && p.err == nil {
		p.unlink(parent, name, rel, unix.AT_REMOVEDIR)
	}
}

// tree removes a directory and everything below it, links as links.
func (p *purge) tree(parent *os.File, name, rel string) {
	dir := p.open(parent, name, rel)
	if dir == nil {
		return
	}
	defer dir.Close()
	for removed := 1; removed > 0; {
		removed = 0
		for {
			names, err := dir.Readdirnames(512)
			for _, n := range names {
				if kind(dir, n) == unix.S_IFDIR {
					p.tree(dir, n, rel+"/"+n)
				} else {
					p.unlink(dir, n, rel+"/"+n, 0)
				}
			}
			removed += len(names)
			if err != nil {
				if err != io.EOF {
					p.fail(rel, err)
				}
				break
			}
		}
		err := unix.Unlinkat(int(parent.Fd()), name, unix.AT_REMOVEDIR)
		if err == nil || err == unix.ENOENT {
			return
		}
		if p.err != nil || err != unix.ENOTEMPTY && err != unix.EEXIST || removed == 0 {
			p.fail(rel, err)
			return
		}
		// Some file systems skip entries while others are removed.
		if _, err := dir.Seek(0, io.SeekStart); err != nil {
			p.fail(rel, err)
			return
		}
	}
}

// open opens a subdirectory, nil if it is to be left alone.
func (p *purge) open(parent *os.File, name, rel string) *os.File {
	fd, err := proc.Openat(int(parent.Fd()), name, unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_RDONLY, 0)
	if err == unix.ENOENT {
		return nil
	}
	if err != nil {
		p.fail(rel, err)
		return nil
	}
	dir := os.NewFile(uintptr(fd), rel)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || uint64(st.Dev) != p.dev || isMount(fd) {
		p.fail(rel, errors.New("another file system is mounted there"))
		dir.Close()
		return nil
	}
	return dir
}

func (p *purge) unlink(dir *os.File, name, rel string, flags int) {
	if err := unix.Unlinkat(int(dir.Fd()), name, flags); err != nil && err != unix.ENOENT {
		p.fail(rel, err)
	}
}

// fail records what could not be removed. One cause is enough: it is often the same for a
// thousand files.
func (p *purge) fail(rel string, err error) {
	if err != nil && p.err == nil {
		p.err = fmt.Errorf("%s: not removed: %w", rel, reason(err))
	}
}

// kind returns the type of an entry, 0 if it does not exist.
func kind(dir *os.File, name string) uint32 {
	var st unix.Stat_t
	if unix.Fstatat(int(dir.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
		return 0
	}
	return uint32(st.Mode) & unix.S_IFMT
}
