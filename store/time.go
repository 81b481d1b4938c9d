package store

import (
	"encoding/json"
	"fmt"
	"time"
)

// A Time is a moment in milliseconds since 1970 UTC, as the tables hold it.
// The zero Time means "not yet" or "unknown". In JSON it is RFC 3339 in UTC
// with milliseconds, and the zero Time is "".
type Time int64

const timeFormat = "2006-01-02T15:04:05.000Z"

// At returns the Time of t; the zero time.Time gives the zero Time.
func At(t time.Time) Time {
	if t.IsZero() {
		return 0
	}
	return Time(t.UnixMilli())
}

// Time returns t as a time.Time in UTC; zero for zero.
func (t Time) Time() time.Time {
	if t == 0 {
		return time.Time{}
	}
	return time.UnixMilli(int64(t)).UTC()
}

func (t Time) String() string {
	if t == 0 {
		return ""
	}
	return t.Time().Format(timeFormat)
}

func (t Time) MarshalJSON() ([]byte, error) { return json.Marshal(t.String()) }

func (t *Time) UnmarshalJSON(data []byte) error {
	var s string
	if err := json.Unmarshal(data, &s); err != nil {
		return fmt.Errorf("time: %w", err)
	}
	if s == "" {
		*t = 0
		return nil
	}
	at, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return fmt.Errorf("time: %w", err)
	}
	*t = At(at)
	return nil
}
