//go:build faults

package bus

import "sync/atomic"

// fault is asked before every system call that touches the file system. Only a
// test sets it.
var fault atomic.Pointer[func(op string) error]

func step(op string) error {
	if f := fault.Load(); f != nil {
		return (*f)(op)
	}
	return nil
}
