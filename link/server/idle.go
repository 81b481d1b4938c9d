package server

import (
	"sync"
	"sync/atomic"
	"time"
	_ "unsafe" // for go:linkname

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats-server/v2/server/ats"

	"netsky/internal/proc"
)

// NATS has a clock by which its caches age and old messages are removed. It ticks ten times a second as
// long as there is a store, which was most of what an idle server cost; every ten seconds is as good.
//
//go:linkname storeTime github.com/nats-io/nats-server/v2/server/ats.utime
var storeTime atomic.Int64

//go:linkname endClock github.com/nats-io/nats-server/v2/server/ats.done
var endClock chan struct{}

// clockStep is how far apart the ticks are. 10.1 s after a store was used, it looks whether it has been left
// alone for more than 10.1 s by this clock; if not, it looks again after what is missing from 10 s. With the
// clock just below that, it would look again and again until the next tick. As one step is more than 10.1 s,
// the first look is enough, or the second.
const clockStep = 10200 * time.Millisecond

// slowClock has that clock tick at whole steps only, in this process, from now on.
var slowClock = sync.OnceFunc(func() {
	ats.Register() // for good, so that no store is the first, which starts the clock, or the last, which ends it
	endClock <- struct{}{}
	go func() {
		for {
			time.Sleep(proc.Tick(clockStep))
			storeTime.Store(time.Now().Truncate(clockStep).UnixNano())
		}
	}()
})

// NATS forgets every second which warnings it need not repeat, which wakes an idle server too.
//
//go:linkname forgetWarnings github.com/nats-io/nats-server/v2/server.(*Server).changeRateLimitLogInterval
func forgetWarnings(s *server.Server, every time.Duration)
