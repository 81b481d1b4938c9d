package bus

import (
	"os"
	"sync"
	"time"
)

// maxCached bounds the descriptors that a bus keeps open for its next sends.
const maxCached = 64

// A cache keeps files and directories open between sends. Whenever one is asked
// for, the system is asked where it lies now: one that was removed, moved or
// replaced, by a link too and at any place of its path, is opened anew. What
// nobody uses is closed with the bus, by the garbage collector.
type cache struct {
	mu   sync.Mutex // guards the map and the counts of users
	open map[string]*cached
}

// A cached is one of them. Its mutex is for those who need it alone.
type cached struct {
	sync.Mutex
	f       *os.File // the garbage collector closes it
	fd      int
	path    string // where it lay when it was opened
	asked   time.Time
	users   int
	dropped bool
}

// get returns the descriptor for a path below the home; make opens it if it is
// not at hand. The answer to where it lies is good for as long as trust says.
// The caller gives it back.
func (c *cache) get(rel string, trust time.Duration, make func() (int, error)) (*cached, error) {
	c.mu.Lock()
	now := time.Now()
	k, fresh := c.open[rel], false
	if k != nil {
		k.users++
		fresh = now.Sub(k.asked) < trust
	}
	c.mu.Unlock()
	if fresh {
		return k, nil
	}
	if k != nil {
		if path, ok := pathOf(k.fd); ok && path == k.path {
			c.mu.Lock()
			k.asked = now
			c.mu.Unlock()
			return k, nil
		}
		c.drop(rel, k)
		c.put(k)
	}
	fd, err := make()
	if err != nil {
		return nil, err
	}
	path, _ := pathOf(fd)
	k = &cached{f: os.NewFile(uintptr(fd), rel), fd: fd, path: path, asked: now, users: 1}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open == nil {
		c.open = map[string]*cached{}
	}
	for name, old := range c.open { // any other makes room; all are equally cheap
		if len(c.open) < maxCached {
			break
		}
		c.dropLocked(name, old)
	}
	if other := c.open[rel]; other != nil {
		c.dropLocked(rel, other)
	}
	c.open[rel] = k
	return k, nil
}

func (c *cache) drop(rel string, k *cached) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open[rel] == k {
		c.dropLocked(rel, k)
	}
}

func (c *cache) dropLocked(rel string, k *cached) {
	delete(c.open, rel)
	k.dropped = true
	if k.users == 0 {
		k.f.Close()
	}
}

// put gives a descriptor back.
func (c *cache) put(k *cached) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if k.users--; k.users == 0 && k.dropped {
		k.f.Close()
	}
}
