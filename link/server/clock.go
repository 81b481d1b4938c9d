package server

import (
	"sync"
	"sync/atomic"
	"time"
	_ "unsafe" // for go:linkname

	"github.com/nats-io/nats-server/v2/server/ats"

	"netsky/internal/proc"
)

// NATS has a clock by which its caches age and old messages are removed. It ticks ten times a second as
// long as there is a store, which was most of what an idle server cost; a second is as good.
//
//go:linkname storeTime github.com/nats-io/nats-server/v2/server/ats.utime
var storeTime atomic.Int64

//go:linkname endClock github.com/nats-io/nats-server/v2/server/ats.done
var endClock chan struct{}

// slowClock has that clock tick once a second, in this process, from now on.
var slowClock = sync.OnceFunc(func() {
	ats.Register() // for good, so that no store is the first, which starts the clock, or the last, which ends it
	endClock <- struct{}{}
	go func() {
		for {
			time.Sleep(proc.Tick(time.Second))
			storeTime.Store(time.Now().UnixNano())
		}
	}()
})
