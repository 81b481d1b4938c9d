package schedule

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"time"
)

// Bounds of an interval.
const (
	MinEvery = time.Minute
	maxEvery = 366 * 24 * time.Hour
)

// A When says when a schedule is due: at the minutes of a cron expression in local time,
// or at an interval.
type When struct {
	every time.Duration // 0: the fields count

	minute, hour, day, month, weekday uint64 // a bit for each value
	anyHour                           bool   // the hour is *, so the expression means minutes, not a time of day
	anyDay, anyWeekday                bool
}

var aliases = map[string]string{
	"@hourly": "0 * * * *", "@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@weekly": "0 0 * * 0",
	"@monthly": "0 0 1 * *", "@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *",
}

// Parse parses "MINUTE HOUR DAY MONTH WEEKDAY", an alias such as "@daily", or "every 30m".
func Parse(spec string) (w When, err error) {
	if full, ok := aliases[strings.ToLower(strings.TrimSpace(spec))]; ok {
		spec = full
	}
	words := strings.Fields(spec)
	if len(words) == 2 && words[0] == "every" {
		return Every(words[1])
	}
	if len(words) != 5 {
		return w, fmt.Errorf("%.80q is no schedule: want five fields (minute hour day month weekday), @hourly, @daily, @weekly, @monthly, or \"every 30m\"", spec)
	}
	for i, f := range []struct {
		name     string
		to       *uint64
		min, max int
		names    string
	}{
		{"minute", &w.minute, 0, 59, ""}, {"hour", &w.hour, 0, 23, ""}, {"day", &w.day, 1, 31, ""},
		{"month", &w.month, 1, 12, "janfebmaraprmayjunjulaugsepoctnovdec"}, {"weekday", &w.weekday, 0, 7, "sunmontuewedthufrisat"},
	} {
		if *f.to, err = parseField(words[i], f.min, f.max, f.names); err != nil {
			return w, fmt.Errorf("%.80q: %s: %w", spec, f.name, err)
		}
	}
	if w.weekday&(1<<7) != 0 { // Sunday, too
		w.weekday = w.weekday&^(1<<7) | 1
	}
	w.anyHour, w.anyDay, w.anyWeekday = w.hour == 1<<24-1, strings.HasPrefix(words[2], "*"), strings.HasPrefix(words[4], "*")
	// The only dates that no year has are days that no chosen month has.
	if w.anyWeekday && w.Next(time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		return w, fmt.Errorf("%.80q: there is no such day", spec)
	}
	return w, nil
}

// Every parses an interval, such as "30m".
func Every(text string) (w When, err error) {
	d, err := time.ParseDuration(text)
	switch {
	case err != nil:
		return w, fmt.Errorf("%.80q is no interval, such as \"30m\" or \"6h\"", text)
	case d < MinEvery || d > maxEvery:
		return w, fmt.Errorf("every %s: must be between 1m and 366 days", text)
	}
	return When{every: d}, nil
}

// parseField parses one field: a list of *, a value or a range, each with a step.
func parseField(text string, min, max int, names string) (set uint64, err error) {
	for part := range strings.SplitSeq(text, ",") {
		span, stepText, stepped := strings.Cut(part, "/")
		from, to, step := min, max, 1
		if stepped {
			if step, err = strconv.Atoi(stepText); err != nil || step < 1 || step > max {
				return 0, fmt.Errorf("%.40q: the step must be 1 to %d", part, max)
			}
		}
		if span != "*" {
			low, high, ranged := strings.Cut(span, "-")
			if from, err = parseValue(low, min, max, names); err != nil {
				return 0, err
			}
			switch {
			case ranged:
				if to, err = parseValue(high, min, max, names); err != nil {
					return 0, err
				}
			case !stepped:
				to = from
			}
			if to < from {
				return 0, fmt.Errorf("%.40q: the range ends before it begins", part)
			}
		} else if max == 7 {
			to = 6 // 7 is Sunday once more
		}
		for v := from; v <= to; v += step {
			set |= 1 << v
		}
	}
	return set, nil
}

func parseValue(text string, min, max int, names string) (int, error) {
	if len(text) == 3 && names != "" {
		if at := strings.Index(names, strings.ToLower(text)); at >= 0 && at%3 == 0 {
			return at/3 + min, nil
		}
	}
	v, err := strconv.Atoi(text)
	if err != nil || v < min || v > max || text[0] == '+' {
		return 0, fmt.Errorf("%.40q: want %d to %d", text, min, max)
	}
	return v, nil
}

func has(set uint64, v int) bool { return set&(1<<v) != 0 }

// onDay applies cron's rule: if both days are given, either will do.
func (w When) onDay(t time.Time) bool {
	day, weekday := has(w.day, t.Day()), has(w.weekday, int(t.Weekday()))
	switch {
	case !has(w.month, int(t.Month())):
		return false
	case w.anyDay || w.anyWeekday:
		return day && weekday
	}
	return day || weekday
}

func (w When) at(t time.Time) bool {
	return w.onDay(t) && has(w.hour, t.Hour()) && has(w.minute, t.Minute())
}

// farthest bounds Next: the 29th of February can be eight years away.
const farthest = 9 * 366 * 24 * time.Hour

// Next returns the first due time after t, in t's location; zero if there is none in
// nine years. An interval is counted from t.
//
// A time of day that the clock skips in spring is due when it has skipped; one that it
// shows twice in autumn is due the first time. Where every hour is meant, as in
// "*/15 * * * *", each quarter that passes is due.
func (w When) Next(t time.Time) time.Time {
	if w.every > 0 {
		return t.Add(w.every)
	}
	end := t.Add(farthest)
	for t = t.Truncate(time.Minute).Add(time.Minute); t.Before(end); {
		if !w.anyHour && w.skipped(t) {
			return t
		}
		var next time.Time
		switch {
		case !has(w.month, int(t.Month())):
			next = time.Date(t.Year(), t.Month()+1, 1, 0, 0, 0, 0, t.Location())
		case !w.onDay(t):
			next = time.Date(t.Year(), t.Month(), t.Day()+1, 0, 0, 0, 0, t.Location())
		case !has(w.hour, t.Hour()):
			next = t.Add(time.Duration(60-t.Minute()) * time.Minute)
		case w.at(t) && (w.anyHour || !again(t)):
			return t
		default:
			later := w.minute >> (t.Minute() + 1) // the minutes after this one
			step := bits.TrailingZeros64(later) + 1
			if later == 0 {
				step = 60 - t.Minute()
			}
			next = t.Add(time.Duration(step) * time.Minute)
			if next.Minute() != (t.Minute()+step)%60 { // the clock is changed meanwhile
				next = t.Add(time.Minute)
			}
		}
		if !next.After(t) { // a midnight that the clock skips
			next = t.Add(time.Hour)
		}
		t = next
	}
	return time.Time{}
}

// wall returns what a clock on the wall shows, as if in UTC.
func wall(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), 0, time.UTC)
}

// skipped reports whether the clock has just skipped a time at which it would have been due.
func (w When) skipped(t time.Time) bool {
	last := wall(t.Add(-time.Minute))
	now := wall(t)
	if now.Sub(last) <= time.Minute || now.Sub(last) > 26*time.Hour {
		return false
	}
	for m := last.Add(time.Minute); m.Before(now); m = m.Add(time.Minute) {
		if w.at(m) {
			return true
		}
	}
	return false
}

// again reports whether the clock shows this time for the second time.
func again(t time.Time) bool {
	now := wall(t)
	for _, back := range []time.Duration{30 * time.Minute, time.Hour, 2 * time.Hour} {
		if wall(t.Add(-back)).Equal(now) {
			return true
		}
	}
	return false
}
