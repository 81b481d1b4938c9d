package schedule

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"netsky/agent"
	"netsky/home"
	"netsky/internal/advice"
	"netsky/store"
)

// ErrWish is returned for a schedule that can't be added as it is.
var ErrWish = errors.New("not added")

// A Book is the schedules of a home, as the verbs change them.
type Book struct {
	Home    home.Dir
	Records func() (*store.DB, error) // opens them for reading
	Idle    func() string             // says why no daemon sends them now, or ""
}

// An Added is a schedule that was added.
type Added struct {
	store.Schedule
	Begins   string   `json:"begins"`             // when it is due first
	Warnings []string `json:"warnings,omitempty"` // why nothing is sent yet
}

// Add adds a schedule. The error matches ErrWish if it can't be; and store.ErrSpooled if it
// begins only when the records can be written again.
func (b Book) Add(ctx context.Context, w Wish) (a Added, err error) {
	others, err := b.list(ctx, false)
	if err != nil && !errors.Is(err, errRecords) { // else they can't be counted now
		return a, err
	}
	s, first, err := Plan(w, Now(), others)
	if err != nil {
		return a, fmt.Errorf("%w: %w", ErrWish, err)
	}
	a = Added{Schedule: s, Begins: first.Format("Mon 2006-01-02 15:04")}
	if w.AtOnce {
		a.Begins = "now"
	}
	err = b.record(ctx, store.AddSchedule(s), store.AddLog{
		Part: "cron", Actor: s.Target, About: s.ID, Text: fmt.Sprintf("%s added %s: %s to %s: %.200s", w.Who, s.ID, s.Spec, s.Target, s.Text),
	})
	if errors.Is(err, store.ErrSpooled) {
		return a, fmt.Errorf("%s begins once the records can be written: %w", s.ID, err)
	}
	b.keep(ctx)
	if d, err := home.Desired(b.Home).Load(string(s.Target)); err != nil || !d.Up {
		a.Warnings = append(a.Warnings, fmt.Sprintf("%[1]s is down: nothing is sent until `netsky up %[1]s`", s.Target))
	}
	if why := b.Idle(); why != "" {
		a.Warnings = append(a.Warnings, why)
	}
	return a, err
}

func (b Book) record(ctx context.Context, ops ...store.Op) error {
	j := store.NewJournal(b.Home)
	return errors.Join(j.Record(ctx, ops...), j.Close())
}

var errRecords = errors.New("the schedules can't be read")

func (b Book) list(ctx context.Context, ended bool) ([]store.Schedule, error) {
	db, err := b.Records()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errRecords, err)
	}
	defer db.Close()
	list, err := db.Schedules(ctx, ended)
	if err != nil {
		err = fmt.Errorf("%w: %w", errRecords, err)
	}
	return list, err
}

// List returns the schedules as they are shown, and why nothing is sent now, if so.
func (b Book) List(ctx context.Context, ended bool) (views []View, warning string, err error) {
	list, err := b.list(ctx, ended)
	if err != nil {
		return nil, "", err
	}
	if slices.ContainsFunc(list, func(s store.Schedule) bool { return s.Ended == 0 }) {
		warning = b.Idle()
	}
	return Views(b.Home, list, Now()), warning, nil
}

// Remove ends schedules for good, and returns those that it ended.
func (b Book) Remove(ctx context.Context, by agent.ID, ids []string) (done []string, err error) {
	list, err := b.list(ctx, false)
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, id := range ids {
		if !slices.ContainsFunc(list, func(s store.Schedule) bool { return s.ID == id }) {
			errs = append(errs, advice.With(fmt.Errorf("%s: no such schedule", id), "`netsky cron ls` lists them"))
			continue
		}
		err := b.record(ctx, store.EndSchedule{ID: id, Why: "removed by " + string(by), At: store.At(time.Now())},
			store.AddLog{Part: "cron", About: id, Text: fmt.Sprintf("%s removed %s", by, id)})
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: it still runs: %w", id, err))
			continue
		}
		done = append(done, id)
	}
	b.keep(ctx)
	return done, errors.Join(errs...)
}

// keep brings the copy of the schedules up to date, which the daemon does otherwise.
func (b Book) keep(ctx context.Context) {
	if list, err := b.list(ctx, false); err == nil {
		_ = store.KeepSchedules(b.Home, list)
	}
}
