package plan

import "golang.org/x/sys/unix"

// ptysLeft is how many terminals there can be; -1 if that is not known.
func ptysLeft() int {
	n, err := unix.SysctlUint32("kern.tty.ptmx_max")
	if err != nil {
		return -1
	}
	return int(n)
}

// memoryLeft is not known here: what is free says little about what can be had.
func memoryLeft() int { return 0 }
