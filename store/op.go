package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"netsky/agent"
)

// An Op is one thing that happened: a plain value that can be written as JSON. The types
// that are ops say so.
type Op interface {
	name() string        // in JSON and in errors
	stamped(now Time) Op // itself, with missing time and key filled in
	apply(t *tx) error   // inside a transaction
}

// errOp reports an op that is invalid and will never be recorded, however often it is
// tried.
var errOp = errors.New("invalid record")

func stampAll(ops []Op, now time.Time) []Op {
	out := make([]Op, len(ops))
	for i, op := range ops {
		out[i] = op.stamped(At(now))
	}
	return out
}

func stamp(t *Time, now Time) {
	if *t == 0 {
		*t = now
	}
}

func stampKey(key *string) {
	if *key == "" {
		*key = agent.NewStart()
	}
}

// written is an op as stored in the spool.
type written struct {
	Op   string          `json:"op"`
	Args json.RawMessage `json:"args"`
}

func encodeOps(ops []Op) ([]byte, error) {
	list := make([]written, len(ops))
	for i, op := range ops {
		args, err := json.Marshal(op)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", op.name(), err)
		}
		list[i] = written{op.name(), args}
	}
	return json.Marshal(list)
}

func decodeOps(data []byte) ([]Op, error) {
	var list []written
	if err := json.Unmarshal(data, &list); err != nil {
		return nil, fmt.Errorf("%w: %w", errOp, err)
	}
	ops := make([]Op, len(list))
	for i, w := range list {
		op, err := decodeOp(w)
		if err != nil {
			return nil, fmt.Errorf("%w: %s: %w", errOp, w.Op, err)
		}
		ops[i] = op
	}
	return ops, nil
}

func decodeOp(w written) (Op, error) {
	switch w.Op {
	case UpsertActor{}.name():
		return decode[UpsertActor](w.Args)
	case StartSession{}.name():
		return decode[StartSession](w.Args)
	case SessionState{}.name():
		return decode[SessionState](w.Args)
	case EndSession{}.name():
		return decode[EndSession](w.Args)
	case UpsertMessage{}.name():
		return decode[UpsertMessage](w.Args)
	case UpsertDelivery{}.name():
		return decode[UpsertDelivery](w.Args)
	case UpsertInput{}.name():
		return decode[UpsertInput](w.Args)
	case UpsertTask{}.name():
		return decode[UpsertTask](w.Args)
	case AddDependency{}.name():
		return decode[AddDependency](w.Args)
	case AddNote{}.name():
		return decode[AddNote](w.Args)
	case AddLog{}.name():
		return decode[AddLog](w.Args)
	case CountLog{}.name():
		return decode[CountLog](w.Args)
	case SetSetting{}.name():
		return decode[SetSetting](w.Args)
	case AddSchedule{}.name():
		return decode[AddSchedule](w.Args)
	case EndSchedule{}.name():
		return decode[EndSchedule](w.Args)
	case RunSchedule{}.name():
		return decode[RunSchedule](w.Args)
	case UpsertUpdate{}.name():
		return decode[UpsertUpdate](w.Args)
	}
	return nil, errors.New("unknown")
}

func decode[T Op](data []byte) (Op, error) {
	var op T
	err := json.Unmarshal(data, &op)
	return op, err
}
