package appserver

import "context"

// Announced returns overrides of Codex's configuration which say, for every model that
// has a successor, that the person has seen the announcement. Without them Codex's
// screen starts with a dialog in which one Enter changes the model. If the models can't
// be listed it returns none: the dialog, if it appears, is a state of the agent.
func (s *Server) Announced(ctx context.Context) []string {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	told := make(map[string]string)
	cursor := any(nil)
	for range 10 { // pages
		var got struct {
			Data []struct {
				Model   string `json:"model"`
				Upgrade string `json:"upgrade"`
			} `json:"data"`
			Next string `json:"nextCursor"`
		}
		if err := s.peer.call(ctx, "model/list", map[string]any{"cursor": cursor, "limit": 100, "includeHidden": true}, &got); err != nil {
			return nil
		}
		for _, m := range got.Data {
			if m.Model != "" && m.Upgrade != "" {
				told[m.Model] = m.Upgrade
			}
		}
		if got.Next == "" {
			break
		}
		cursor = got.Next
	}
	if len(told) == 0 {
		return nil
	}
	return Overrides(map[string]any{"notice.model_migrations": told})
}
