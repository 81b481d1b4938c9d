package plan

import "golang.org/x/sys/unix"

// ptysLeft returns how many terminals there can be, -1 if unknown.
func ptysLeft() int {
	n, err := unix.SysctlUint32("kern.tty.ptmx_max")
	if err != nil {
		return -1
	}
	return int(n)
}

// memoryLeft returns 0 for unknown: on macOS free memory says little about what is available.
func memoryLeft() int { return 0 }
