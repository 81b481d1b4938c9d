package tmux

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

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
