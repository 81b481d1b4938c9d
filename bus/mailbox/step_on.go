//go:build faults

package mailbox

import "sync/atomic"

// fault is called before every system call that touches the file system.
var fault atomic.Pointer[func(op string) error]

// SetFault has f called before every system call that touches the file system; nil
// removes it.
func SetFault(f func(op string) error) {
	if f == nil {
		fault.Store(nil)
		return
	}
	fault.Store(&f)
}

// Step returns the error with which a system call is to fail.
func Step(op string) error {
	if f := fault.Load(); f != nil {
		return (*f)(op)
	}
	return nil
}
