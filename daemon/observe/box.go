package observe

import (
	"hash/maphash"
	"time"

	"golang.org/x/sys/unix"

	"netsky/agent"
	"netsky/agent/home"
	"netsky/bus"
)

// A box is what the observer remembers of one mailbox.
type box struct {
	id     agent.ID
	places map[bus.Place]*place

	gone    map[uint64]bool // messages that left inbox/ or claimed/ in this pass
	arrived map[uint64]bool // messages that arrived in any place in this pass
	missing map[uint64]bool // deliveries without a file in the last pass
	checked time.Time       // when the records were last asked what waits
}

// A place is what the observer remembers of one directory: hashes of the recorded names,
// with hashes of whose message each is. At sixteen bytes a file, a hundred thousand stay
// small.
type place struct {
	known   map[uint64]uint64
	waiting map[uint64]mark // names that are not settled, as the files were then
	seen    home.Mark
}

// A mark shows whether a file has changed since it was read.
type mark struct {
	ino         uint64
	size, mtime int64
	ctime       int64 // when it arrived here: a rename sets it
}

func newBox(id agent.ID) *box {
	b := &box{id: id, places: make(map[bus.Place]*place), missing: make(map[uint64]bool)}
	for _, p := range bus.Places() {
		b.places[p] = &place{known: make(map[uint64]uint64), waiting: make(map[uint64]mark)}
	}
	return b
}

func (o *Observer) hash(parts ...string) uint64 {
	var h maphash.Hash
	h.SetSeed(o.seed)
	for _, p := range parts {
		h.WriteString(p)
		h.WriteByte(0)
	}
	return h.Sum64()
}

// statFile returns the mark of a file; that of a missing one is zero.
func (o *Observer) statFile(id agent.ID, at bus.Place, name string) mark {
	var st unix.Stat_t
	if unix.Lstat(o.DB.Home().Path(home.Mailbox(id), string(at), name), &st) != nil {
		return mark{}
	}
	return mark{st.Ino, st.Size, st.Mtim.Nano(), st.Ctim.Nano()}
}
