package keeper

import (
	"time"

	"golang.org/x/sys/unix"
)

// stuck is how long to wait for a terminal that accepts no output.
const stuck = time.Second

// A console prints to standard output, in order. The zero console is ready.
type console struct{ last chan struct{} }

// print writes s, and stops waiting for the terminal after a second: the write then
// continues in the background until the process ends.
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
