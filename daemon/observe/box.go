package observe

import (
	"context"
	"hash/maphash"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/home"
	"netsky/store"
)

// A box is what the observer remembers of one mailbox.
type box struct {
	id     agent.ID
	places map[bus.Place]*place

	gone    map[uint64]bool // messages that left inbox/ or claimed/ in this pass
	arrived map[uint64]bool // messages that arrived in any place in this pass
	missing map[uint64]bool // deliveries without a file in the last pass
	held    bool            // files in it are not read yet, as their host was told something a moment ago
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

// remember takes the delivered files that an earlier observer has recorded for known: those
// whose sender, and times of sending and of arrival, are those of a delivery on record. It
// looks at each file and opens none. What others named, have touched since or brought from
// elsewhere is left to be read, and so are files that it can't tell apart if one of them is
// not on record.
func (o *Observer) remember(ctx context.Context, id agent.ID, p *place, names []string) error {
	key := func(from string, sent, arrived store.Time) uint64 {
		if id.Host() != "" {
			arrived = 0 // by another host's clock, if at all
		}
		return o.hash(from, strconv.FormatInt(int64(sent), 10), strconv.FormatInt(int64(arrived), 10))
	}
	keys := make([]uint64, len(names))
	unknown := make(map[uint64]int, len(names)) // files without a record, by key
	for i, name := range names {
		ns, from, ok := envelope.NameParts(name)
		m := o.statFile(id, bus.Delivered, name)
		if ok && m != (mark{}) {
			keys[i] = key(from, store.At(time.Unix(0, ns)), store.At(time.Unix(0, m.ctime)))
			unknown[keys[i]]++
		}
	}
	err := o.DB.Arrivals(ctx, id, func(a store.Arrival) {
		k := key(string(a.From), a.Queued, a.Filed)
		if _, ok := unknown[k]; ok {
			unknown[k]--
		}
	})
	if err != nil {
		return err
	}
	p.known = make(map[uint64]uint64, len(names))
	for i, name := range names {
		if n, ok := unknown[keys[i]]; ok && n == 0 {
			p.known[o.hash(name)] = 0 // whose it is matters only where mail waits
		}
	}
	return ctx.Err()
}
