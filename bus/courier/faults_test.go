//go:build faults

package courier_test

import (
	"errors"
	"testing"

	"netsky/bus/courier"
	"netsky/bus/mailbox"
)

// TestFaultTakeOver: a process that takes over what an earlier version left, and changes it, is
// cut off at each of its steps. Nothing that was owed is lost, and nothing comes twice.
func TestFaultTakeOver(t *testing.T) {
	const earlier = `{"owed":[{"id":"a","from":"owner","wants":true},{"id":"b","from":"owner","held":{"fault":{"reason":"usage_limit"},"waits":true}}],"recorded_ms":5}`
	defer mailbox.SetFault(nil)
	defer courier.SetStep(func(string) {})
	for k := 1; ; k++ {
		p := mustPost(t)
		if err := p.home.WriteFile("state/owed/agent1.json", []byte(earlier), false); err != nil {
			t.Fatal(err)
		}
		n := 0
		cut := errors.New("cut off")
		next := func(string) error {
			if n++; n >= k { // not one call more
				return cut
			}
			return nil
		}
		mailbox.SetFault(next)
		courier.SetStep(func(name string) {
			if next(name) != nil {
				panic(cut)
			}
		})
		var err error
		func() {
			defer func() {
				if r := recover(); r != nil {
					err = cut
				}
			}()
			err = courier.Forget(p.home, me, "a")
		}()
		mailbox.SetFault(nil)
		if owed := p.owed(); owed != "a b" && owed != "b" {
			t.Fatalf("cut off at step %d: owed: %s", k, owed)
		}
		courier.SetStep(func(string) {})
		if err := courier.Forget(p.home, me, "a"); err != nil {
			t.Fatal(err)
		}
		b, _ := courier.ReadLedger(p.home, me).Find("b")
		if p.owed() != "b" || b.State != courier.StateHeld || p.home.Mark("state/owed/agent1.json").Exists() && err == nil {
			t.Fatalf("cut off at step %d: owed: %s, b is %s", k, p.owed(), b.State)
		}
		if err == nil {
			t.Logf("%d steps", n)
			if n < 10 {
				t.Error("the steps are not where they should be")
			}
			return
		}
	}
}
