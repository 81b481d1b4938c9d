package appserver

import (
	"context"
	"slices"
)

// A pastTurn is a turn in the thread's history.
type pastTurn struct {
	ID     string     `json:"id"`
	Status string     `json:"status"`
	Items  []item     `json:"items"`
	Error  *wireError `json:"error"`
	// Completed is when it ended, in seconds since 1970.
	Completed int64 `json:"completedAt"`
}

// history returns turns of the thread, the newest first: the last ones, or those that next
// of an earlier call stands for.
func (t *Thread) history(ctx context.Context, most int, view, from string) (turns []pastTurn, next string, err error) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	var got struct {
		Data []pastTurn `json:"data"`
		Next string     `json:"nextCursor"`
	}
	params := map[string]any{"threadId": t.id, "limit": most, "sortDirection": "desc", "itemsView": view}
	if from != "" {
		params["cursor"] = from
	}
	err = t.s.peer.call(ctx, "thread/turns/list", params, &got)
	return got.Data, got.Next, err
}

// A Past is a turn of the thread's history that took an input.
type Past struct {
	// Running is set if the turn has not ended; then there is no Result.
	Running *Turn
	Result  Result
	Err     error // why it did not complete
}

// mostPages limits how far back Find looks, in pages of 10 turns.
const mostPages = 50

// Find finds a turn by its ID, or without one the last that took the input. It returns
// nil if there is none among the last 500.
func (t *Thread) Find(ctx context.Context, input, id string) (*Past, error) {
	next := ""
	for range mostPages {
		var turns []pastTurn
		var err error
		if turns, next, err = t.history(ctx, 10, "full", next); err != nil {
			return nil, err
		}
		for _, turn := range turns {
			took := func(i item) bool { return i.ClientID != nil && *i.ClientID == input }
			switch {
			case turn.ID != id && (id != "" || !slices.ContainsFunc(turn.Items, took)):
			case turn.Status == "inProgress":
				return &Past{Running: t.turn(turn.ID)}, nil
			default:
				res, err := turn.result(t.id, quota{})
				return &Past{Result: res, Err: err}, nil
			}
		}
		if next == "" {
			break
		}
	}
	return nil, nil
}
