package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"netsky/agent"
	"netsky/config"
	"netsky/fleet/plan"
	"netsky/spawn"
)

type vendor string

func (v vendor) Name() string                               { return string(v) }
func (vendor) Check(context.Context, agent.Launch) error    { panic("decide reads nothing") }
func (vendor) Prepare(context.Context, *agent.Launch) error { panic("decide changes nothing") }

// Every kind of start, and everything for which one is refused or for which the owner is asked.
func TestDecide(t *testing.T) {
	t.Parallel()
	id := func(n int) agent.ID { return agent.Clone(n) }
	on := func(v vendor, ids ...agent.ID) (list []spawn.Plan) {
		for _, id := range ids {
			list = append(list, spawn.Plan{Agent: id, Runtime: v, Dir: "/src"})
		}
		return list
	}
	is := func(id agent.ID, state agent.State, runtime, dir string) spawn.Status {
		return spawn.Status{Agent: id, State: state, Runtime: runtime, Dir: dir, Start: "s"}
	}
	many := make([]agent.ID, 51)
	for i := range many {
		many[i] = id(i + 1)
	}
	login := errors.New("not logged in")
	prevented := func(err error, ids ...agent.ID) map[agent.ID]spawn.Found {
		found := make(map[agent.ID]spawn.Found)
		for _, id := range ids {
			found[id] = spawn.Found{Errs: []error{err}}
		}
		return found
	}
	wide := plan.Room{PTYs: -1}
	for name, tt := range map[string]struct {
		all     []spawn.Plan
		prep    spawn.Preparation
		look    look
		request StartRequest
		actor   agent.ID // "": the owner
		given   bool     // netsky.toml says what agents may do
		// What is decided: who starts, who stays on another runtime, and the rest in words.
		starts, misplaced int
		refused, not      string // what is refused, and what is disobeyed
		asks              string
		partly, slow      bool
	}{
		"never started": {all: on("demo", agent.Root, id(1), agent.Infinity), starts: 3},
		"running":       {all: on("demo", id(1), id(2)), prep: spawn.Preparation{States: spawn.Statuses{is(id(1), agent.Idle, "demo", "/src")}}, starts: 1},
		"at a dialog, without permission mode": {all: on("claude", id(1)),
			prep: spawn.Preparation{States: spawn.Statuses{is(id(1), agent.Waiting, "claude", "/src")}}},
		"down":                      {all: on("demo", id(1)), prep: spawn.Preparation{States: spawn.Statuses{is(id(1), agent.Down, "demo", "/src")}}, starts: 1},
		"dead in its pane":          {all: on("demo", id(1)), prep: spawn.Preparation{States: spawn.Statuses{is(id(1), agent.Dead, "demo", "/src")}}, starts: 1},
		"dead too often":            {all: on("demo", id(1)), prep: spawn.Preparation{States: spawn.Statuses{is(id(1), agent.CrashLooping, "demo", "/src")}}, starts: 1},
		"neither up nor down":       {all: on("demo", id(1)), prep: spawn.Preparation{States: spawn.Statuses{is(id(1), agent.Unknown, "demo", "/src")}}},
		"down, on another runtime":  {all: on("codex", id(1)), prep: spawn.Preparation{States: spawn.Statuses{is(id(1), agent.Down, "claude", "/src")}}, request: StartRequest{Runtime: "codex"}, given: true, starts: 1},
		"running in its worktree":   {all: on("demo", id(1)), prep: spawn.Preparation{States: spawn.Statuses{is(id(1), agent.Idle, "demo", "/tree")}}, look: look{bases: map[agent.ID]string{id(1): "/src"}}},
		"running on another model":  {all: []spawn.Plan{{Agent: id(1), Runtime: vendor("claude"), Model: "opus"}}, prep: spawn.Preparation{States: spawn.Statuses{{Agent: id(1), State: agent.Idle, Runtime: "claude", Model: "sonnet"}}}},
		"dead, its conversation on": {all: []spawn.Plan{{Agent: id(1), Runtime: vendor("claude"), Resume: "c"}}, prep: spawn.Preparation{States: spawn.Statuses{is(id(1), agent.Dead, "claude", "/src")}}, given: true, starts: 1},

		"running on another runtime": {all: on("codex", id(1), id(2)), prep: spawn.Preparation{States: spawn.Statuses{is(id(1), agent.Busy, "claude", "/src")}}, request: StartRequest{Runtime: "codex", Dir: "/src"}, given: true,
			starts: 1, misplaced: 1, not: "agent1 runs on claude: left unchanged", partly: true},
		"all on another, with `auto`": {all: on("codex", id(1)), prep: spawn.Preparation{States: spawn.Statuses{is(id(1), agent.Busy, "claude", "/src")}}, request: StartRequest{Runtime: "auto"}},
		"running on another, which is not to be had": {all: on("codex", id(1)), prep: spawn.Preparation{States: spawn.Statuses{is(id(1), agent.Busy, "claude", "/src")}, Found: prevented(login, id(1))},
			request: StartRequest{Runtime: "codex"}, misplaced: 1, not: "can't be started on codex: agent1: not logged in", partly: true},
		"running on another, and the other can't be started": {all: on("codex", id(1), id(2)), prep: spawn.Preparation{States: spawn.Statuses{is(id(1), agent.Busy, "claude", "/src")}, Found: prevented(login, id(2))},
			request: StartRequest{Runtime: "codex"}, starts: 1, misplaced: 1, refused: "agent2: not logged in", not: "agent1 runs on claude"},
		"running elsewhere": {all: on("demo", id(1), id(2)), prep: spawn.Preparation{States: spawn.Statuses{is(id(1), agent.Idle, "demo", "/other")}}, look: look{bases: map[agent.ID]string{id(1): "/other"}},
			starts: 1, not: "agent1 works in /other: left unchanged", partly: true},

		"no such directory":                {all: on("demo", id(1)), look: look{noDir: errors.New("directory /x: no such file")}, request: StartRequest{Dir: "/x"}, refused: "--dir: directory /x: no such file; nothing was started or ended"},
		"a foreign session":                {all: on("demo", id(1), id(2)), prep: spawn.Preparation{Taken: map[agent.ID]error{id(2): &spawn.ForeignError{Session: "agent2"}}}, starts: 2, refused: "agent2: the session of that name belongs to something else"},
		"afresh, beside a person's pane":   {all: on("demo", id(1)), prep: spawn.Preparation{Taken: map[agent.ID]error{id(1): spawn.ErrPerson}}, request: StartRequest{Fresh: true}, starts: 1, refused: "not netsky's"},
		"prevented, all for one reason":    {all: on("claude", id(1), id(2)), prep: spawn.Preparation{Found: prevented(login, id(1), id(2))}, starts: 2, refused: "agent1: not logged in"},
		"prevented, but running":           {all: on("claude", id(1)), prep: spawn.Preparation{States: spawn.Statuses{is(id(1), agent.Idle, "claude", "/src")}}},
		"an account that serves nobody":    {all: on("claude", id(1)), look: look{unserved: map[agent.ID]string{id(1): "account a: usage limit"}}, given: true, starts: 1, asks: "told account a: usage limit"},
		"the same, for an agent":           {all: on("claude", id(1)), look: look{unserved: map[agent.ID]string{id(1): "account a: usage limit"}}, given: true, actor: agent.Root, starts: 1, refused: "agent1: not started, and nothing else was: account a: usage limit; ask again then", partly: true},
		"no permission mode":               {all: on("claude", id(1), id(2)), starts: 2, asks: "Claude Code", slow: true},
		"no permission mode, with --yes":   {all: on("claude", id(1)), request: StartRequest{Yes: true}, starts: 1, asks: "Claude Code"},
		"no permission mode, for an agent": {all: on("codex", id(1)), look: look{file: "/h/netsky.toml"}, actor: agent.Root, starts: 1, refused: "only the owner can set one: with their next `netsky up`, or as `sandbox` and `approval` under [codex] in /h/netsky.toml"},
		"a permission mode":                {all: on("claude", id(1)), given: true, starts: 1},
		"50 clones":                        {all: append(on("demo", many[:50]...), on("demo", agent.Root)...), starts: 51},
		"51 clones":                        {all: on("demo", many...), look: look{room: wide}, starts: 51, asks: "51 agents need about 102 processes", slow: true},
		"51 clones, with --yes":            {all: on("demo", many...), look: look{room: wide}, request: StartRequest{Yes: true}, starts: 51, asks: "51 agents need about 102 processes"},
		"51 clones, 9 processes":           {all: on("demo", many...), look: look{room: plan.Room{Processes: 9, PTYs: -1}}, request: StartRequest{Yes: true}, starts: 51, refused: "you may have 9"},
		"51 clones, 9 terminals":           {all: on("demo", many...), look: look{room: plan.Room{PTYs: 9}}, starts: 51, refused: "9 are left"},
		"a worktree not set up":            {all: on("demo", id(1)), look: look{unset: true, places: []plan.Place{{Agent: id(1), Apart: true}}}, starts: 1, asks: "setup", slow: true},
		"the same, agreed to":              {all: on("demo", id(1)), look: look{unset: true, agreed: true}, starts: 1, slow: true},
		"afresh":                           {all: on("demo", id(1)), prep: spawn.Preparation{States: spawn.Statuses{is(id(1), agent.Down, "demo", "/src")}}, request: StartRequest{Fresh: true}, starts: 1, slow: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := config.Default()
			if tt.given {
				for _, w := range config.Warrants() {
					w.Give(&c, w.Modes[1])
				}
			}
			tt.look.all, tt.look.prep = tt.all, &tt.prep
			if tt.actor == "" {
				tt.actor = agent.Owner
			}
			d := decide(tt.look, &c, tt.actor, tt.request)
			says := func(what string, err error, want string) {
				if (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
					t.Errorf("%s: %v, want %q", what, err, want)
				}
			}
			says("refused", d.refused, tt.refused)
			says("disobeyed", d.disobeyed, tt.not)
			if some := new(PartlyError); (errors.As(d.refused, &some) || errors.As(d.disobeyed, &some)) != tt.partly {
				t.Errorf("%v, %v: partly is not %v", d.refused, d.disobeyed, tt.partly)
			}
			if len(d.starting) != tt.starts || len(d.misplaced) != tt.misplaced || d.slow != tt.slow {
				t.Errorf("%d start, %d are misplaced, slow is %v", len(d.starting), len(d.misplaced), d.slow)
			}
			if d.refused == nil && !slices.EqualFunc(slices.Concat(d.plans, d.misplaced), tt.all, func(a, b spawn.Plan) bool {
				return slices.ContainsFunc(tt.all, func(p spawn.Plan) bool { return p.Agent == a.Agent && p.Resume == a.Resume && p.Model == a.Model })
			}) {
				t.Errorf("of %v, these are left: %v, %v", tt.all, d.plans, d.misplaced)
			}
			asks := fmt.Sprint(d.many)
			for _, w := range d.warrants {
				asks += w.Name
			}
			if d.agree {
				asks += "setup"
			}
			if d.told != "" {
				asks += "told " + d.told
			}
			if d.refused == nil && (!strings.HasPrefix(asks, tt.asks) || tt.asks == "" && asks != "") {
				t.Errorf("asks %q, want %q", asks, tt.asks)
			}
		})
	}
}
