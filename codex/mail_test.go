package codex_test

import (
	"testing"

	"netsky/bus"
	"netsky/codex"
	"netsky/home"
	"netsky/internal/testworld"
)

// The agent's own program takes its mail.
func TestOnceResident(t *testing.T) {
	t.Parallel()
	w := mustHome(t)
	r := testworld.Got(w.bus.Receive(w.ctx, "agent1", bus.ReceiveOptions{}))(t)
	defer r.Close()
	lock := testworld.Got(w.home.Lock(codex.ResidentLock("agent1")))(t)
	defer lock.Unlock()
	w.mustOnce(prompting("are you there?"))
	testworld.Contains(t, w.out.String(), "its own Codex is running and will process it; the answer goes to agent0's inbox", "stdout")
	d, err := r.Next(w.ctx)
	if err != nil || d.Envelope().Text != "are you there?" || !d.Envelope().RequiresAck {
		t.Errorf("%v, %v", d, err)
	}
	testworld.ErrorIs(t, w.once(nil), home.ErrLocked, "drain")
}
