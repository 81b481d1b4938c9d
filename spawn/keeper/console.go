package keeper

import (
	"time"

	"golang.org/x/sys/unix"
)

// stuck is how long a terminal that takes no output is waited for.
const stuck = time.Second

// A console prints to standard output, in order. The zero console is ready.
type console struct{ last chan struct{} }

// print writes s, and gives up waiting for the terminal to take it after a
// second: the write then goes on by itself until the process ends.
func (c *console) print(s string) {
	before, done := c.last, make(chan struct{})
	c.last = done
	go func() {
		defer close(done)
		if before != nil {
			<-before
		}
		write(1, s)
	}()
	select {
	case <-done:
	case <-time.After(stuck):
	}
}

func write(fd int, s string) {
	for len(s) > 0 {
		n, err := unix.Write(fd, []byte(s))
		if err != nil && err != unix.EINTR {
			return // hung up: nobody to tell
		}
		s = s[max(n, 0):]
	}
}
