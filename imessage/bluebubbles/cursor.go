package bluebubbles

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"
	"time"
)

// maxSeen is how many rows a cursor names: fewer than a page has, so that looking at them again
// takes one query. Of more than that, the oldest are not looked at again.
const maxSeen = 150

// A cursor says what was returned: every row up to Row, and those of Seen.
type cursor struct {
	Version int    `json:"v"`
	Row     int64  `json:"row"`
	Seen    []seen `json:"seen,omitempty"` // by number

	// Whose rows these are: a message with its number. What the server calls its computer's id
	// is a name, which changes with the network that the Mac is in.
	Anchor int64  `json:"anchor,omitempty"`
	GUID   string `json:"guid,omitempty"`
	Name   string `json:"name,omitempty"`
}

// A seen row: its number, and when it was returned, in Unix seconds.
type seen [2]int64

const cursorVersion = 1

// brief returns what stands for a name in a cursor: the name itself, or a digest of one that
// somebody made long.
func brief(name string) string {
	if len(name) <= 200 {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return "sha256:" + hex.EncodeToString(sum[:])
}

var errCursor = errors.New("not a cursor of this transport")

func parseCursor(s string) (cursor, error) {
	var c cursor
	if err := json.Unmarshal([]byte(s), &c); err != nil || c.Version != cursorVersion || c.Row < 0 {
		return cursor{}, errCursor
	}
	return c, nil
}

func (c *cursor) String() string {
	c.Version = cursorVersion
	data, err := json.Marshal(c)
	if err != nil {
		panic(err)
	}
	return string(data)
}

func (c *cursor) has(id int64) bool {
	_, found := slices.BinarySearchFunc(c.Seen, id, func(s seen, id int64) int { return int(min(max(s[0]-id, -1), 1)) })
	return id <= c.Row || found
}

// add records a row that is returned now.
func (c *cursor) add(id int64, now time.Time) {
	i, found := slices.BinarySearchFunc(c.Seen, id, func(s seen, id int64) int { return int(min(max(s[0]-id, -1), 1)) })
	if !found {
		c.Seen = slices.Insert(c.Seen, i, seen{id, now.Unix()})
	}
}

// settle forgets the rows that are old enough, but none behind a row that is held back. What is
// below them and has not come by now does not count any more.
func (c *cursor) settle(old time.Time, held map[int64]time.Time) {
	first := int64(0)
	for id := range held {
		if first == 0 || id < first {
			first = id
		}
	}
	n := 0
	for n < len(c.Seen) && (c.Seen[n][1] <= old.Unix() || len(c.Seen)-n > maxSeen) && (first == 0 || c.Seen[n][0] < first) {
		n++
	}
	if n > 0 {
		c.Row = c.Seen[n-1][0]
		c.Seen = slices.Clone(c.Seen[n:])
	}
}
