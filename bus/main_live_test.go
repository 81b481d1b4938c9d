//go:build live

package bus_test

import (
	"bufio"
	"bytes"
)

func lines(data []byte) (list []string) {
	for s := bufio.NewScanner(bytes.NewReader(data)); s.Scan(); {
		list = append(list, s.Text())
	}
	return list
}
