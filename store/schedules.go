package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"netsky/agent"
	"netsky/home"
)

// A Schedule is a message that the daemon sends at given times, and its latest run.
type Schedule struct {
	ID      string   `json:"id"`
	Spec    string   `json:"spec"` // a cron expression or an interval
	Target  agent.ID `json:"target"`
	Text    string   `json:"text"`
	Who     string   `json:"who"`
	Created Time     `json:"created"`
	First   Time     `json:"first"`            // the runs are those after this time
	Times   int      `json:"times,omitempty"`  // how many are sent at most; 0: no limit
	Until   Time     `json:"until,omitzero"`   // none is due after this time
	Ended   Time     `json:"ended,omitzero"`   // removed or finished
	Why     string   `json:"why,omitempty"`    // why it ended
	Sent    int      `json:"sent"`             // messages, so far
	Last    Run      `json:"last,omitzero"`    // the latest run
	Message string   `json:"message,omitzero"` // the latest message that was sent
}

// schedulesFile holds the schedules that have not ended, for a database that is made anew.
const schedulesFile = "state/schedules.json"

// KeepSchedules replaces the copy of the schedules from which a lost database gets them
// back: list is what Schedules returns. A crash leaves the earlier copy.
func KeepSchedules(h home.Dir, list []Schedule) error {
	kept, err := home.Load[[]AddSchedule](h, schedulesFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		kept = nil // damaged
	}
	next := make([]AddSchedule, 0, len(list))
	for _, s := range list {
		if s.Ended == 0 {
			next = append(next, s.rest())
		}
	}
	if err == nil && slices.Equal(kept, next) || err != nil && len(next) == 0 {
		return nil
	}
	return h.Save(schedulesFile, next, true)
}

// rest returns what is left of a schedule after its latest run.
func (s Schedule) rest() AddSchedule {
	if s.Times > 0 {
		s.Times = max(s.Times-s.Sent, 1) // a last one may not have been recorded as the end
	}
	s.First = max(s.First, s.Last.Due)
	s.Sent, s.Last, s.Message = 0, Run{}, ""
	return AddSchedule(s)
}

// A RunResult is what became of a due time.
type RunResult string

const (
	RunSending RunResult = "sending" // about to be sent, or sent and not recorded yet
	RunSent    RunResult = "sent"
	RunSkipped RunResult = "skipped" // the previous one was not finished
	RunDown    RunResult = "down"    // its agent is down
)

// A Run is one due time of a schedule.
type Run struct {
	Due    Time      `json:"due"`
	Wall   Time      `json:"-"` // Due on the clock on the wall, as if UTC
	At     Time      `json:"at"`
	Result RunResult `json:"result"`
	Note   string    `json:"note,omitempty"`
}

// AddSchedule records a schedule; added again it changes nothing. Its run and its end are
// ignored.
type AddSchedule Schedule

func (AddSchedule) name() string { return "add_schedule" }

func (s AddSchedule) stamped(now Time) Op {
	stamp(&s.Created, now)
	stamp(&s.First, s.Created)
	return s
}

func (s AddSchedule) apply(t *tx) error {
	if s.ID == "" || s.Spec == "" || s.Target == "" {
		return fmt.Errorf("%w: schedule without an id, times or a target", errOp)
	}
	return t.exec(`INSERT INTO schedules (id, spec, target, text, who, created, first, times, until) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (id) DO NOTHING`, s.ID, s.Spec, s.Target, s.Text, s.Who, s.Created, s.First, s.Times, s.Until)
}

// EndSchedule ends a schedule for good; the first end counts.
type EndSchedule struct {
	ID  string `json:"id"`
	Why string `json:"why"`
	At  Time   `json:"at"`
}

func (EndSchedule) name() string          { return "end_schedule" }
func (e EndSchedule) stamped(now Time) Op { stamp(&e.At, now); return e }
func (e EndSchedule) apply(t *tx) error {
	return t.exec("UPDATE schedules SET ended = ?, why = ? WHERE id = ? AND ended = 0", e.At, e.Why, e.ID)
}

// RunSchedule records what became of a due time. RunSending sets the message and counts
// it, once for each message; the results after it keep both.
type RunSchedule struct {
	ID      string `json:"id"`
	Message string `json:"message,omitempty"` // with RunSending
	Run     Run    `json:"run"`
	Wall    Time   `json:"wall"`
}

func (RunSchedule) name() string          { return "run_schedule" }
func (r RunSchedule) stamped(now Time) Op { stamp(&r.Run.At, now); return r }

func (r RunSchedule) apply(t *tx) error {
	if r.Message != "" {
		err := t.exec("UPDATE schedules SET last_message = ?, sent = sent + 1 WHERE id = ? AND last_message <> ? AND last_at <= ?", r.Message, r.ID, r.Message, r.Run.At)
		if err != nil {
			return err
		}
	}
	return t.exec(`UPDATE schedules SET last_due = ?, last_wall = ?, last_at = ?, last_result = ?, last_note = ?
		WHERE id = ? AND last_at <= ?`, r.Run.Due, r.Wall, r.Run.At, r.Run.Result, r.Run.Note, r.ID, r.Run.At)
}

const scheduleColumns = `id, spec, target, text, who, created, first, times, until, ended, why, sent, last_message,
	last_due, last_wall, last_at, last_result, last_note`

func scanSchedule(r *sql.Rows) (s Schedule, err error) {
	err = r.Scan(&s.ID, &s.Spec, &s.Target, &s.Text, &s.Who, &s.Created, &s.First, &s.Times, &s.Until, &s.Ended, &s.Why, &s.Sent, &s.Message,
		&s.Last.Due, &s.Last.Wall, &s.Last.At, &s.Last.Result, &s.Last.Note)
	return s, err
}

// Schedules lists the schedules that have not ended, the oldest first; with ended also the
// latest hundred that have.
func (db *DB) Schedules(ctx context.Context, ended bool) ([]Schedule, error) {
	list1, err := Collect(ctx, db.read.Load(), scanSchedule, "SELECT "+scheduleColumns+" FROM schedules WHERE ended = 0 ORDER BY created, id")
	if err != nil || !ended {
		return list1, err
	}
	list2, err := Collect(ctx, db.read.Load(), scanSchedule, "SELECT "+scheduleColumns+" FROM schedules WHERE ended <> 0 ORDER BY ended DESC, id LIMIT 100")
	return append(list1, list2...), err
}
