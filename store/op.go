package store

import (
	"database/sql"
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

// kinds says how each kind of op is decoded. It is complete before main begins.
var kinds = map[string]func([]byte) (Op, error){
	UpsertActor{}.name():    decode[UpsertActor],
	StartSession{}.name():   decode[StartSession],
	SessionState{}.name():   decode[SessionState],
	EndSession{}.name():     decode[EndSession],
	UpsertMessage{}.name():  decode[UpsertMessage],
	UpsertDelivery{}.name(): decode[UpsertDelivery],
	UpsertInput{}.name():    decode[UpsertInput],
	UpsertTask{}.name():     decode[UpsertTask],
	AddDependency{}.name():  decode[AddDependency],
	AddNote{}.name():        decode[AddNote],
	AddLog{}.name():         decode[AddLog],
	CountLog{}.name():       decode[CountLog],
	SetSetting{}.name():     decode[SetSetting],
	AddSchedule{}.name():    decode[AddSchedule],
	EndSchedule{}.name():    decode[EndSchedule],
	RunSchedule{}.name():    decode[RunSchedule],
	UpsertUpdate{}.name():   decode[UpsertUpdate],
}

func decodeOp(w written) (Op, error) {
	if decode, ok := kinds[w.Op]; ok {
		return decode(w.Args)
	}
	return nil, errors.New("unknown")
}

func decode[T Op](data []byte) (Op, error) {
	var op T
	err := json.Unmarshal(data, &op)
	return op, err
}

// Define declares a kind of record that a package below store keeps in tables of its own, under a
// name that is its alone, and returns what makes an Op of a value. stamped fills in a missing time;
// apply runs in a transaction, and must change nothing if it is run again with the same value. It
// is called while packages are initialized.
func Define[T any](name string, stamped func(T, Time) T, apply func(*sql.Conn, T) error) func(T) Op {
	if kinds[name] != nil {
		panic("store: two kinds " + name)
	}
	make := func(v T) Op { return defined[T]{name, v, stamped, apply} }
	kinds[name] = func(data []byte) (Op, error) {
		var v T
		err := json.Unmarshal(data, &v)
		return make(v), err
	}
	return make
}

type defined[T any] struct {
	kind  string
	v     T
	stamp func(T, Time) T
	do    func(*sql.Conn, T) error
}

func (d defined[T]) name() string                 { return d.kind }
func (d defined[T]) stamped(now Time) Op          { d.v = d.stamp(d.v, now); return d }
func (d defined[T]) apply(t *tx) error            { return d.do(t.conn, d.v) }
func (d defined[T]) MarshalJSON() ([]byte, error) { return json.Marshal(d.v) }

// Invalid returns an error that says that a record is invalid, and will be however often it is tried.
func Invalid(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{errOp}, args...)...)
}
