package plan

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
)

// ptysLeft returns how many more terminals can be opened, -1 if unknown.
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

// memoryLeft returns the available memory in MB, 0 if unknown.
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
