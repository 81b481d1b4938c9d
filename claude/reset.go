package claude

import (
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Claude Code gives the end of a limit as "3pm", "5:16pm (Europe/Berlin)", "Nov 23 at 3pm"
// or "Aug 8", after "resets" or in brackets.
var resetWords = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)\bresets?(?: at| on)? (?:([A-Z][a-z]{2}) (\d{1,2})(?:,? (?:at )?)?)?(?:(\d{1,2})(?::(\d\d))? ?([ap]m))?(?: ?\(([A-Za-z0-9_+/-]{1,40})\))?`)
})

// resetTime finds in a text when a limit ends. A time of day is the end of that minute, as
// Claude Code leaves out the seconds: the next one after now, in this machine's zone
// unless the text has one.
func resetTime(text string, now time.Time) (time.Time, bool) {
	m := resetWords().FindStringSubmatch(text[:min(len(text), maxFaultText)])
	if m == nil || m[1] == "" && m[5] == "" {
		return time.Time{}, false
	}
	zone := time.Local
	if m[6] != "" {
		if z, err := time.LoadLocation(m[6]); err == nil {
			zone = z
		}
	}
	now = now.In(zone)
	year, month, day := now.Date()
	if m[1] != "" {
		t, err := time.Parse("Jan", m[1])
		if err != nil {
			return time.Time{}, false
		}
		month = t.Month()
		day, _ = strconv.Atoi(m[2])
	}
	hour, minute := clock(m[3], m[4], m[5])
	if m[5] != "" {
		minute++
	}
	at := time.Date(year, month, day, hour, minute, 0, 0, zone)
	switch {
	case m[1] == "" && !at.After(now):
		at = at.AddDate(0, 0, 1)
	case m[1] != "" && at.Before(now.AddDate(0, -6, 0)):
		at = at.AddDate(1, 0, 0)
	}
	return at, true
}

// clock converts a time of day from 12 to 24 hours.
func clock(hour, minute, half string) (int, int) {
	h, _ := strconv.Atoi(hour)
	m, _ := strconv.Atoi(minute)
	if half == "" {
		return 0, 0
	}
	h %= 12
	if strings.EqualFold(half, "pm") {
		h += 12
	}
	return h, m
}
