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

// A Namer makes the names of new files. The nanoseconds never go back, whatever
// the clock does, so the files of one sender stay in order.
type Namer struct {
	Now func() time.Time

	mu   sync.Mutex // guards the fields that follow
	last map[agent.ID]int64
	seq  uint64
}

// Name is the name of a new file with an envelope of that sender.
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

// IsFile reports whether a file of this name is an envelope for the readers:
// not hidden, and not what editors leave beside a file.
func IsFile(name string) bool {
	return strings.HasSuffix(name, ".json") && name[0] != '.'
}

// IsFileName is IsFile for a name that a person gives.
func IsFileName(name string) bool {
	return name != "" && len(name) <= maxName && IsFile(name) && !strings.ContainsAny(name, "/\x00")
}

// NameParts reads the time in nanoseconds and the sender out of a name that
// the bus has made.
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

// GivenName is the name that a person or another program gave an envelope's file,
// also where it was taken and the file got another; "" if the bus has made it.
func GivenName(file string) string {
	if _, _, ok := NameParts(file); ok {
		return ""
	}
	return firstName(file)
}

// firstName takes the ~2 away that a file got where its name was taken.
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

// NextName is the name for the n-th file of the same name, n from 2. It stays
// short enough for a .why beside it.
func NextName(name string, n int64) string {
	stem := strings.TrimSuffix(firstName(name), ".json")
	tail := "~" + strconv.FormatInt(n, 10) + ".json"
	return stem[:min(len(stem), maxName-len(tail)-len(WhySuffix))] + tail
}

// FileID is the ID of an envelope that has none: the same for as long as the
// file is not written to, wherever it is moved, and another for every file.
func FileID(name string, mtime int64, inode uint64) string {
	return "f-" + Digest(firstName(name), strconv.FormatInt(mtime, 10), strconv.FormatUint(inode, 10))
}

// WhySuffix ends the name of a file that says why another lies where it lies.
const WhySuffix = ".why"

// WhyName is the name of the .why beside a file.
func WhyName(name string) string {
	return name[:min(len(name), maxName-len(WhySuffix))] + WhySuffix
}
