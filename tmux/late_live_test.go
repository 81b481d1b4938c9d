//go:build live

package tmux_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"netsky/internal/testworld"
	"netsky/tmux"
)

const (
	lost   = `$REAL "$@" >/dev/null 2>&1; exec sleep 1000` // carried out, and the answer does not come
	asleep = `kill -STOP $PID`                             // the server stops before it reads what it is told
	wakes  = `kill -CONT $PID`
)

// What a server that answers late has done is found out and told as it is: that all
// was done, that nothing was, or that it is not known.
func TestLateAnswer(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, told, asked string
		started, unknown  bool
	}{
		{name: "carried out", told: lost, asked: ":", started: true},
		{name: "not carried out", told: asleep, asked: wakes},
		{name: "not answered afterwards", told: asleep, asked: ":", unknown: true},
		{name: "carried out, not answered afterwards", told: `$REAL "$@" >/dev/null 2>&1; ` + asleep + "; exec sleep 1000", asked: ":", started: true, unknown: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t, "@start")
			mustStart(t, s, idle("before"))
			pid := serverPID(t, s)
			t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGCONT) })
			one, two := idle("agent1"), idle("agent2")
			one.Tags, two.Tags = map[string]string{"@start": "s1"}, map[string]string{"@start": "s2"}
			within := 3 * time.Second
			ctx, cancel := context.WithTimeout(t.Context(), within)
			defer cancel()
			began := time.Now()
			panes, err := slowly(t, s, tt.told, tt.asked).Start(ctx, nil, []tmux.Session{one, two})
			took := time.Since(began)
			_ = syscall.Kill(pid, syscall.SIGCONT)
			if took > 3*within {
				t.Errorf("took %v with %v allowed", took, within)
			}
			testworld.Equal(t, errors.Is(err, tmux.ErrUnanswered), tt.unknown, "Start() = %v; unanswered", err)
			var not *tmux.NotStarted
			switch {
			case tt.unknown && panes != nil:
				t.Errorf("panes %v of a start that is not known", names(panes))
			case !tt.unknown && tt.started && (err != nil || !slices.Equal(names(panes), []string{"agent1", "agent2", "before"})):
				t.Errorf("Start() = %v, %v; want all three and no error", names(panes), err)
			case !tt.unknown && !tt.started && (!errors.As(err, &not) || !slices.Equal(not.Names, []string{"agent1", "agent2"})):
				t.Errorf("Start() = %v, %v; want both not started", names(panes), err)
			}
			// And so it is, for good.
			want := []string{"before"}
			if tt.started {
				want = []string{"agent1", "agent2", "before"}
			}
			for range 3 {
				if got := names(mustPanes(t, s)); !slices.Equal(got, want) {
					t.Errorf("sessions %v afterwards, want %v", got, want)
				}
			}
		})
	}
}

// The same of sessions that are ended.
func TestLateKill(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, told, asked string
		unknown           bool
	}{
		{name: "carried out", told: `[ -e $0.once ] || { : >$0.once; ` + lost + "; }", asked: ":"},
		{name: "not carried out at first", told: `[ -e $0.once ] || { : >$0.once; ` + asleep + "; }", asked: wakes},
		{name: "not answered afterwards", told: asleep, asked: ":", unknown: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t)
			panes := mustStart(t, s, idle("agent1"), idle("agent2"), idle("stays"))
			pid := serverPID(t, s)
			t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGCONT) })
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			defer cancel()
			err := slowly(t, s, tt.told, tt.asked).Kill(ctx, find(t, panes, "agent1"), find(t, panes, "agent2"))
			_ = syscall.Kill(pid, syscall.SIGCONT)
			if got := errors.Is(err, tmux.ErrUnanswered); got != tt.unknown || (err != nil) != tt.unknown {
				t.Errorf("Kill() = %v; want unanswered %v", err, tt.unknown)
			}
			if got := strings.Join(names(mustPanes(t, s)), " "); !tt.unknown && got != "stays" {
				t.Errorf("sessions %s afterwards", got)
			}
		})
	}
}
