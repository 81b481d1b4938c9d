package tmux

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// A Pane is one pane as tmux described it. A pane whose window is linked into
// several sessions is listed once for each of them.
type Pane struct {
	Session   string // name of its session
	SessionID string // "$1"; like ID and Window unique while the server lives
	Window    string // "@2"
	ID        string // "%3"
	Server    string // tells this server from the one before and after it

	PID           int // of the pane's first process
	Width, Height int // cells
	Attached      int // clients attached to the session
	InMode        bool
	Dead          bool      // the program ended and remain-on-exit kept the pane
	Title         string    // as the program set it
	Command       string    // name of the foreground process
	Activity      time.Time // of the window's last output; whole seconds
	Tags          map[string]string
}

// hubTag marks a hub's session, whose windows are other sessions' windows.
const hubTag = "@linked-hub"

// outsideHubs lets tmux leave hubs out of a list by itself: a hub has each window
// once more, and one that was left behind can have thousands.
const outsideHubs = "#{?" + hubTag + ",0,1}"

// fixed are the fields of a line that can hold neither blank nor line feed.
const fixed = "#{pid}-#{start_time} #{session_id} #{window_id} #{pane_id} #{pane_pid} " +
	"#{pane_width} #{pane_height} #{session_attached} #{pane_in_mode} #{pane_dead} " +
	"#{window_activity} #{window_linked}"

// silent are the servers, by their sockets, for which Panes has waited in vain
// with all of its patience, and when that was.
var silent sync.Map

// Panes lists the panes of all sessions but hubs. Without a server there are none, which
// is no error. A server that has just failed to answer a call without a deadline is not
// asked again for as long as that took.
func (s *Server) Panes(ctx context.Context) ([]Pane, error) {
	if at, ok := silent.Load(s.path()); ok && time.Since(at.(time.Time)) < patience {
		since := time.Since(at.(time.Time))
		return nil, fmt.Errorf("tmux list-panes: server %s: no answer %v ago, not asked again yet: %w",
			s.label(), since.Round(100*time.Millisecond), context.DeadlineExceeded)
	}
	_, bounded := ctx.Deadline()
	all, err := s.listThrough(ctx)
	if err != nil { // a program tells more
		all, err = s.list(ctx)
	}
	if !bounded && ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		silent.Store(s.path(), time.Now())
	}
	if errors.Is(err, ErrNoServer) {
		return nil, nil
	}
	return panesOf(all), err
}

// list is Panes with the error of a server that is not there.
func (s *Server) list(ctx context.Context) ([]listed, error) {
	q, err := s.question()
	if err != nil {
		return nil, err
	}
	ctx, cancel := withPatience(ctx)
	defer cancel()
	out, err := "", exec.ErrWaitDelay
	for errors.Is(err, exec.ErrWaitDelay) { // a busy server closes the output late
		out, err = s.run(ctx, nil, "list-panes", "-a", "-f", outsideHubs, "-F", q.format)
	}
	if err != nil {
		return nil, err
	}
	all, err := q.parse(out)
	s.socket().note(all)
	return all, err
}

// Through has Panes ask by a client of this server, which costs a thirtieth of starting a program, while the
// client lives and the server's socket is the one that there is now. The caller says so again, with nil, when
// it closes the client.
func (s *Server) Through(c *Client) {
	var t *through
	if c != nil {
		t = &through{client: c}
		if unix.Lstat(s.path(), &t.socket) != nil {
			t = nil
		}
	}
	s.through.Store(t)
}

// A through is a client to ask, and what the socket was then.
type through struct {
	client *Client
	socket unix.Stat_t
}

// clientPatience is how long a client may take that may be stopped itself.
const clientPatience = 2 * time.Second

// listThrough is list by the client, if there is one.
func (s *Server) listThrough(ctx context.Context) ([]listed, error) {
	t := s.through.Load()
	var now unix.Stat_t
	if t == nil || unix.Lstat(s.path(), &now) != nil || now.Dev != t.socket.Dev || now.Ino != t.socket.Ino {
		return nil, ErrClosed
	}
	q, err := s.question()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, clientPatience)
	defer cancel()
	out, err := t.client.Do(ctx, q.line())
	if err != nil {
		return nil, err
	}
	all, err := q.parse(out + "\n")
	s.socket().note(all)
	return all, err
}

// A listed pane is one whose window may have other places too.
type listed struct {
	Pane
	linked bool // its window is linked a second time, into another session or a hub
}

func panesOf(all []listed) []Pane {
	var panes []Pane
	for _, p := range all {
		panes = append(panes, p.Pane)
	}
	return panes
}

// A question is what list-panes is asked for, and how its answer is read.
type question struct {
	format string
	tags   []string
	bound  string // before and after each pane; nobody can guess it
}

// question asks for the fixed fields and then for those in which a program or
// person can write what they like: each with its length before it, but for the
// command, which can change between being measured and being shown.
func (s *Server) question() (question, error) {
	var b strings.Builder
	bound := rand.Text()
	b.WriteString(bound + " " + fixed)
	for _, name := range []string{"session_name", "pane_title"} {
		fmt.Fprintf(&b, " #{n:%s}:#{%s}", name, name)
	}
	for _, tag := range s.Tags {
		if err := tagOK(tag); err != nil {
			return question{}, err
		}
		fmt.Fprintf(&b, " #{n:%s}:#{%s}", tag, tag)
	}
	b.WriteString(" #{pane_current_command} " + bound)
	return question{format: b.String(), tags: s.Tags, bound: bound}, nil
}

func tagOK(tag string) error {
	if name, ok := strings.CutPrefix(tag, "@"); !ok || !nameOK(name) {
		return fmt.Errorf("tmux: tag %q: want @ and letters, digits, - or _", tag)
	}
	return nil
}

// line asks it in a source file.
func (q question) line() string {
	return "list-panes -a -f " + Quote(outsideHubs) + " -F " + Quote(q.format)
}

func (q question) parse(text string) ([]listed, error) {
	var all []listed
	for {
		// A person's hooks may print between the panes.
		_, next, ok := strings.Cut(text, q.bound+" ")
		if !ok {
			return all, nil
		}
		one, rest, ok := strings.Cut(next, " "+q.bound+"\n")
		if !ok {
			return nil, fmt.Errorf("tmux list-panes: answer %d: no end", len(all)+1)
		}
		p, err := q.parseOne(strings.Clone(one)) // the kept part must not keep the whole answer in memory
		if err != nil {
			return nil, fmt.Errorf("tmux list-panes: answer %d: %w", len(all)+1, err)
		}
		all, text = append(all, p), rest
	}
}

// parseOne reads the description of one pane.
func (q question) parseOne(text string) (listed, error) {
	field := strings.SplitN(text, " ", 13)
	if len(field) != 13 {
		return listed{}, errors.New("too short")
	}
	var number [7]int64
	for i := range number {
		n, err := strconv.ParseInt(field[4+i], 10, 64)
		if err != nil && field[4+i] != "" {
			return listed{}, err
		}
		number[i] = n
	}
	p := listed{linked: field[11] == "1", Pane: Pane{
		Server: field[0], SessionID: field[1], Window: field[2], ID: field[3],
		PID: int(number[0]), Width: int(number[1]), Height: int(number[2]), Attached: int(number[3]),
		InMode: number[4] != 0, Dead: number[5] != 0, Activity: time.Unix(number[6], 0),
		Tags: make(map[string]string, len(q.tags)),
	}}
	rest := field[12]
	var free [2]string
	var err error
	for i := range free {
		if free[i], rest, err = counted(rest); err != nil {
			return listed{}, err
		}
	}
	p.Session, p.Title = free[0], free[1]
	for _, tag := range q.tags {
		var v string
		if v, rest, err = counted(rest); err != nil {
			return listed{}, err
		}
		if v != "" {
			p.Tags[tag] = v
		}
	}
	p.Command = strings.TrimPrefix(rest, " ")
	return p, nil
}

// counted cuts "3:abc", or " 3:abc", off the front of text.
func counted(text string) (string, string, error) {
	head, rest, ok := strings.Cut(text, ":")
	n, err := strconv.Atoi(strings.TrimPrefix(head, " "))
	if !ok || err != nil || n < 0 || n > len(rest) {
		return "", "", errors.New("bad length of a field")
	}
	return rest[:n], rest[n:], nil
}

// A Look is what a pane shows, and when its program and a person were last active.
// Times are whole seconds, rounded down.
type Look struct {
	Screen []string // its rows from the top, without blanks at their ends
	Row    int      // of the cursor
	Column int      // of the cursor, in cells
	Cursor bool     // it is shown
	InMode bool
	Dead   bool
	Output time.Time // of the window's last output
	// Person is when somebody last attached to the session or pressed a key in it; zero
	// if nobody ever did. It stays when they leave.
	Person time.Time
}

const lookFields = "#{pane_id} #{cursor_y} #{cursor_x} #{cursor_flag} #{pane_in_mode} #{pane_dead} " +
	"#{window_activity} #{session_activity} #{?session_last_attached,1,0}"

// Look looks at a pane as one of its session's: a person's keys that reached it through
// another session are not seen.
func (s *Server) Look(ctx context.Context, p Pane) (Look, error) {
	target, err := exact(p.ID)
	if err != nil {
		return Look{}, err
	}
	if !nameOK(p.Session) {
		return Look{}, fmt.Errorf("tmux list-panes: session %q: want letters, digits, - or _", p.Session)
	}
	bound := rand.Text()
	out, err := s.run(ctx, nil, "list-panes", "-s", "-t", "="+p.Session+":", "-F", bound+" "+lookFields+" "+bound, ";",
		"capture-pane", "-p", "-t", target)
	if err != nil {
		return Look{}, err
	}
	var l Look
	found := false
	for {
		_, rest, ok := strings.Cut(out, bound+" ")
		if !ok {
			break
		}
		fields, after, ok := strings.Cut(rest, " "+bound+"\n")
		if !ok {
			return Look{}, fmt.Errorf("tmux list-panes: %s: an answer without its end", p.ID)
		}
		if id, rest, _ := strings.Cut(fields, " "); id == p.ID {
			if err := l.parse(rest); err != nil {
				return Look{}, fmt.Errorf("tmux list-panes: %s: %w", p.ID, err)
			}
			found = true
		}
		out = after
	}
	if !found {
		return Look{}, fmt.Errorf("tmux list-panes: %w: %s in %s", ErrNotFound, p.ID, p.Session)
	}
	for row := range strings.Lines(out) {
		l.Screen = append(l.Screen, strings.TrimRight(row, " \n"))
	}
	return l, nil
}

func (l *Look) parse(text string) error {
	var n [8]int64
	fields := strings.Fields(text)
	if len(fields) != len(n) {
		return fmt.Errorf("%d fields, want %d", len(fields), len(n))
	}
	for i, f := range fields {
		v, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return err
		}
		n[i] = v
	}
	l.Row, l.Column, l.Cursor, l.InMode, l.Dead = int(n[0]), int(n[1]), n[2] != 0, n[3] != 0, n[4] != 0
	l.Output = time.Unix(n[5], 0)
	if n[7] != 0 {
		l.Person = time.Unix(n[6], 0)
	}
	return nil
}

// CursorRow returns the text of the cursor's row.
func (l Look) CursorRow() string {
	if l.Row < 0 || l.Row >= len(l.Screen) {
		return ""
	}
	return l.Screen[l.Row]
}
