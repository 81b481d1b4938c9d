package appserver

import (
	"context"
	"errors"

	"netsky/internal/advice"
)

// ErrLogin is returned if Codex has no account to work with.
var ErrLogin = advice.With(errors.New("codex is not logged in; run `codex login` (`codex login --with-api-key` reads a key from stdin)"),
	"or `netsky up --type demo` starts agents without a model")

// Account checks that a model can be used: the error matches ErrLogin if Codex needs an
// account for its configured provider and has none. If Codex has one that it can't look up
// now, the next turn shows whether it is accepted.
func (s *Server) Account(ctx context.Context) error {
	var got struct {
		Account *struct {
			Type string `json:"type"`
		} `json:"account"`
		Needed bool `json:"requiresOpenaiAuth"`
	}
	if err := s.peer.call(ctx, "account/read", map[string]any{}, &got); err != nil && !Refused(err) {
		return s.ended(err)
	}
	if got.Needed && got.Account == nil {
		return ErrLogin
	}
	return nil
}
