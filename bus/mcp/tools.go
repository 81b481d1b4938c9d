package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"netsky/agent"
)

// A tool is one the model can call.
type tool struct {
	name, description string
	schema            string // of its arguments, as JSON Schema
	hints             hints
	raw               bool // its result is passed on byte for byte
	run               func(ctx context.Context, args json.RawMessage) (string, error)
}

// hints tell a client what a call does: whether it may run beside others, and whether
// to ask a person.
type hints struct {
	reads   bool // changes nothing
	ends    bool // ends something that is running
	repeats bool // a second call changes nothing more
}

// tools returns this agent's tools.
func (s *Server) tools() []tool {
	if s.o.Phone != nil {
		return s.phoneTools()
	}
	list := []tool{s.sendTool(), s.replyTool(), s.inboxTool(), s.agentsTool(), s.peekTool()}
	list = append(list, s.recordTools()...)
	list = append(list, s.checkTool())
	if s.o.Agent == agent.Root {
		list = append(list, s.startTool(), s.stopTool(), s.taskStartTool())
	}
	return list
}

// add registers a tool. Each is always loaded: a model that must first search for its
// mail does not answer it.
func (s *Server) add(t tool) {
	no := false
	def := &sdk.Tool{
		Meta: sdk.Meta{"anthropic/alwaysLoad": true}, Name: t.name, Description: t.description,
		InputSchema: json.RawMessage(t.schema),
		Annotations: &sdk.ToolAnnotations{
			ReadOnlyHint: t.hints.reads, DestructiveHint: &t.hints.ends, IdempotentHint: t.hints.repeats || t.hints.reads, OpenWorldHint: &no,
		},
	}
	s.sdk.AddTool(def, func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		text, err := s.call(ctx, t, req.Params.Arguments)
		if err != nil {
			text = err.Error() + hint(err)
		}
		if !t.raw || err != nil {
			text = shown(text)
		}
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: text}}, IsError: err != nil}, nil
	})
}

// call runs a tool and recovers its panics: the client does not restart a server that
// died, so the agent would get no mail.
func (s *Server) call(ctx context.Context, t tool, args json.RawMessage) (text string, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%s: internal error: %v", t.name, p)
			s.o.Log("tool", err)
		}
	}()
	return t.run(ctx, args)
}

// errArgument reports an invalid argument.
var errArgument = errors.New("invalid argument")

type argumentError string

func (e argumentError) Error() string        { return string(e) }
func (e argumentError) Is(target error) bool { return target == errArgument }

func argumentf(format string, args ...any) error {
	return argumentError(fmt.Sprintf(format, args...))
}

// with makes a tool's function from a function that takes parsed arguments.
func with[T any](name string, run func(ctx context.Context, in T) (string, error)) func(context.Context, json.RawMessage) (string, error) {
	return func(ctx context.Context, args json.RawMessage) (string, error) {
		var in T
		if err := parse(args, &in); err != nil {
			return "", argumentf("%s: %v; its arguments: %s", name, err, fields[T]())
		}
		return run(ctx, in)
	}
}

// parse parses arguments; if there are none, they are empty. An unknown name is an
// error, or a model that misspells one would never find out.
func parse(args json.RawMessage, in any) error {
	if len(bytes.TrimSpace(args)) == 0 {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(args))
	d.DisallowUnknownFields()
	err := d.Decode(in)
	if _, more := d.Token(); err == nil && more != io.EOF {
		return errors.New("more than one object")
	}
	var odd *json.UnmarshalTypeError
	if errors.As(err, &odd) {
		if odd.Field == "" {
			return fmt.Errorf("must be an object, got %s", odd.Value)
		}
		return fmt.Errorf("%s: must be %s, got %s", odd.Field, kindOf(odd.Type), odd.Value)
	}
	if err != nil {
		return errors.New(strings.TrimPrefix(err.Error(), "json: "))
	}
	return nil
}

func kindOf(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice:
		return "a list"
	}
	return "a whole number"
}

// fields lists the names of T's arguments.
func fields[T any]() string {
	t := reflect.TypeFor[T]()
	if t.NumField() == 0 {
		return "no arguments"
	}
	names := make([]string, t.NumField())
	for i := range names {
		names[i], _, _ = strings.Cut(t.Field(i).Tag.Get("json"), ",")
	}
	return strings.Join(names, ", ")
}
