package check

import (
	"fmt"
	"sync"
)

// maxPart is how much of the beginning of a command's output is kept, in bytes, and how much of its
// end.
const maxPart = 1 << 20

// A log keeps the beginning and the end of what is written to it.
type log struct {
	mu   sync.Mutex // a shell's children may still write when it has ended
	head []byte
	tail []byte // up to twice maxPart; its last maxPart bytes count
	lost int64  // bytes between head and tail
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(p)
	room := min(n, maxPart-len(l.head))
	l.head, p = append(l.head, p[:room]...), p[room:]
	if over := len(p) - maxPart; over > 0 {
		l.lost, p = l.lost+int64(over), p[over:]
	}
	l.tail = append(l.tail, p...)
	if over := len(l.tail) - maxPart; over > maxPart {
		l.lost += int64(over)
		l.tail = append(l.tail[:0], l.tail[over:]...)
	}
	return n, nil
}

// bytes returns what is kept, with a line about what is not.
func (l *log) bytes() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	tail, lost := l.tail, l.lost
	if over := len(tail) - maxPart; over > 0 {
		tail, lost = tail[over:], lost+int64(over)
	}
	out := append([]byte(nil), l.head...)
	if lost > 0 {
		out = fmt.Appendf(out, "\n… %d bytes left out …\n", lost)
	}
	return append(out, tail...)
}
