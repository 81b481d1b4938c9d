package plan

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
)

// ptysLeft is how many terminals can still be made; -1 if that is not known.
func ptysLeft() int {
	var most, now int
	for path, n := range map[string]*int{"/proc/sys/kernel/pty/max": &most, "/proc/sys/kernel/pty/nr": &now} {
		data, err := os.ReadFile(path)
		if err != nil {
			return -1
		}
		if _, err := fmt.Sscan(string(data), n); err != nil {
			return -1
		}
	}
	return max(most-now, 0)
}

// memoryLeft is how much memory is available, in MB; 0 if that is not known.
func memoryLeft() int {
	data, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	for in := bufio.NewScanner(bytes.NewReader(data)); in.Scan(); {
		var kb int
		if n, _ := fmt.Sscanf(in.Text(), "MemAvailable: %d kB", &kb); n == 1 {
			return kb >> 10
		}
	}
	return 0
}
