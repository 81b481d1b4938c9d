package schedule

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/robfig/cron/v3"
)

// Bounds of an interval.
const (
	MinEvery = time.Minute
	maxEvery = 366 * 24 * time.Hour
)

// A When says when a schedule is due: at the minutes of a cron expression in local time,
// or at an interval.
type When struct {
	every   time.Duration // 0: the expression counts
	cron    *cron.SpecSchedule
	anyHour bool // the hour is *, so the expression means minutes, not a time of day
}

var aliases = map[string]string{
	"@hourly": "0 * * * *", "@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@weekly": "0 0 * * 0",
	"@monthly": "0 0 1 * *", "@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *",
}

// fields are those of an expression. Weekdays are parsed as hours, since cron's own weekdays end at 6, and 7 is
// Sunday, too.
var fields = [5]struct {
	name     string
	parser   cron.Parser
	min, max int
}{
	{"minute", cron.NewParser(cron.Minute), 0, 59}, {"hour", cron.NewParser(cron.Hour), 0, 23}, {"day", cron.NewParser(cron.Dom), 1, 31},
	{"month", cron.NewParser(cron.Month), 1, 12}, {"weekday", cron.NewParser(cron.Hour), 0, 7},
}

// star is cron's bit for a field that begins with *; its parser sets it for some of them.
const star = 1 << 63

var (
	item     = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(\*|(\d+|[a-z]{3})(-(\d+|[a-z]{3}))?)(/\d+)?$`) })
	number   = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\d+`) })
	weekdays = strings.NewReplacer("sun", "0", "mon", "1", "tue", "2", "wed", "3", "thu", "4", "fri", "5", "sat", "6")
)

// Parse parses "MINUTE HOUR DAY MONTH WEEKDAY", an alias such as "@daily", or "every 30m".
func Parse(spec string) (w When, err error) {
	words := strings.Fields(spec)
	if full, ok := aliases[strings.ToLower(strings.TrimSpace(spec))]; ok {
		words = strings.Fields(full)
	}
	if len(words) == 2 && words[0] == "every" {
		return Every(words[1])
	}
	if len(words) != len(fields) {
		return w, fmt.Errorf("%.80q is no schedule: want five fields (minute hour day month weekday), @hourly, @daily, @weekly, @monthly, or \"every 30m\"", spec)
	}
	var parsed [len(fields)]*cron.SpecSchedule
	for i, word := range words {
		if parsed[i], err = parseField(i, strings.ToLower(word)); err != nil {
			return w, fmt.Errorf("%.80q: %s: %w", spec, fields[i].name, err)
		}
	}
	w.cron = &cron.SpecSchedule{Second: 1, Minute: parsed[0].Minute, Hour: parsed[1].Hour, Dom: parsed[2].Dom, Month: parsed[3].Month, Location: time.Local}
	w.cron.Dow = parsed[4].Hour&(1<<7-1) | parsed[4].Hour>>7&1
	w.anyHour = w.cron.Hour&^star == 1<<24-1
	if strings.HasPrefix(words[2], "*") {
		w.cron.Dom |= star
	}
	if strings.HasPrefix(words[4], "*") {
		w.cron.Dow |= star
		// The only dates that no year has are days that no chosen month has.
		if w.Next(time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
			return w, fmt.Errorf("%.80q: there is no such day", spec)
		}
	}
	return w, nil
}

// parseField parses one field: a list of *, a value or a range, each with a step. What cron takes beside that is
// more likely a mistake: an empty item, a sign, something behind a star, or a step above the maximum.
func parseField(i int, text string) (*cron.SpecSchedule, error) {
	f := fields[i]
	refused := fmt.Errorf("%.40q: want %d to %d, also as a list or a range, or *, each with or without a step (*/2)", text, f.min, f.max)
	for part := range strings.SplitSeq(text, ",") {
		if !item().MatchString(part) {
			return nil, refused
		}
	}
	if f.name == "weekday" {
		text = weekdays.Replace(text)
	}
	for _, n := range number().FindAllString(text, -1) {
		if v, err := strconv.Atoi(n); err != nil || v > f.max {
			return nil, refused
		}
	}
	parsed, err := f.parser.Parse(text)
	if err != nil {
		return nil, refused
	}
	return parsed.(*cron.SpecSchedule), nil
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
	// cron looks at one span between two changes of the clock at a time, as if the clock were never changed.
	end := t.AddDate(9, 0, 0) // the 29th of February can be eight years away
	for at := t.Truncate(time.Second).Add(time.Second); at.Before(end); {
		_, offset := at.Zone()
		begin, change := at.ZoneBounds()
		if _, was := begin.Add(-1).Zone(); !begin.IsZero() && !w.anyHour {
			if once := begin.Add(time.Duration(was-offset) * time.Second); at.Before(once) {
				at = once
			}
		}
		if !change.IsZero() && !change.After(at) { // Go errs on the last day of a leap year
			change = at.Add(time.Hour)
		}
		next := w.cron.Next(at.Add(-time.Second).In(time.FixedZone("", offset)))
		_, then := change.Zone()
		switch {
		case next.IsZero() || next.After(end): // cron looks at five years
			at = at.AddDate(4, 0, 0)
		case change.IsZero() || next.Before(change):
			return next.In(t.Location())
		case !w.anyHour && next.Before(change.Add(time.Duration(then-offset)*time.Second)):
			return change.In(t.Location())
		default:
			at = change
		}
	}
	return time.Time{}
}

// wall returns what a clock on the wall shows, as if in UTC.
func wall(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), 0, time.UTC)
}
