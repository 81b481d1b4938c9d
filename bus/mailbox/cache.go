package mailbox

import (
	"os"
	"sync"
	"time"
)

// maxCached is the most descriptors that a cache keeps open.
const maxCached = 64

// A Cache keeps files and directories open. One that has been moved or replaced is
// opened again. The garbage collector closes unused ones with the cache.
type Cache struct {
	mu   sync.Mutex // guards the map and the counts of users
	open map[string]*Handle
}

// A Handle is one of them. Its mutex is for users that need it exclusively.
type Handle struct {
	sync.Mutex
	Kept
	f       *os.File // the garbage collector closes it
	asked   time.Time
	users   int
	dropped bool
}

// Get returns the descriptor for a path below the home; make opens it if it is not
// cached. That the path still leads to it is checked again after trust. The caller must
// give it back with Put.
func (c *Cache) Get(rel string, trust time.Duration, make func() (int, error)) (*Handle, error) {
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
		if k.Here() {
			c.mu.Lock()
			k.asked = now
			c.mu.Unlock()
			return k, nil
		}
		c.drop(rel, k)
		c.Put(k)
	}
	fd, err := make()
	if err != nil {
		return nil, err
	}
	k = &Handle{Kept: Keep(fd), f: os.NewFile(uintptr(fd), rel), asked: now, users: 1}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open == nil {
		c.open = map[string]*Handle{}
	}
	for name, old := range c.open { // any one of them makes room; all are equally cheap
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

func (c *Cache) drop(rel string, k *Handle) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open[rel] == k {
		c.dropLocked(rel, k)
	}
}

func (c *Cache) dropLocked(rel string, k *Handle) {
	delete(c.open, rel)
	k.dropped = true
	if k.users == 0 {
		k.f.Close()
	}
}

// Put gives a descriptor back.
func (c *Cache) Put(k *Handle) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if k.users--; k.users == 0 && k.dropped {
		k.f.Close()
	}
}
