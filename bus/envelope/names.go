package envelope

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"netsky/agent"
)

// A Namer names new files. The nanoseconds never go back, whatever the clock does, so the
// files of one sender stay in order.
type Namer struct {
	Now func() time.Time

	mu   sync.Mutex // guards the fields that follow
	last map[agent.ID]int64
	seq  uint64
}

// Name returns the name of a new file with an envelope from that sender.
func (n *Namer) Name(from agent.ID) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.last == nil {
		n.last = make(map[agent.ID]int64)
	}
	ns := max(n.Now().UnixNano(), n.last[from]+1, 0)
	n.last[from] = ns
	n.seq++
	return fmt.Sprintf("%020d-%010d-%08x-%010d-from-%s.json", ns, os.Getpid(), rand.Uint32(), n.seq%10_000_000_000, from)
}

// IsFile reports whether a file of this name is read as an envelope: not hidden, and not a
// file that editors leave behind.
func IsFile(name string) bool {
	return strings.HasSuffix(name, ".json") && name[0] != '.'
}

// IsFileName is IsFile for a name given by a person.
func IsFileName(name string) bool {
	return name != "" && len(name) <= maxName && IsFile(name) && !strings.ContainsAny(name, "/\x00")
}

// NameParts parses the time in nanoseconds and the sender from a name that the bus made.
func NameParts(name string) (ns int64, from string, ok bool) {
	const fixed = 20 + 1 + 10 + 1 + 8 + 1 + 10
	if len(name) < fixed+len("-from-") || name[20] != '-' || name[31] != '-' || name[40] != '-' {
		return 0, "", false
	}
	rest, ok := strings.CutPrefix(name[fixed:], "-from-")
	if !ok {
		return 0, "", false
	}
	for _, c := range []byte(name[:20] + name[21:31] + name[41:fixed]) {
		if c < '0' || c > '9' {
			return 0, "", false
		}
	}
	ns, err := strconv.ParseInt(name[:20], 10, 64)
	if err != nil {
		return 0, "", false
	}
	return ns, strings.TrimSuffix(firstName(rest), ".json"), true
}

// GivenName returns the name that a person or another program gave an envelope's file,
// even if it was renamed because the name was taken; "" if the bus made it.
func GivenName(file string) string {
	if _, _, ok := NameParts(file); ok {
		return ""
	}
	return firstName(file)
}

// firstName removes the ~2 that a file got because its name was taken.
func firstName(name string) string {
	stem, ok := strings.CutSuffix(name, ".json")
	if !ok {
		return name
	}
	i := strings.LastIndexByte(stem, '~')
	if i < 1 || i == len(stem)-1 {
		return name
	}
	for _, c := range []byte(stem[i+1:]) {
		if c < '0' || c > '9' {
			return name
		}
	}
	return stem[:i] + ".json"
}

const maxName = 255 // bytes in a file name, on every system we run on

// NextName returns the name for the n-th file of the same name, n from 2. It leaves room
// for a .why beside it.
func NextName(name string, n int64) string {
	stem := strings.TrimSuffix(firstName(name), ".json")
	tail := "~" + strconv.FormatInt(n, 10) + ".json"
	return stem[:min(len(stem), maxName-len(tail)-len(WhySuffix))] + tail
}

// FileID returns the ID of an envelope without one: the same until the file is written to,
// wherever it is moved, and different for every file.
func FileID(name string, mtime int64, inode uint64) string {
	return "f-" + Digest(firstName(name), strconv.FormatInt(mtime, 10), strconv.FormatUint(inode, 10))
}

// WhySuffix ends the name of a file that says why another is where it is.
const WhySuffix = ".why"

// WhyName returns the name of the .why beside a file.
func WhyName(name string) string {
	return name[:min(len(name), maxName-len(WhySuffix))] + WhySuffix
}
