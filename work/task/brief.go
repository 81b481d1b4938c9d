package task

import (
	"fmt"
	"strconv"
	"strings"
)

const briefed = "brief-"

// Briefs matches the ids of briefs, as SQLite's GLOB does.
const Briefs = briefed + "*-*"

// BriefID returns the id of the message that gives a task to a worker for the nth time.
func BriefID(task string, n int) string { return fmt.Sprintf("%s%s-%d", briefed, task, n) }

// OfBrief returns the task that a message gives to a worker, if it is such a message.
func OfBrief(message string) (task string, ok bool) {
	rest, ours := strings.CutPrefix(message, briefed)
	i := strings.LastIndexByte(rest, '-')
	if !ours || i < 1 {
		return "", false
	}
	n, err := strconv.ParseUint(rest[i+1:], 10, 31)
	return rest[:i], err == nil && message == BriefID(rest[:i], int(n))
}
