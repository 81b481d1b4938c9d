// Package config loads netsky.toml, reports what is wrong in it and on which line, and
// adds the owner's answers to it. The rest of the file stays as it is. The file is
// replaced as a whole, so a crash leaves the old one or the new one.
package config

import (
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"netsky/agent"
	"netsky/attention"
	"netsky/cost"
	"netsky/home"
	"netsky/spawn/command"
)

// Sample is the file that `netsky init` writes: every key that has an effect, with its
// default, commented out.
//
//go:embed netsky.toml
var Sample []byte

const maxFile = 1 << 20 // bytes

// Config is netsky.toml. The key turns_per_hour is accepted but has no effect yet, and
// [Sample] omits it.
type Config struct {
	Agents    agentsConfig
	Agent     map[agent.ID]agentConfig `toml:"-"` // [agents.1], [agents.infinity]
	Owner     ownerConfig
	Claude    claudeConfig
	Codex     codexConfig
	Runtime   map[string]runtimeConfig
	Bus       busConfig
	Records   recordsConfig
	Tmux      tmuxConfig
	Watchdog  watchdogConfig
	Escalate  escalateConfig
	Dashboard dashboardConfig
	IMessage  imessageConfig `toml:"imessage"`
	Telegram  telegramConfig
	Work      workConfig
	Self      selfConfig
	Link      linkConfig
	Host      map[string]hostConfig  // by name
	Price     map[string]priceConfig // by model
	Budget    budgetConfig
	// Unbudgeted reports that a mistake may be about [price] or [budget], which are then empty.
	Unbudgeted bool `toml:"-"`
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
	Telegram []string `toml:"telegram"`
}

type claudeConfig struct {
	PermissionMode string   `toml:"permission_mode"`
	CommitAndCheck string   `toml:"commit_and_check"`
	Model          string   `toml:"model"`
	Effort         string   `toml:"effort"`
	Delivery       string   `toml:"delivery"`
	MCP            []string `toml:"mcp"`
	Settings       string   `toml:"settings"`
}

type codexConfig struct {
	Sandbox        string `toml:"sandbox"`
	Approval       string `toml:"approval"`
	CommitAndCheck string `toml:"commit_and_check"`
	Model          string `toml:"model"`
	Goals          bool   `toml:"goals"`
	Compact        bool   `toml:"compact"`
}

type runtimeConfig struct {
	Command []string `toml:"command"`
}

type busConfig struct {
	MaxBytes int64    `toml:"max_bytes"`
	Keep     Duration `toml:"keep"`
}

type recordsConfig struct {
	Keep     Duration `toml:"keep"`
	MaxBytes int64    `toml:"max_bytes"`
}

type tmuxConfig struct {
	Socket string `toml:"socket"`
	Conf   string `toml:"conf"`
}

type watchdogConfig struct {
	Tick   Duration `toml:"tick"`
	Hang   Duration `toml:"hang"`
	Repage Duration `toml:"repage"`
	Wakes  int      `toml:"wakes"`
}

type escalateConfig struct {
	Command []string `toml:"command"`
	Webhook string   `toml:"webhook"`
	Desktop bool     `toml:"desktop"`
}

type dashboardConfig struct {
	Listen string `toml:"listen"`
	Cert   string `toml:"cert"`
	Key    string `toml:"key"`
	Wide   bool   `toml:"wide"`
	Answer bool   `toml:"answer"`
}

type selfConfig struct {
	From    string `toml:"from"`
	Signers string `toml:"signers"`
	Check   string `toml:"check"`
}

type linkConfig struct {
	Deeds bool `toml:"deeds"`
}

// A hostConfig is how another machine with a netsky is reached.
type hostConfig struct {
	SSH    string `toml:"ssh"`
	Netsky string `toml:"netsky"`
}

// Every returns how often netsky looks for an update, 0 for never.
func (s selfConfig) Every() time.Duration {
	d, _ := time.ParseDuration(s.Check) // check has refused another
	return d
}

type imessageConfig struct {
	Enabled      bool   `toml:"enabled"`
	Through      string `toml:"through"`
	DB           string `toml:"db"`
	SelfChat     bool   `toml:"self_chat"`
	URL          string `toml:"url"`
	PasswordFile string `toml:"password_file"`
}

type telegramConfig struct {
	Enabled   bool   `toml:"enabled"`
	TokenFile string `toml:"token_file"`
	API       string `toml:"api"`
}

type workConfig struct {
	Worktrees bool     `toml:"worktrees"`
	Setup     string   `toml:"setup"`
	SetupTime Duration `toml:"setup_time"`
	Check     string   `toml:"check"`
	CheckTime Duration `toml:"check_time"`
	Land      string   `toml:"land"`
	After     string   `toml:"after"`
	Ports     int      `toml:"ports"`
}

// Who may land besides the owner.
const (
	LandOwner = "owner" // nobody
	LandRoot  = "agent0"
)

// nano returns an amount of money as package cost counts it.
func nano(amount float64) int64 { return int64(amount*1e9 + 0.5) }

// Terms returns the prices and the limits; unknown reports that a mistake may be about them.
func (c Config) Terms() (p cost.Prices, l cost.Limits, unknown bool) {
	p = cost.Prices{}
	for model, m := range c.Price {
		p[model] = cost.Price{Input: nano(m.Input), Output: nano(m.Output), CacheRead: nano(m.CacheRead), CacheWrite: nano(m.CacheWrite)}
	}
	b := c.Budget
	l.Day = cost.Limit{Tokens: b.DayTokens, Nano: nano(b.DayMoney)}
	l.Agent = cost.Limit{Tokens: b.AgentTokens, Nano: nano(b.AgentMoney)}
	l.Task = cost.Limit{Tokens: b.TaskTokens, Nano: nano(b.TaskMoney)}
	return p, l, c.Unbudgeted
}

// A priceConfig is what a million tokens cost.
type priceConfig struct {
	Input      float64 `toml:"input"`
	Output     float64 `toml:"output"`
	CacheRead  float64 `toml:"cache_read"`
	CacheWrite float64 `toml:"cache_write"`
}

// A budgetConfig limits a day of all agents, a day of each agent, and each task. 0 is no limit.
type budgetConfig struct {
	DayTokens   int64   `toml:"day_tokens"`
	DayMoney    float64 `toml:"day_money"`
	AgentTokens int64   `toml:"agent_tokens"`
	AgentMoney  float64 `toml:"agent_money"`
	TaskTokens  int64   `toml:"task_tokens"`
	TaskMoney   float64 `toml:"task_money"`
}

// The programs that [imessage] can go through.
const (
	ThroughMessages    = "messages"
	ThroughBlueBubbles = "bluebubbles"
)

// Duration is a duration as a person writes it: "90s", "168h".
type Duration struct{ time.Duration }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Duration) UnmarshalText(text []byte) (err error) {
	d.Duration, err = time.ParseDuration(string(text))
	if err != nil || d.Duration <= 0 {
		return fmt.Errorf("%q is not a duration above 0, such as \"90s\" or \"24h\"", text)
	}
	return nil
}

// Default returns the configuration without a netsky.toml.
func Default() Config {
	return Config{
		Agents:    agentsConfig{Clones: 2, Runtime: "auto", TurnsPerHour: 120},
		Claude:    claudeConfig{Delivery: "auto"},
		Bus:       busConfig{MaxBytes: 1 << 20, Keep: Duration{168 * time.Hour}},
		Records:   recordsConfig{Keep: Duration{90 * 24 * time.Hour}, MaxBytes: 1 << 30},
		Tmux:      tmuxConfig{Socket: "netsky"},
		Escalate:  escalateConfig{Command: []string{}},
		Watchdog:  watchdogConfig{Duration{time.Minute}, Duration{30 * time.Minute}, Duration{time.Hour}, 5},
		Dashboard: dashboardConfig{Listen: "127.0.0.1:7717", Answer: true},
		Owner:     ownerConfig{IMessage: []string{}, Telegram: []string{}},
		IMessage:  imessageConfig{Through: ThroughMessages, DB: "~/Library/Messages/chat.db", SelfChat: true},
		Link:      linkConfig{Deeds: true},
		Work:      workConfig{Worktrees: true, SetupTime: Duration{15 * time.Minute}, CheckTime: Duration{30 * time.Minute}, Land: LandOwner},
	}
}

// Allow is what lets agents commit, and run the check command, in worktrees of their own without asking.
const Allow = "allow"

var commitAndCheck = []string{"", "ask", Allow}

// permissionModes are Claude Code's.
var permissionModes = []string{"bypassPermissions", "acceptEdits", "manual", "auto", "dontAsk", "plan"}

func (c Config) check() error {
	switch {
	case c.Agents.Clones < 0 || c.Agents.Clones > agent.MaxClones:
		return fmt.Errorf("agents.clones: %d: must be 0 to %d", c.Agents.Clones, agent.MaxClones)
	case c.Agents.TurnsPerHour < 0:
		return fmt.Errorf("agents.turns_per_hour: %d: must be 0 or above", c.Agents.TurnsPerHour)
	case c.Watchdog.Wakes < 0:
		return fmt.Errorf("watchdog.wakes: %d: must be 0 or above", c.Watchdog.Wakes)
	case c.Records.MaxBytes < 16<<20:
		return fmt.Errorf("records.max_bytes: %d: must be %d or above", c.Records.MaxBytes, 16<<20)
	case c.Claude.Delivery != "auto" && c.Claude.Delivery != "channel":
		return fmt.Errorf("claude.delivery: %q: must be auto or channel", c.Claude.Delivery)
	case c.Claude.PermissionMode != "" && !slices.Contains(permissionModes, c.Claude.PermissionMode):
		return fmt.Errorf("claude.permission_mode: %q: must be one of %s", c.Claude.PermissionMode, strings.Join(permissionModes, ", "))
	case !slices.Contains(commitAndCheck, c.Claude.CommitAndCheck):
		return fmt.Errorf("claude.commit_and_check: %q: must be ask or allow", c.Claude.CommitAndCheck)
	case !slices.Contains(commitAndCheck, c.Codex.CommitAndCheck):
		return fmt.Errorf("codex.commit_and_check: %q: must be ask or allow", c.Codex.CommitAndCheck)
	case (c.Dashboard.Cert == "") != (c.Dashboard.Key == ""):
		return errors.New("dashboard: cert and key: set both or neither")
	}
	if d, err := time.ParseDuration(c.Self.Check); c.Self.Check != "" && (err != nil || d < time.Minute) {
		return fmt.Errorf("self.check: %q: must be \"\" or a duration of a minute or more, such as \"24h\"", c.Self.Check)
	}
	if c.Escalate.Webhook != "" {
		if err := attention.CheckURL(c.Escalate.Webhook); err != nil {
			return fmt.Errorf("escalate.webhook: %w", err)
		}
	}
	for name, r := range c.Runtime {
		if err := command.CheckTable(name, r.Command); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Host)) {
		if !agent.IsHost(name) {
			return fmt.Errorf("host.%s: a host's name has at most %d characters of a-z, 0-9 and -, begins with a letter and does not end with -", name, agent.MaxHost)
		}
	}
	if err := errors.Join(c.checkPhone(), c.checkWork()); err != nil {
		return err
	}
	return c.checkBus()
}

func (c Config) checkPhone() error {
	m, t := c.IMessage, c.Telegram
	switch {
	case m.Enabled && t.Enabled:
		return errors.New("imessage and telegram: both are enabled; set enabled = false in one of them")
	case m.Through != ThroughMessages && m.Through != ThroughBlueBubbles:
		return fmt.Errorf("imessage.through: %q: must be %s or %s", m.Through, ThroughMessages, ThroughBlueBubbles)
	case m.Enabled && m.Through == ThroughBlueBubbles && (m.URL == "" || m.PasswordFile == ""):
		return errors.New("imessage: through = \"bluebubbles\" needs url and password_file")
	case t.Enabled && t.TokenFile == "":
		return errors.New("telegram: needs token_file: a file that holds the bot's token")
	}
	return nil
}

func (c Config) checkWork() error {
	w, b := c.Work, c.Budget
	switch {
	case w.Land != LandOwner && w.Land != LandRoot:
		return fmt.Errorf("work.land: %q: must be %s or %s", w.Land, LandOwner, LandRoot)
	case w.After != "" && w.After != "claimed" && w.After != "proved" && w.After != "landed":
		return fmt.Errorf("work.after: %q: must be claimed, proved or landed", w.After)
	case w.Ports != 0 && (w.Ports < 1024 || w.Ports > 55_000):
		return fmt.Errorf("work.ports: %d: must be 1024 to 55000, or 0", w.Ports)
	case min(b.DayTokens, b.AgentTokens, b.TaskTokens) < 0 || !amounts(b.DayMoney, b.AgentMoney, b.TaskMoney):
		return errors.New("budget: must be 0 or above; 0 is no limit")
	}
	for model, p := range c.Price {
		if !amounts(p.Input, p.Output, p.CacheRead, p.CacheWrite) {
			return fmt.Errorf("price: %q: must be 0 or above", model)
		}
	}
	return nil
}

// amounts reports whether all are amounts of money, which inf and nan are not.
func amounts(list ...float64) bool {
	return !slices.ContainsFunc(list, func(v float64) bool { return !(v >= 0 && v < 1e9) })
}

func (c Config) checkBus() error {
	if c.Bus.MaxBytes < 1024 || c.Bus.MaxBytes > 64<<20 {
		return fmt.Errorf("bus.max_bytes: %d: must be 1024 to %d", c.Bus.MaxBytes, 64<<20)
	}
	return nil
}

// Load reads the home's netsky.toml; without one it returns [Default]. With an error, harm
// says how much of the configuration is known. What may not be is at its default, but what
// then would be removed, served or spent is not.
func Load(h home.Dir) (c Config, harm Harm, err error) {
	data, err := h.ReadFile(home.ConfigFile, maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return Default(), 0, nil
	}
	if err != nil {
		c = Default()
		c.without(all)
		return c, Whole, err
	}
	if c, harm, err = parse(data); err != nil {
		err = fmt.Errorf("%s: %w", h.Path(home.ConfigFile), err)
	}
	return c, harm, err
}

// Path makes a path in netsky.toml absolute. A relative one is relative to the file.
func Path(h home.Dir, userHome, path string) (string, error) {
	if path == "" || path[0] != '/' && path[0] != '~' {
		path = h.Path(path)
	}
	return Expand(userHome, path)
}

// Expand makes a path that a person typed absolute; ~/ is the user's home.
func Expand(userHome, path string) (string, error) {
	if rest, ok := strings.CutPrefix(path, "~"); ok && (rest == "" || rest[0] == '/') {
		path = userHome + rest
	}
	return filepath.Abs(path)
}
