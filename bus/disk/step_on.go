//go:build faults

package disk

import "sync/atomic"

// fault is asked before every system call that touches the file system.
var fault atomic.Pointer[func(op string) error]

// SetFault puts f before every system call that touches the file system; nil
// takes it away.
func SetFault(f func(op string) error) {
	if f == nil {
		fault.Store(nil)
		return
	}
	fault.Store(&f)
}

// Step asks before a system call whether it is to fail.
func Step(op string) error {
	if f := fault.Load(); f != nil {
		return (*f)(op)
	}
	return nil
}
