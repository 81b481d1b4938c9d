package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
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
	run               func(args json.RawMessage) (call, error)
	off               string // why it can't be called; "" if it can
}

// A call is one with arguments that are right.
type call func(ctx context.Context) (string, error)

// hints tell a client what a call does: whether it may run beside others, and whether
// to ask a person.
type hints struct {
	reads   bool // changes nothing
	ends    bool // ends something that is running
	repeats bool // a second call changes nothing more
}

// tools returns this agent's tools. What there is only for agent0 comes last in its list.
func (o *Options) tools() []tool {
	const noTeam = "the list of agents is not available here"
	m := &mail{self: o.Agent, home: o.Home, bus: o.Bus, box: o.Mail}
	if o.Phone != nil {
		return (&phone{m, o.Phone}).tools()
	}
	records := &tasks{Tasks: o.Tasks, self: o.Agent, records: o.Records, members: o.Members, log: o.Log}
	agents := unless(o.Members == nil, noTeam, (&team{o.Members, o.Agent}).tools())
	work := unless(o.Tasks == nil, "the records are not available here", records.tools())
	check := unless(o.Checks == nil, "checks are not available here", (&checks{o.Checks, o.Agent}).tools())
	list := slices.Concat(m.tools(), agents[:2], work[:4], check)
	if o.Agent == agent.Root {
		list = slices.Concat(list, agents[2:], unless(o.Members == nil, noTeam, work[4:]))
	}
	return list
}

// unless turns tools off, if what they need is missing.
func unless(missing bool, why string, list []tool) []tool {
	for i := range list {
		if missing {
			list[i].off = why
		}
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
	do, err := t.run(args)
	if err == nil && t.off != "" {
		err = errors.New(t.name + ": " + t.off)
	}
	if err != nil {
		return "", err
	}
	return do(ctx)
}

// errArgument reports an invalid argument.
var errArgument = errors.New("invalid argument")

type argumentError string

func (e argumentError) Error() string        { return string(e) }
func (e argumentError) Is(target error) bool { return target == errArgument }

func argumentf(format string, args ...any) error {
	return argumentError(fmt.Sprintf(format, args...))
}

// with makes a tool's function from one that takes parsed arguments.
func with[T any](name string, run func(ctx context.Context, in T) (string, error)) func(json.RawMessage) (call, error) {
	return func(args json.RawMessage) (call, error) {
		var in T
		if err := parse(args, &in); err != nil {
			return nil, argumentf("%s: %v; its arguments: %s", name, err, fields[T]())
		}
		return func(ctx context.Context) (string, error) { return run(ctx, in) }, nil
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
	var names []string
	for _, f := range reflect.VisibleFields(reflect.TypeFor[T]()) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return "no arguments"
	}
	return strings.Join(names, ", ")
}
