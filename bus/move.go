package bus

import (
	"fmt"
	"time"

	"netsky/bus/disk"
	"netsky/bus/envelope"

	"golang.org/x/sys/unix"
)

// move moves a file between two directories under its own name, or under one
// with ~2, ~3, … where that is taken. It never overwrites.
func move(from int, name string, to int) (newName string, err error) {
	newName = name
	for n := int64(2); ; n++ {
		err := disk.Move(from, name, to, newName)
		if err == unix.EEXIST {
			if n > 100 { // a script drops the same name for ever
				n = time.Now().UnixNano()
			}
			newName = envelope.NextName(name, n)
			continue
		}
		if err != nil {
			return "", fmt.Errorf("move %s: %w", name, err)
		}
		return newName, nil
	}
}
