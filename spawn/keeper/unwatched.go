package keeper

import (
	"math/rand/v2"
	"time"

	"netsky/agent"
	"netsky/home"
)

const (
	// lookFirst is when a keeper looks for the first time whether the agents are watched.
	lookFirst = 5 * time.Second
	// lookEvery is how often it looks later, if no ticker has recorded how often it ticks.
	lookEvery = time.Minute
)

// look calls unwatched if both the daemon, though it is wanted, and the ticker are gone:
// each starts the other again, but none of them both.
func (k *keeper) look() {
	t, err := k.home.LoadTicker()
	every := lookEvery
	if err == nil && t.EveryMS > 0 {
		every = time.Duration(t.EveryMS) * time.Millisecond
	}
	k.again.Reset(every + rand.N(every/4)) // not all keepers at once
	if d, err := home.Desired(k.home).Load(agent.DaemonName); err != nil || !d.Up || t.Alive() {
		return
	}
	if _, held := k.home.LockHolder(home.DaemonLock); !held {
		k.unwatched()
	}
}
