package codex

import (
	"time"

	"netsky/bus/courier"
)

// StartResident is Resident under the name that the tests use; StartResidentWithin is it
// for a Codex that has so long to open the thread.
var StartResident, StartResidentWithin = Resident, residentWithin

// WaitOut ends the time in which a full context keeps mail waiting.
func WaitOut(program courier.Runtime) {
	r := program.(*resident)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.full = time.Now()
}
