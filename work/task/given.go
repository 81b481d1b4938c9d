package task

import (
	"context"
	"errors"

	"netsky/agent"
	"netsky/store"
)

// A Start is one time that a task was given to a worker.
type Start struct {
	Worker agent.ID            `json:"worker"`
	Brief  string              `json:"brief"` // the id of the message
	Sent   store.Time          `json:"sent"`
	State  store.DeliveryState `json:"state,omitempty"`  // what became of it
	Answer string              `json:"answer,omitempty"` // the id of what answered it
}

// Mail reads messages from the records.
type Mail interface {
	Message(ctx context.Context, id string) (store.Message, error)
	Deliveries(context.Context, store.DeliveryFilter) (store.List[store.Delivery], error)
}

// mostStarts is how many times, the last ones, Given finds.
const mostStarts = 50

// Given finds to whom the task was given, and what each answered, the first time first.
func Given(ctx context.Context, mail Mail, k store.Task) ([]Start, error) {
	list := []Start{}
	for n := max(1, k.Starts-mostStarts+1); n <= k.Starts; n++ {
		id := BriefID(k.ID, n)
		m, err := mail.Message(ctx, id)
		if errors.Is(err, store.ErrNotFound) {
			continue // not mirrored yet, or removed
		}
		if err != nil {
			return list, err
		}
		one := Start{Worker: m.To, Brief: id, Sent: m.Time}
		d, err := mail.Deliveries(ctx, store.DeliveryFilter{Message: id, Target: m.To})
		if err != nil {
			return list, err
		}
		if len(d.Items) > 0 {
			one.State, one.Answer = d.Items[0].State, d.Items[0].Answer
		}
		list = append(list, one)
	}
	return list, nil
}
