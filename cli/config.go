package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"

	"netsky/agent"
	"netsky/agent/home"
)

// config is netsky.toml. Keys whose features come with a runtime or a bridge
// are read and checked here whether or not this machine uses them.
type config struct {
	Agents    agentsConfig
	Agent     map[agent.ID]agentConfig `toml:"-"` // [agents.1], [agents.infinity]
	Owner     ownerConfig
	Claude    claudeConfig
	Codex     codexConfig
	Runtime   map[string]runtimeConfig
	Bus       busConfig
	Tmux      tmuxConfig
	Watchdog  watchdogConfig
	Dashboard dashboardConfig
	IMessage  imessageConfig `toml:"imessage"`
}

type agentsConfig struct {
	Clones       int      `toml:"clones"`
	Runtime      string   `toml:"runtime"`
	Dir          string   `toml:"dir"`
	Addendum     []string `toml:"addendum"`
	TurnsPerHour int      `toml:"turns_per_hour"`
}

type agentConfig struct {
	Runtime  string   `toml:"runtime"`
	Dir      string   `toml:"dir"`
	Model    string   `toml:"model"`
	Addendum []string `toml:"addendum"`
}

type ownerConfig struct {
	Name     string   `toml:"name"`
	IMessage []string `toml:"imessage"`
}

type claudeConfig struct {
	PermissionMode string   `toml:"permission_mode"`
	Model          string   `toml:"model"`
	Effort         string   `toml:"effort"`
	Delivery       string   `toml:"delivery"`
	MCP            []string `toml:"mcp"`
	Settings       string   `toml:"settings"`
}

type codexConfig struct {
	Sandbox  string `toml:"sandbox"`
	Approval string `toml:"approval"`
	Model    string `toml:"model"`
}

type runtimeConfig struct {
	Command []string `toml:"command"`
}

type busConfig struct {
	MaxBytes int64    `toml:"max_bytes"`
	Keep     duration `toml:"keep"`
}

type tmuxConfig struct {
	Socket string `toml:"socket"`
	Conf   string `toml:"conf"`
}

type watchdogConfig struct {
	Tick   duration `toml:"tick"`
	Hang   duration `toml:"hang"`
	Repage duration `toml:"repage"`
}

type dashboardConfig struct {
	Listen string `toml:"listen"`
	Cert   string `toml:"cert"`
	Key    string `toml:"key"`
	Wide   bool   `toml:"wide"`
}

type imessageConfig struct {
	Enabled bool   `toml:"enabled"`
	DB      string `toml:"db"`
}

// duration is a time span as a person writes it: "90s", "168h".
type duration struct{ time.Duration }

func (d *duration) UnmarshalText(text []byte) (err error) {
	d.Duration, err = time.ParseDuration(string(text))
	if err != nil || d.Duration <= 0 {
		return fmt.Errorf("%q is no time span above 0, such as \"90s\" or \"24h\"", text)
	}
	return nil
}

func defaults() config {
	return config{
		Agents:    agentsConfig{Clones: 2, Runtime: "auto", TurnsPerHour: 120},
		Claude:    claudeConfig{Delivery: "auto"},
		Bus:       busConfig{MaxBytes: 1 << 20, Keep: duration{168 * time.Hour}},
		Tmux:      tmuxConfig{Socket: "netsky"},
		Watchdog:  watchdogConfig{duration{time.Minute}, duration{30 * time.Minute}, duration{time.Hour}},
		Dashboard: dashboardConfig{Listen: "127.0.0.1:7717"},
		IMessage:  imessageConfig{DB: "~/Library/Messages/chat.db"},
	}
}

// cfg is the configuration, read once.
func (a *app) cfg() (config, error) {
	a.once.Do(func() {
		h, err := a.home()
		if err != nil {
			a.cfgErr = err
			return
		}
		data, err := h.ReadFile(home.ConfigFile, 1<<20)
		if errors.Is(err, fs.ErrNotExist) {
			data, err = nil, nil
		}
		if err == nil {
			if a.config, err = parseConfig(data); err != nil {
				err = fmt.Errorf("%s: %w", h.Path(home.ConfigFile), err)
				if c, unknown := bearing(data); a.lenient && unknown == nil {
					a.warn("%v; ignored here, but correct it before the next `netsky up`", err)
					a.config, err = c, nil
				}
			}
		}
		if err != nil {
			a.cfgErr = exitError{exitUsage, err}
		}
		if listen := a.getenv("NETSKY_LISTEN"); listen != "" {
			a.config.Dashboard.Listen = listen
		}
	})
	return a.config, a.cfgErr
}

// parseConfig reads netsky.toml. An unknown key is an error that names its line.
func parseConfig(data []byte) (config, error) {
	c := defaults()
	var names struct{ Agents map[string]any }
	if err := toml.Unmarshal(data, &names); err != nil {
		return c, place(err)
	}
	ids, err := ownTables(names.Agents)
	if err != nil {
		return c, err
	}
	shape := shapeFor(ids)
	copyFields(shape, reflect.ValueOf(&c).Elem())
	copyFields(shape.FieldByName("Agents"), reflect.ValueOf(&c.Agents).Elem())
	if err := decode(data, shape); err != nil {
		return c, place(locate(data, shape, err))
	}
	copyFields(reflect.ValueOf(&c).Elem(), shape)
	copyFields(reflect.ValueOf(&c.Agents).Elem(), shape.FieldByName("Agents"))
	c.Agent = make(map[agent.ID]agentConfig)
	for _, id := range ids {
		c.Agent[id] = shape.FieldByName("Agents").FieldByName(fieldName(id)).Interface().(agentConfig)
	}
	return c, c.check()
}

// ownTables finds the agents that have a table of their own, by the names that
// the file gives them.
func ownTables(agents map[string]any) (map[string]agent.ID, error) {
	ids, names := make(map[string]agent.ID), make(map[agent.ID]string)
	for _, name := range slices.Sorted(maps.Keys(agents)) {
		if _, table := agents[name].(map[string]any); !table {
			continue
		}
		id, err := agent.ParseAgent(name)
		if err != nil {
			continue // an unknown key, which is told with its line
		}
		if other, twice := names[id]; twice {
			return nil, fmt.Errorf("agents: %s stands there twice, as %q and as %q", id, other, name)
		}
		ids[name], names[id] = id, name
	}
	return ids, nil
}

// shapeFor makes a value of the type that the file is decoded into: config, with
// one more table below [agents] for each agent that the file names. A map would
// take any key; a struct refuses what it doesn't know.
func shapeFor(ids map[string]agent.ID) reflect.Value {
	agents := reflect.VisibleFields(reflect.TypeFor[agentsConfig]())
	for _, name := range slices.Sorted(maps.Keys(ids)) {
		agents = append(agents, reflect.StructField{
			Name: fieldName(ids[name]), Type: reflect.TypeFor[agentConfig](), Tag: reflect.StructTag(`toml:"` + name + `"`),
		})
	}
	fields := reflect.VisibleFields(reflect.TypeFor[config]())
	for i := range fields {
		if fields[i].Name == "Agents" {
			fields[i].Type = reflect.StructOf(agents)
		}
	}
	return reflect.New(reflect.StructOf(fields)).Elem()
}

// copyFields copies the fields that both have under one name with one type.
func copyFields(to, from reflect.Value) {
	for _, f := range reflect.VisibleFields(to.Type()) {
		if v := from.FieldByName(f.Name); v.IsValid() && v.Type() == f.Type {
			to.FieldByName(f.Name).Set(v)
		}
	}
}

func fieldName(id agent.ID) string { return "Agent_" + id.N() }

func decode(data []byte, into reflect.Value) error {
	dec := toml.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	return dec.Decode(into.Addr().Interface())
}

// locate finds the line of an error that the library gives without one: the
// first after which the file's beginning has that error.
func locate(data []byte, shape reflect.Value, err error) error {
	var strict *toml.StrictMissingError
	var bad *toml.DecodeError
	if errors.As(err, &strict) || errors.As(err, &bad) {
		return err
	}
	n, read := 0, 0
	for line := range bytes.Lines(data) {
		n, read = n+1, read+len(line)
		if e := decode(data[:read], reflect.New(shape.Type()).Elem()); e != nil && e.Error() == err.Error() {
			return fmt.Errorf("line %d: %w", n, err)
		}
	}
	return err
}

// place says on which line the file is wrong.
func place(err error) error {
	var strict *toml.StrictMissingError
	if errors.As(err, &strict) && len(strict.Errors) > 0 {
		e := strict.Errors[0]
		line, _ := e.Position()
		return fmt.Errorf("line %d: unknown key %q%s", line, strings.Join(e.Key(), "."), meant(e.Key()))
	}
	var bad *toml.DecodeError
	if errors.As(err, &bad) {
		line, _ := bad.Position()
		return fmt.Errorf("line %d: %s", line, mismatch(strings.TrimPrefix(bad.Error(), "toml: "), bad.Key()))
	}
	return err
}

// mismatch says in words of the file, not of the program, that a value is of the
// wrong type. Other texts it leaves as they are.
func mismatch(text string, key toml.Key) string {
	rest, ok := strings.CutPrefix(text, "cannot decode TOML ")
	has, _, found := strings.Cut(rest, " into ")
	if !ok || !found {
		return text
	}
	if len(key) > 0 {
		has = strings.Join(key, ".") + ": " + has
	}
	switch {
	case strings.HasSuffix(text, " []string"):
		return has + ", wants a list of texts, as [\"a\", \"b\"]"
	case strings.HasSuffix(text, " string"):
		return has + ", wants a text in quotes"
	case strings.HasSuffix(text, " bool"):
		return has + ", wants true or false"
	case strings.HasSuffix(text, " int"), strings.HasSuffix(text, " int64"):
		return has + ", wants a whole number"
	}
	return has + " does not belong there"
}

// permissionModes are Claude Code's own words.
var permissionModes = []string{"bypassPermissions", "acceptEdits", "manual", "auto", "dontAsk", "plan"}

func (c config) check() error {
	switch {
	case c.Agents.Clones < 0 || c.Agents.Clones > agent.MaxClones:
		return fmt.Errorf("agents.clones: %d is not 0 to %d", c.Agents.Clones, agent.MaxClones)
	case c.Agents.TurnsPerHour < 0:
		return fmt.Errorf("agents.turns_per_hour: %d is below 0", c.Agents.TurnsPerHour)
	case c.Claude.Delivery != "auto" && c.Claude.Delivery != "channel":
		return fmt.Errorf("claude.delivery: %q is neither auto nor channel", c.Claude.Delivery)
	case c.Claude.PermissionMode != "" && !slices.Contains(permissionModes, c.Claude.PermissionMode):
		return fmt.Errorf("claude.permission_mode: %q is none of %s", c.Claude.PermissionMode, strings.Join(permissionModes, ", "))
	case (c.Dashboard.Cert == "") != (c.Dashboard.Key == ""):
		return errors.New("dashboard: cert and key are given together")
	}
	for name, r := range c.Runtime {
		if err := checkOwn(name, r.Command); err != nil {
			return err
		}
	}
	return c.checkBus()
}

func (c config) checkBus() error {
	if c.Bus.MaxBytes < 1024 || c.Bus.MaxBytes > 64<<20 {
		return fmt.Errorf("bus.max_bytes: %d is not 1024 to %d", c.Bus.MaxBytes, 64<<20)
	}
	return nil
}

// placed makes a path that stands in netsky.toml absolute: a relative one lies
// beside the file, wherever netsky is called.
func (a *app) placed(path string) (string, error) {
	h, err := a.home()
	if err != nil {
		return "", err
	}
	if path == "" || path[0] != '/' && path[0] != '~' {
		path = h.Path(path)
	}
	return a.expand(path)
}

// expand makes a person's path absolute: ~/ is the user's home.
func (a *app) expand(path string) (string, error) {
	if rest, ok := strings.CutPrefix(path, "~"); ok && (rest == "" || rest[0] == '/') {
		path = a.getenv("HOME") + rest
	}
	return filepath.Abs(path)
}
