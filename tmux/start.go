package tmux

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"netsky/internal/execx"
)

// A Session is what [Server.Start] starts: one detached session of one
// window of one pane.
type Session struct {
	// Name is made of letters, digits, _ and -.
	Name string
	// Dir is where Command starts; it must exist.
	Dir string
	// Command is a command line for /bin/sh, whatever shell the person uses.
	// It should begin with exec, so that the pane's process is the program.
	Command string
	// Env is added to the server's environment. PATH is the PATH of
	// [Server.Env] unless it is given here.
	Env []string
	// Tags are the session's user options; names begin with @.
	Tags map[string]string
	// Width and Height are in cells; 0 is 200 and 50.
	Width, Height int
}

// maxWord is the largest string that Linux hands to a program: beyond it a
// session vanishes while tmux reports success.
const maxWord = 128<<10 - 1

const mark = "sessions-are-in-place"

// Start starts sessions, and the server if there is none, by a single call of
// tmux. The setup lines are tmux command lines (see [Quote]) which are carried
// out first. Neither they nor the sessions can be seen in an argument list.
//
// It returns the panes that are there afterwards, of all sessions but hubs, also
// beside an error, which says what tmux did not accept and is a [NotStarted] where
// sessions are not there. A session that is there already under a name is left as
// it was, with its own tags. Whether a program runs is not known here.
//
// A server that does not answer in time is asked once more what is there. If that
// is not answered either, the error matches [ErrUnanswered] and there are no panes.
func (s *Server) Start(ctx context.Context, setup []string, list []Session) ([]Pane, error) {
	lines := make([]string, 0, len(setup)+len(list))
	for _, line := range setup {
		if err := oneLine(line); err != nil {
			return nil, err
		}
		lines = append(lines, line)
	}
	path := execx.Value(s.Environ(), "PATH")
	for _, session := range list {
		line, err := session.line(path)
		if err != nil {
			return nil, err
		}
		lines = append(lines, line)
	}
	panes, err := s.batch(ctx, lines)
	if errors.Is(err, ErrUnanswered) {
		return nil, err
	}
	return panesOf(panes), missing(list, panes, s.Tags, err)
}

// NotStarted is the error for sessions that do not exist after a Start.
type NotStarted struct {
	Names []string
	Cause error // what tmux said; may be nil
}

func (e *NotStarted) Error() string {
	const shown = 10
	text := "tmux: not started: " + strings.Join(e.Names[:min(len(e.Names), shown)], ", ")
	if n := len(e.Names) - shown; n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	if e.Cause != nil {
		text += "\n" + e.Cause.Error()
	}
	return text
}

func (e *NotStarted) Unwrap() error { return e.Cause }

// batch executes lines, starting a server if there is none, and lists the panes of all
// sessions in the same call.
func (s *Server) batch(ctx context.Context, lines []string) ([]listed, error) {
	q, err := s.question()
	if err != nil {
		return nil, err
	}
	whole, cancel, err := settledWithin(ctx, "source-file", startPatience)
	if err != nil {
		return nil, err
	}
	defer cancel()
	begun := time.Now()
	lines = append(lines, "display-message -p "+mark, q.line(), "")
	// A server's argument list is that of the call that started it, for
	// everyone to read as long as it lives. So it shows nothing but this.
	out, err := s.run(whole, strings.NewReader(strings.Join(lines, "\n")), "start-server", ";", "source-file", "-")
	var lost unheard
	if errors.As(err, &lost) {
		panes, lerr := s.afterwards(ctx, begun, err)
		return panes, cmp.Or(lerr, err)
	}
	_, answer, ok := strings.Cut(out, mark+"\n")
	if !ok {
		return nil, errors.Join(err, errors.New("tmux source-file: nothing was carried out"))
	}
	panes, bad := q.parse(answer)
	s.socket().note(panes)
	return panes, errors.Join(err, bad)
}

// missing adds to err the sessions that are not among panes with their tags. If all
// are, a late answer is no error.
func missing(list []Session, panes []listed, tags []string, err error) error {
	there := make(map[string]Pane, len(panes))
	for _, p := range panes {
		there[p.Session] = p.Pane
	}
	var names []string
	for _, session := range list {
		p, ok := there[session.Name]
		for _, tag := range tags {
			ok = ok && p.Tags[tag] == session.Tags[tag]
		}
		if !ok {
			names = append(names, session.Name)
		}
	}
	var lost unheard
	switch {
	case len(names) > 0:
		return &NotStarted{Names: names, Cause: err}
	case errors.As(err, &lost) && len(list) > 0:
		return nil
	}
	return err
}

// line is the command line that makes the session. An error in it ends the line,
// so that the tags of a session of this name that was there before stay its own.
func (x Session) line(path string) (string, error) {
	if err := x.check(); err != nil {
		return "", fmt.Errorf("tmux: session %q: %w", x.Name, err)
	}
	width, height := x.Width, x.Height
	if width <= 0 {
		width = 200
	}
	if height <= 0 {
		height = 50
	}
	words := []string{"new-session", "-d", "-s", x.Name, "-x", strconv.Itoa(width), "-y", strconv.Itoa(height)}
	if x.Dir != "" {
		words = append(words, "-c", literal(x.Dir))
	}
	for _, v := range x.Env {
		words = append(words, "-e", v)
		if p, ok := strings.CutPrefix(v, "PATH="); ok {
			path = p
		}
	}
	// tmux puts the PATH of the tmux program above the session's own, so the
	// shell has to set it. Several words make tmux run /bin/sh itself rather
	// than through the person's shell, which may not be like sh at all.
	words = append(words, "--", "/bin/sh", "-c", setPath+x.Command, "sh", path)
	var b strings.Builder
	for _, w := range words {
		b.WriteString(Quote(w))
		b.WriteByte(' ')
	}
	for _, tag := range slices.Sorted(maps.Keys(x.Tags)) {
		fmt.Fprintf(&b, "; set-option -t =%s: %s %s ", x.Name, tag, Quote(x.Tags[tag]))
	}
	return b.String(), nil
}

const setPath = "PATH=$1; export PATH; shift; "

func (x Session) check() error {
	if !nameOK(x.Name) {
		return errors.New("want letters, digits, - or _")
	}
	if x.Command == "" {
		return errors.New("no command")
	}
	if err := wordOK("command", setPath+x.Command); err != nil {
		return err
	}
	for _, v := range x.Env {
		name, _, ok := strings.Cut(v, "=")
		if !ok || name == "" {
			return errors.New("environment: want name=value")
		}
		if err := wordOK("variable "+name, v); err != nil {
			return err
		}
	}
	for tag, v := range x.Tags {
		if err := tagOK(tag); err != nil {
			return err
		}
		if strings.Contains(v, "\x00") {
			return fmt.Errorf("tag %s: a NUL in it", tag)
		}
	}
	return dirOK(x.Dir)
}

func wordOK(what, v string) error {
	if len(v) > maxWord {
		return fmt.Errorf("%s: %d bytes, more than the %d that a program can be given", what, len(v), maxWord)
	}
	if strings.Contains(v, "\x00") {
		return fmt.Errorf("%s: a NUL in it", what)
	}
	return nil
}

// dirOK refuses a directory in which the program could not start: tmux would silently
// use another one.
func dirOK(dir string) error {
	if dir == "" {
		return nil
	}
	if strings.Contains(dir, "\x00") {
		return errors.New("directory: a NUL in it")
	}
	info, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("directory: %w", err)
	}
	if !info.IsDir() {
		return &fs.PathError{Op: "directory", Path: dir, Err: syscall.ENOTDIR}
	}
	const search = 1
	if err := syscall.Access(dir, search); err != nil {
		return &fs.PathError{Op: "directory", Path: dir, Err: err}
	}
	return nil
}

// Kill ends the sessions of the given panes, which must come from [Server.Panes] or
// [Server.Start], with all their windows, wherever those are linked. It is no error if a
// session is already gone, or the server has been replaced. What the programs did with the
// hangup is unknown here.
func (s *Server) Kill(ctx context.Context, list ...Pane) error {
	for _, p := range list {
		if p.Server == "" || p.SessionID == "" {
			return fmt.Errorf("tmux: session %q: a pane without its ids", p.Session)
		}
	}
	if len(list) == 0 {
		return nil
	}
	ctx, cancel := withPatience(ctx)
	defer cancel()
	before, err := s.list(ctx)
	if err != nil {
		return ignoreNoServer(err)
	}
	d := doomedOf(list, before)
	if len(d.sessions) == 0 {
		return nil
	}
	after, still, err := s.carryOut(ctx, d.lines(before[0].Server))
	var lost unheard
	if errors.As(err, &lost) && !errors.Is(err, ErrUnanswered) {
		// It answers by now. What is gone is gone, so this ends the rest.
		after, still, err = s.carryOut(context.WithoutCancel(ctx), d.lines(before[0].Server))
	}
	if err != nil {
		return ignoreNoServer(err)
	}
	for w := range d.linked {
		if strings.Contains(still, stillThere+w+"\n") {
			return fmt.Errorf("tmux kill-window: %s is still there", w)
		}
	}
	for _, p := range after {
		if p.Server == before[0].Server && (d.sessions[p.SessionID] || d.windows[p.Window]) {
			return fmt.Errorf("tmux kill-session: %s in session %s is still there", p.ID, p.Session)
		}
	}
	return nil
}

func ignoreNoServer(err error) error {
	if errors.Is(err, ErrNoServer) {
		return nil
	}
	return err
}

// doomed is what a Kill has to end, by id.
type doomed struct {
	sessions map[string]bool
	windows  map[string]bool // of those sessions
	linked   map[string]bool // those that have another place too
}

func doomedOf(list []Pane, all []listed) doomed {
	type key struct{ server, session string }
	wanted := make(map[key]bool, len(list))
	for _, p := range list {
		wanted[key{p.Server, p.SessionID}] = true
	}
	d := doomed{map[string]bool{}, map[string]bool{}, map[string]bool{}}
	for _, p := range all {
		if wanted[key{p.Server, p.SessionID}] {
			d.sessions[p.SessionID], d.windows[p.Window] = true, true
			if p.linked {
				d.linked[p.Window] = true
			}
		}
	}
	return d
}

// lines returns the commands, each on its own line because an error ends the rest of
// its line. The condition holds only in the server that the ids belong to, which never
// reuses one.
func (d doomed) lines(server string) []string {
	guard := "if-shell -F " + Quote("#{==:#{pid}-#{start_time},"+server+"}")
	var lines []string
	// A window that is linked elsewhere, by a hub or a person, outlives its
	// session unless it is killed by itself.
	for w := range d.linked {
		lines = append(lines, guard+" { kill-window -t "+w+" }")
	}
	for id := range d.sessions {
		lines = append(lines, guard+" { kill-session -t "+Quote(id)+" }")
	}
	// A window that only a hub still has is in no list of panes.
	for w := range d.linked {
		lines = append(lines, "if-shell -F -t "+w+" "+Quote("#{==:#{pid}-#{start_time} #{window_id},"+server+" "+w+"}")+
			" { display-message -p "+Quote(stillThere+w)+" }")
	}
	return lines
}

const stillThere = "still there: "

// carryOut executes lines and lists the panes that exist afterwards. It does not report
// the lines' errors, only their output. A server that does not answer in time is waited
// for once more; then the error is unheard, and it is unknown what was done.
func (s *Server) carryOut(ctx context.Context, lines []string) (panes []listed, printed string, err error) {
	q, err := s.question()
	if err != nil {
		return nil, "", err
	}
	whole, cancel, err := settled(ctx, "source-file")
	if err != nil {
		return nil, "", err
	}
	defer cancel()
	begun := time.Now()
	lines = append(lines, "display-message -p "+mark, q.line(), "")
	out, err := s.run(whole, strings.NewReader(strings.Join(lines, "\n")), "source-file", "-")
	var lost unheard
	if errors.As(err, &lost) {
		_, lerr := s.afterwards(ctx, begun, err)
		return nil, "", cmp.Or(lerr, err)
	}
	printed, answer, ok := strings.Cut(out, mark+"\n")
	if !ok {
		if err == nil {
			err = errors.New("tmux source-file: nothing was carried out")
		}
		return nil, "", err
	}
	panes, err = q.parse(answer)
	return panes, printed, err
}
