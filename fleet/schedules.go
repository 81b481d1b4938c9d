package fleet

import (
	"context"
	"errors"
	"fmt"

	"netsky/agent"
	"netsky/daemon"
	"netsky/daemon/schedule"
	"netsky/store"
)

// A Schedules is the deeds of messages that are sent at set times.
type Schedules struct{ *Fleet }

// A ScheduleRequest asks for a text to be sent at set times.
type ScheduleRequest struct {
	When  string   `json:"when"` // five fields as in cron, @daily and such, or "every 30m"
	Agent agent.ID `json:"agent"`
	Text  string   `json:"text"`
	Now   bool     `json:"now,omitempty"`   // the first one is sent at once
	Times int      `json:"times,omitempty"` // 0: no limit
	Until string   `json:"until,omitempty"` // a time or a duration; "": no limit
}

func (s Schedules) book(ctx context.Context) schedule.Book {
	return schedule.Book{
		Home: s.Home, Records: func() (*store.DB, error) { return Records(ctx, s.Home, s.bus, s.UI) },
		Idle: func() string {
			switch p, err := daemon.Ping(ctx, s.Home); {
			case err != nil:
				return "the daemon, which sends it, is not running: nothing is sent until `netsky up`"
			case p.Schema < store.Schema():
				return "the daemon, which sends it, is of an older netsky: nothing is sent until `netsky daemon restart`"
			}
			return ""
		},
	}
}

// Add adds a schedule. With an error that is a *[PartlyError] it begins once the records can be written.
func (s Schedules) Add(ctx context.Context, r ScheduleRequest) (v schedule.Added, err error) {
	if err := s.May("cron add"); err != nil {
		return v, err
	}
	if err := s.Make(); err != nil {
		return v, err
	}
	v, err = s.book(ctx).Add(ctx, schedule.Wish{
		Spec: r.When, Text: r.Text, Target: r.Agent, Who: s.Actor, AtOnce: r.Now, Times: r.Times, Until: r.Until,
	})
	switch {
	case errors.Is(err, schedule.ErrWish):
		return v, usagef("cron add: %w", err)
	case errors.Is(err, store.ErrSpooled):
		return v, partly(err)
	case err != nil:
		return v, err
	}
	if err := daemon.Wake(ctx, s.Home); err != nil {
		s.UI.Warn(err)
	}
	return v, nil
}

// A SchedulesRequest asks which there are.
type SchedulesRequest struct {
	All bool `json:"all,omitempty"` // also those that have ended
}

// A SchedulesResult lists them.
type SchedulesResult struct {
	Schedules []schedule.View `json:"schedules"`
	Warning   string          `json:"warning,omitempty"` // why nothing is sent now
}

// List lists the schedules.
func (s Schedules) List(ctx context.Context, r SchedulesRequest) (v SchedulesResult, err error) {
	v.Schedules, v.Warning, err = s.book(ctx).List(ctx, r.All)
	return v, err
}

// An UnscheduleRequest asks for schedules to be removed.
type UnscheduleRequest struct {
	IDs []string `json:"ids"`
}

// An UnscheduleResult lists those that were.
type UnscheduleResult struct {
	Removed []string `json:"removed"`
}

// Remove ends schedules for good.
func (s Schedules) Remove(ctx context.Context, r UnscheduleRequest) (v UnscheduleResult, err error) {
	if err := s.May("cron rm"); err != nil {
		return v, err
	}
	v.Removed, err = s.book(ctx).Remove(ctx, s.Actor, r.IDs)
	if err != nil && len(v.Removed) > 0 {
		err = partly(fmt.Errorf("cron rm: %w", err))
	}
	return v, err
}
