package bluebubbles

import (
	"fmt"
	"sync"
	"time"

	"netsky/phone/chat"
)

// A secret is the server's password: what its file has now, and whether the server refused that.
type secret struct {
	file string
	rest time.Duration // until a refused password is tried again
	now  func() time.Time

	mu sync.Mutex // guards the fields below
	// used are the last two that were sent: an answer to the one before may still come.
	used      [2]string
	refusedAt time.Time // when used[0] was refused; zero if it was not
}

// take returns the password to send. There is an error for a while after the server has refused
// it; another one in the file counts at once.
func (s *secret) take() (string, error) {
	password, err := readPassword(s.file)
	if err != nil {
		return "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if password != s.used[0] {
		s.used, s.refusedAt = [2]string{password, s.used[0]}, time.Time{}
	}
	if !s.refusedAt.IsZero() && s.now().Sub(s.refusedAt) < s.rest {
		return "", fmt.Errorf("%w; it is tried again every %s", errRefused, s.rest)
	}
	return password, nil
}

// answered records whether the server took the password.
func (s *secret) answered(password string, refused bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case password != s.used[0]:
	case refused:
		s.refusedAt = s.now()
	default:
		s.refusedAt = time.Time{}
	}
}

// redact removes the password from a text.
func (s *secret) redact(text string) string {
	s.mu.Lock()
	used := s.used
	s.mu.Unlock()
	for _, password := range used {
		text = chat.Redact(text, password, "(password)")
	}
	return text
}
