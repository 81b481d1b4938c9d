package config

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"netsky/agent"
	"netsky/internal/testworld"
)

func TestParse(t *testing.T) {
	for _, tt := range []struct {
		name string
		text string
		edit func(*Config) // what is otherwise than by default
	}{
		{"nothing", "", func(*Config) {}},
		{"what init writes", string(Sample), func(*Config) {}},
		{"a key", "[agents]\nclones = 5\n", func(c *Config) { c.Agents.Clones = 5 }},
		{"zero is a value", "[agents]\nclones = 0\nturns_per_hour = 0\n", func(c *Config) { c.Agents.Clones, c.Agents.TurnsPerHour = 0, 0 }},
		{"durations", "[bus]\nkeep = \"24h\"\n[watchdog]\ntick = \"90s\"\n", func(c *Config) {
			c.Bus.Keep, c.Watchdog.Tick = Duration{24 * time.Hour}, Duration{90 * time.Second}
		}},
		{"agents by all their names", "[agents.1]\nruntime = \"demo\"\n[agents.agent2]\ndir = \"/x\"\n[agents.infinity]\nmodel = \"m\"\n[agents.0]\naddendum = [\"a\"]\n", func(c *Config) {
			c.Agent[agent.Clone(1)] = agentConfig{Runtime: "demo"}
			c.Agent[agent.Clone(2)] = agentConfig{Dir: "/x"}
			c.Agent[agent.Infinity] = agentConfig{Model: "m"}
			c.Agent[agent.Root] = agentConfig{Addendum: []string{"a"}}
		}},
		{"an agent beside the others", "[agents]\nclones = 1\n[agents.1]\ndir = \"/y\"\n", func(c *Config) {
			c.Agents.Clones = 1
			c.Agent[agent.Clone(1)] = agentConfig{Dir: "/y"}
		}},
		{"a program whose name is as long as may be", "[runtime.0_-" + strings.Repeat("z", 29) + "]\ncommand = [\"x\"]\n", func(c *Config) {
			c.Runtime = map[string]runtimeConfig{"0_-" + strings.Repeat("z", 29): {Command: []string{"x"}}}
		}},
		{"a program of one's own", "[runtime.gemini]\ncommand = [\"gemini\", \"--yolo\"]\n", func(c *Config) {
			c.Runtime = map[string]runtimeConfig{"gemini": {Command: []string{"gemini", "--yolo"}}}
		}},
		{"other machines", "[host.build1]\nssh = \"me@10.0.0.1\"\nnetsky = \"~/n\"\n[host.b-2]\n", func(c *Config) {
			c.Host = map[string]hostConfig{"build1": {"me@10.0.0.1", "~/n"}, "b-2": {}}
		}},
		{"tables of features that are not there yet", "[imessage]\nenabled = true\n[owner]\nimessage = [\"+1\"]\n[dashboard]\nlisten = \"127.0.0.1:1\"\n", func(c *Config) {
			c.IMessage.Enabled, c.Owner.IMessage, c.Dashboard.Listen = true, []string{"+1"}, "127.0.0.1:1"
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			want := Default()
			want.Agent = map[agent.ID]agentConfig{}
			tt.edit(&want)
			got := testworld.Got(Parse([]byte(tt.text)))(t)
			if !reflect.DeepEqual(got, want) {
				t.Errorf("Parse(%q) =\n%+v, want\n%+v", tt.text, got, want)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"unknown key", "[agents]\n\nclonse = 3\n", `line 3: unknown key "agents.clonse"; did you mean "clones"?`},
		{"a key too long", "[agents]\nclonez = 3\n", `line 2: unknown key "agents.clonez"; did you mean "clones"?`},
		{"a key like no other", "[agents]\nfoo = 3\n", `line 2: unknown key "agents.foo"`},
		{"a key without its table", "clones = 3\n", `line 1: unknown key "clones"; clones belongs under [agents]`},
		{"a key in another's table", "[claude]\nkeep = \"1h\"\n", `line 2: unknown key "claude.keep"; keep belongs under [bus]`},
		{"a key of an agent", "[agents.1]\nmodell = \"m\"\n", `line 2: unknown key "agents.1.modell"; did you mean "model"?`},
		{"a key of a program", "[runtime.x]\ncomand = [\"x\"]\n", `line 2: unknown key "runtime.x.comand"; did you mean "command"?`},
		{"unknown table", "[bus]\nkeep = \"1h\"\n[dashbored]\nlisten = \"x\"\n", `line 3: unknown key "dashbored`},
		{"unknown key of an agent", "[agents]\nclones = 1\n[agents.1]\nmodel = \"m\"\nclones = 2\n", `line 5: unknown key "agents.1.clones"`},
		{"an agent that is none", "[agents.bob]\ndir = \"/x\"\n", `line 1: unknown key "agents.bob`},
		{"an agent with a leading zero", "[agents.01]\ndir = \"/x\"\n", `line 1: unknown key "agents.01`},
		{"the owner is no agent", "[agents.owner]\ndir = \"/x\"\n", `line 1: unknown key "agents.owner`},
		{"one agent twice", "[agents.1]\ndir = \"/x\"\n[agents.agent1]\ndir = \"/y\"\n", `agents: agent1 is configured twice, as "1" and as "agent1"`},
		{"malformed", "[agents]\nclones = \n", "line 2: "},
		{"not closed", "[agents\n", "line 1: "},
		{"a key twice", "[agents]\nclones = 1\nclones = 2\n", "line 3: key clones is already defined"},
		{"wrong type", "[agents]\nclones = \"two\"\n", "line 2: agents.clones: is a string, must be a whole number"},
		{"wrong type of an agent", "[agents.1]\ndir = 3\n", "line 2: agents.1.dir: is an integer, must be a string in quotes"},
		{"a text for a list", "[claude]\nmcp = \"x\"\n", "line 2: claude.mcp: is a string, must be a list of strings"},
		{"a text for a command", "[runtime.x]\ncommand = \"x\"\n", "line 2: runtime.x.command: is a string, must be a list of strings"},
		{"a text for a yes", "[dashboard]\nwide = \"no\"\n", "line 2: dashboard.wide: is a string, must be true or false"},
		{"a certificate without its key", "[dashboard]\ncert = \"x\"\n", "dashboard: cert and key: set both or neither"},
		{"a text for a table", "claude = \"x\"\n", "line 1: claude: must be a table, not string"},
		{"no time span", "[bus]\nkeep = \"soon\"\n", "line 2: "},
		{"a number for a time span", "[bus]\nkeep = 3\n", `line 2: "3" is not a duration above 0`},
		{"a time span of nothing", "[watchdog]\ntick = \"0s\"\n", "line 2: "},
		{"a time span below nothing", "[watchdog]\n\ntick = \"-1m\"\n", "line 3: "},
		{"too many clones", "[agents]\nclones = 10000\n", "agents.clones: 10000: must be 0 to 9999"},
		{"fewer than none", "[agents]\nclones = -1\n", "agents.clones: -1: must be 0 to 9999"},
		{"a budget below nothing", "[budget]\nday_money = 5.0\ntask_tokens = -1_000\n", "line 3: budget.task_tokens: -1_000: must be 0 or above; 0 is no limit"},
		{"money below nothing", "[budget]\n\nagent_money = -0.5\n", "line 3: budget.agent_money: -0.5: must be 0 or above, and below 1,000,000,000"},
		{"a price below nothing", "[price.\"m-1.5\"]\ninput = 1.0\noutput = -2\n", "line 3: price.m-1.5.output: -2: must be 0 or above"},
		{"a price in one line", "[price]\nm = { input = 2.0, output = inf }\n", "line 2: price.m.output: inf: must be 0 or above"},
		{"turns below none", "[agents]\nturns_per_hour = -1\n", "agents.turns_per_hour: -1: must be 0 or above"},
		{"tiny envelopes", "[bus]\nmax_bytes = 10\n", "bus.max_bytes: 10: must be 1024 to "},
		{"huge envelopes", "[bus]\nmax_bytes = 1000000000\n", "bus.max_bytes: "},
		{"a way of delivery that is none", "[claude]\ndelivery = \"pigeon\"\n", `claude.delivery: "pigeon": must be auto or channel`},
		{"a runtime's name in upper case", "[runtime.Mine]\ncommand = [\"x\"]\n", "runtime.Mine: a name has at most 32 characters of a-z, 0-9, - and _"},
		{"a runtime's name with a point in it", "[runtime.\"a.b\"]\ncommand = [\"x\"]\n", "runtime.a.b: a name has"},
		{"a runtime's name with a dash in front", "[runtime.-a]\ncommand = [\"x\"]\n", "runtime.-a: a name has"},
		{"a runtime without a name", "[runtime.\"\"]\ncommand = [\"x\"]\n", "runtime.: a name has"},
		{"a runtime's name of 33 letters", "[runtime." + strings.Repeat("a", 33) + "]\ncommand = [\"x\"]\n", "runtime." + strings.Repeat("a", 33) + ": a name has"},
		{"a runtime without a command", "[runtime.mine]\ncommand = []\n", "runtime.mine: no command"},
		{"a host's name with a point in it", "[host.\"a.b\"]\nssh = \"x\"\n", "host.a.b: a host's name has at most 32 characters of a-z, 0-9 and -"},
		{"a key of a host", "[host.x]\nshh = \"x\"\n", `line 2: unknown key "host.x.shh"; did you mean "ssh"?`},
		{"bytes that are no text", "[owner]\nname = \"\xff\"\n", "line 2: "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Parse([]byte(tt.text))
			if err == nil || !strings.HasPrefix(err.Error(), tt.want) {
				t.Errorf("Parse(%q) = %v, want %q", tt.text, err, tt.want)
			}
		})
	}
}

// TestBearing: what is wrong in netsky.toml stops a verb that starts nothing only
// where it may be the tmux server's or the bus's.
func TestBearing(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		ok         bool
	}{
		{"a slip", "[agents]\nclonez = 3\n[tmux]\nsocket = \"mine\"\n", true},
		{"an unknown table", "[tmux]\nsocket = \"mine\"\n[dashbored]\nlisten = \"x\"\n", true},
		{"a bad value", "[agents]\nclones = \"two\"\n[Tmux]\nSocket = \"mine\"\n", true},
		{"one agent twice", "[agents.1]\ndir = \"/x\"\n[agents.agent1]\n[tmux]\nsocket = \"mine\"\n", true},
		{"a program named as a key", "[runtime.socket]\ncommand = [\"x\"]\n[claude]\nmodle = \"\"\n[tmux]\nsocket = \"mine\"\n", true},
		{"keys of the dashboard", "[dashboard]\nkey = \"x\"\n[tmux]\nsocket = \"mine\"\n", true},
		{"no TOML", "[agents\n[tmux]\nsocket = \"mine\"\n", false},
		{"a slip in tmux", "[tmux]\nsokcet = \"mine\"\n", false},
		{"an unknown key in tmux", "[tmux]\nsocket = \"mine\"\ncolour = 1\n", false},
		{"a slip of tmux", "[tmx]\nsocket = \"mine\"\n", false},
		{"without its table", "socket = \"mine\"\n", false},
		{"in another's table", "[agents]\nsocket = \"mine\"\n", false},
		{"in an agent's table", "[agents.1]\nsockett = \"mine\"\n", false},
		{"a bad socket", "[tmux]\nsocket = 3\n", false},
		{"a bad time to keep", "[bus]\nkeep = \"soon\"\n", false},
		{"a bad size", "[bus]\nmax_bytes = 3\n[agents]\nfoo = 1\n", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := Parse([]byte(tt.text)); err == nil {
				t.Fatalf("Parse(%q): no error", tt.text)
			}
			c, err := Bearing([]byte(tt.text))
			if (err == nil) != tt.ok || tt.ok && c.Tmux.Socket != "mine" {
				t.Errorf("Bearing(%q) = %+v, %v", tt.text, c.Tmux, err)
			}
		})
	}
}

// TestHarm: an unknown key that can't be about how an agent runs, not even as a slip or in
// the wrong table, is ignored; any other mistake leaves agents down. What may have been
// turned off in the file is off.
func TestHarm(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       Harm
		ok         func(Config) bool
	}{
		{"nothing", "[watchdog]\nhang = \"15s\"\n", 0, nil},
		{"a slip", "[watchdog]\nhang = \"15s\"\nhangg = 3\n[codex]\nsandbox = \"read-only\"\n", Ignored, func(c Config) bool {
			return c.Watchdog.Hang.Seconds() == 15 && c.Codex.Sandbox == "read-only" && c.Watchdog.Wakes == 0 && c.Dashboard.Answer && c.Records.Keep.Duration > 0
		}},
		{"a slip of the records'", "[records]\nkeeep = \"9000h\"\n", Ignored, func(c Config) bool { return c.Records.Keep.Duration == 0 && c.Dashboard.Listen != "" }},
		{"a slip of the dashboard's", "[dashboard]\nanswr = false\n", Ignored, func(c Config) bool { return !c.Dashboard.Answer && c.Dashboard.Listen == "" }},
		{"the dashboard's in another table", "[watchdog]\nlisten = \"\"\n", Ignored, func(c Config) bool { return c.Dashboard.Listen == "" }},
		{"a slip of the ways'", "[escalate]\ncomand = [\"x\"]\n", Ignored, nil},
		{"a strange key", "[owner]\nfoo = 1\n", Ignored, nil},
		{"a slip of the sandbox", "[codex]\nsandbx = \"read-only\"\n", Parts, func(c Config) bool { return c.Watchdog.Wakes == 5 && c.Dashboard.Answer }},
		{"the sandbox in another table", "[watchdog]\nsandbox = \"read-only\"\n", Parts, nil},
		{"the same, misspelled", "[dashboard]\npermision_mode = \"plan\"\n", Parts, nil},
		{"in a table of another", "[watchdog.codex]\nsandbox = \"read-only\"\n", Parts, nil},
		{"in an unknown table of another", "[watchdog.foo]\nsandbox = \"read-only\"\n", Parts, nil},
		{"inline", "[watchdog]\nfoo = {sandbox = \"read-only\"}\n", Parts, nil},
		{"an agent's", "[agents.1]\nmodell = \"m\"\n", Parts, nil},
		{"an unknown table", "[codx]\nsandbox = \"read-only\"\n", Parts, func(c Config) bool { return c.Watchdog.Wakes == 0 && c.Dashboard.Listen == "" }},
		{"no table", "sandbox = \"read-only\"\n", Parts, nil},
		{"a slip and worse", "[watchdog]\nhangg = 3\n[codex]\nsandbx = \"read-only\"\n", Parts, nil},
		{"a bad value", "[watchdog]\nhang = 3\n[escalate]\ndesktop = true\n", Parts, func(c Config) bool {
			return c.Watchdog.Wakes == 0 && c.Escalate.Desktop && c.Dashboard.Answer
		}},
		{"a value out of bounds", "[watchdog]\nwakes = -1\n[dashboard]\nanswer = false\n", Parts, func(c Config) bool { return c.Watchdog.Wakes == 0 && !c.Dashboard.Answer }},
		{"of the bus", "[bus]\nkep = \"9000h\"\n", Whole, func(c Config) bool { return c.Records.Keep.Duration == 0 }},
		{"no TOML", "[agents\n", Whole, func(c Config) bool { return c.Watchdog.Wakes == 0 && c.Dashboard.Listen == "" && !c.Dashboard.Answer }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, harm, err := parse([]byte(tt.text))
			if harm != tt.want || (err == nil) != (harm == 0) || tt.ok != nil && !tt.ok(c) {
				t.Errorf("parse(%q) = %d, %v, %+v", tt.text, harm, err, c)
			}
		})
	}
}

// FuzzParse: whatever stands in the file, it is read or refused.
func FuzzParse(f *testing.F) {
	f.Add(Sample)
	f.Add([]byte("[agents]\nclones = 2\n[agents.1]\nruntime = \"demo\"\n"))
	f.Add([]byte("[agents.1]\n[agents.agent1]\n"))
	f.Add([]byte("agents = 3\n"))
	f.Add([]byte("[runtime.x]\ncommand = [\"a\"]\n[bus]\nkeep = \"1h\"\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Parse(data)
		if part, unknown := Bearing(data); err == nil && (unknown != nil || part.Tmux != c.Tmux || part.Bus != c.Bus) {
			t.Errorf("Bearing(%q) = %+v, %+v, %v, want what the whole file says", data, part.Tmux, part.Bus, unknown)
		}
		if err == nil && (c.Agents.Clones < 0 || c.Bus.MaxBytes <= 0 || c.Bus.Keep.Duration <= 0 || c.Watchdog.Tick.Duration <= 0) {
			t.Errorf("Parse(%q) = %+v", data, c)
		}
	})
}

// TestSampleConfigHasEveryKey takes the comment signs off what init writes: it
// must still be read, and name each key that there is, but for those that have
// no effect yet.
func TestSampleConfigHasEveryKey(t *testing.T) {
	var lines []string
	for line := range strings.Lines(string(Sample)) {
		bare, commented := strings.CutPrefix(line, "# ")
		if commented && (strings.HasPrefix(bare, "[") || strings.Contains(bare, " = ")) {
			line = bare
		}
		lines = append(lines, line)
	}
	got := testworld.Got(Parse([]byte(strings.Join(lines, ""))))(t)
	want := Default()
	got.Agent, got.Runtime, got.Host, got.Price = nil, nil, nil, nil
	// Written out, an empty list is a list.
	for _, list := range []*[]string{&got.Agents.Addendum, &got.Claude.MCP} {
		if len(*list) == 0 {
			*list = nil
		}
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the values that init writes are\n%+v, the defaults\n%+v", got, want)
	}
	text := string(Sample)
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Config]()) {
		if f.Type.Kind() != reflect.Struct {
			continue
		}
		for _, key := range reflect.VisibleFields(f.Type) {
			name := key.Tag.Get("toml")
			idle := f.Name+"."+name == "Agents.turns_per_hour"
			if strings.Contains(text, "# "+name+" = ") == idle {
				t.Errorf("%s.%s: in what init writes: %v, has no effect: %v", f.Name, name, idle, idle)
			}
		}
	}
}
