package view_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/cli/view"
	"netsky/codex"
	"netsky/home"
	"netsky/internal/proc"
	"netsky/internal/testworld"
	"netsky/spawn"
	"netsky/tmux"
	shown "netsky/view"
	"netsky/watch/backoff"
	"netsky/watch/hang"
)

// A scene is a home in which each observation is an agent of its own. What they share is
// what one home has: a tmux server, and the locks of other processes.
type scene struct {
	*testing.T
	home home.Dir
	bus  *bus.Bus
	l    *spawn.Launcher
	list []*observation // agent1, agent2, …
	dead proc.Process
	// screens are the recorded ones, by directory and name.
	screens map[string]map[string]string
}

// classify returns what status says of each observation.
func classify(t *testing.T, list []*observation) map[*observation]shown.Agent {
	t.Helper()
	dead := mustDie(t)
	screens := map[string]map[string]string{"claude/": testworld.Files(t, "screens/claude"), "codex/": testworld.Files(t, "screens/codex")}
	scenes := make(map[string]*scene)
	for _, o := range list {
		key := o.Tmux + "|" + o.Lock
		if o.Typed != "" { // a demo's limit is the whole home's
			key = o.Name
		}
		if scenes[key] == nil {
			scenes[key] = &scene{T: t, dead: dead, screens: screens}
		}
		scenes[key].list = append(scenes[key].list, o)
	}
	var mu sync.Mutex
	said := make(map[*observation]shown.Agent)
	var all sync.WaitGroup
	for _, s := range scenes {
		s.open()
		all.Go(func() {
			for o, a := range s.classify() {
				mu.Lock()
				said[o] = a
				mu.Unlock()
			}
		})
	}
	all.Wait()
	return said
}

// mustDie returns a process that has ended.
func mustDie(t *testing.T) proc.Process {
	t.Helper()
	cmd := exec.Command("/bin/sh", "-c", "echo; read x")
	in := testworld.Got(cmd.StdinPipe())(t)
	p := testworld.Start(t, cmd)
	in.Close()
	testworld.Wait(t, "the process ends", p.Gone)
	return p
}

func (s *scene) open() {
	s.home = testworld.FastHome(s.T)
	s.bus = testworld.Bus(s.T, s.home)
	top := filepath.Dir(s.home.Root())
	s.must(os.Mkdir(filepath.Join(top, "bin"), 0o700))
	testworld.Program(s.T, filepath.Join(top, "bin", "tmux"), s.tmux())
	s.l = spawn.New(spawn.Site{Home: s.home, Bus: s.bus, Tmux: &tmux.Server{
		Socket: filepath.Join(top, "s"), Env: []string{"PATH=" + filepath.Join(top, "bin") + ":/usr/bin:/bin"}, Tags: []string{spawn.TagHome, spawn.TagStart},
	}})
}

// tmux is a program that answers list-panes as tmux 3.3a does.
func (s *scene) tmux() string {
	switch s.list[0].Tmux {
	case "silent":
		return "#!/bin/sh\nexec sleep 1000\n"
	case "none":
		return "#!/bin/sh\necho 'no server running on /tmp/s' >&2\nexit 1\n"
	}
	var b strings.Builder
	b.WriteString("#!/bin/sh\nfor f; do :; done\nb=${f%% *}\nsed \"s|^|$b |; s|$| $b|\" <<'EOF'\n")
	counted := func(v string) string { return fmt.Sprintf("%d:%s", len(v), v) }
	for i, o := range s.list {
		start := startOf(i)
		switch o.Session {
		case "none":
			continue
		case "other":
			start = "ffff" + start[4:]
		}
		fmt.Fprintf(&b, "1-1 $%d @%d %%%d %d 200 50 0 0 0 %d 0 %s %s %s %s netsky\n", i, i, i, os.Getpid(), time.Now().Add(-time.Minute).Unix(),
			counted(string(agent.Clone(i+1))), counted("x"), counted(s.home.Root()), counted(start))
	}
	b.WriteString("EOF\n")
	return b.String()
}

func startOf(i int) string { return fmt.Sprintf("%016x", i+1) }

// classify makes all observations, then looks at them once.
func (s *scene) classify() map[*observation]shown.Agent {
	ctx, cancel := context.WithTimeout(s.Context(), testworld.Patience)
	defer cancel()
	var all sync.WaitGroup
	atOnce := make(chan struct{}, 8)
	for _, fresh := range []bool{false, true} { // what was started just now comes last
		for i, o := range s.list {
			if fresh != (o.Started != 0) {
				continue
			}
			all.Go(func() {
				atOnce <- struct{}{}
				defer func() { <-atOnce }()
				s.stage(i).observe(ctx)
			})
		}
		all.Wait()
	}
	for i, o := range s.list { // a dialog that nobody has seen for long is none any more
		if o.Runtime == "codex" && o.Screen != "" {
			s.stage(i).overlay()
		}
	}
	if name := map[string]string{"up": home.UpLock, "watchdog": home.WatchdogLock}[s.list[0].Lock]; name != "" {
		s.mustLock(name)
	}
	if s.list[0].Tmux == "silent" {
		ctx, cancel = context.WithTimeout(ctx, time.Second)
		defer cancel()
	}
	v := view.Collect(ctx, view.Options{Launcher: s.l, Unread: func() (int, int, error) { return 0, 0, nil }})
	said := make(map[*observation]shown.Agent)
	for _, a := range v.Agents {
		n, _ := a.ID.Number()
		said[s.list[n-1]] = a
	}
	return said
}

func (s *scene) mustLock(name string) {
	s.Helper()
	lock, err := s.home.Lock(name)
	if err != nil {
		s.Errorf("lock %s: %v", name, err)
		return
	}
	s.Cleanup(func() { lock.Unlock() })
}

func (s *scene) must(err error) {
	s.Helper()
	testworld.Equal(s, err, nil)
}

// A stage is one agent of a scene.
type stage struct {
	*scene
	o     *observation
	id    agent.ID
	start string
}

func (s *scene) stage(i int) *stage {
	return &stage{scene: s, o: s.list[i], id: agent.Clone(i + 1), start: startOf(i)}
}

func (s *stage) dir() string { return filepath.Join(filepath.Dir(s.home.Root()), string(s.id)) }

// observe makes what can be seen of the agent, and lets those report its state who do.
func (s *stage) observe(ctx context.Context) {
	o := s.o
	s.must(s.bus.Make(s.id))
	s.must(os.MkdirAll(s.dir(), 0o700))
	if o.Wanted != "none" {
		s.must(home.Desired(s.home).Set(string(s.id), o.Wanted != "down", "owner"))
	}
	began := time.Now().Add(-time.Minute).UnixMilli()
	if o.Started != 0 {
		began = time.Now().UnixMilli() + o.Started
	}
	switch launch := home.LaunchDir + "/" + string(s.id) + ".json"; o.Launch {
	case "":
		s.must(s.home.SaveLaunch(agent.Launch{
			Agent: s.id, Start: s.start, Runtime: o.Runtime, Dir: s.dir(), StartedMS: began,
			Env: []string{"HOME=" + s.dir(), "CLAUDE_CONFIG_DIR=" + s.dir(), "ANTHROPIC_API_KEY=sk-ant-" + s.start},
		}))
	case "torn":
		s.must(s.home.WriteFile(launch, []byte(`{"agent":"`), false))
	}
	s.keep(began)
	if o.Hang != nil {
		s.must(s.home.WriteFile(hang.Dir+"/"+string(s.id)+".json", s.json(o.Hang), false))
	}
	if o.Restarts != nil {
		d, err := home.Desired(s.home).Load(string(s.id))
		s.must(err)
		var r backoff.Record
		s.must(json.Unmarshal(s.json(o.Restarts), &r))
		r.WordMS = d.AtMS
		if r.Died == "" {
			r.Died = s.start
		}
		s.must(backoff.Save(s.home, s.id, r))
	}
	switch {
	case o.Typed != "":
		s.demo(ctx)
		return // it holds its mailbox itself
	case o.Wire != nil:
		s.codex(ctx)
	case o.Registry != nil || o.Events != nil || o.Runtime == "claude" && o.Screen != "":
		s.claude(ctx)
	case string(o.Report) == `"torn"`:
		s.must(s.home.WriteFile(home.ReportDir+"/"+string(s.id)+".json", []byte(`{"start":"`), false))
	case o.Report != nil:
		s.must(s.home.WriteFile(home.ReportDir+"/"+string(s.id)+".json", s.json(o.Report), false))
	}
	switch o.Receiver {
	case "":
		if o.Process == "" {
			s.mustLock(home.ReceiverLock(s.id))
		}
	case "gone":
		s.must(s.home.Save(home.LockDir+"/"+home.ReceiverLock(s.id), home.Holder{Process: s.dead, Program: "netsky io serve"}, false))
	}
}

// keep writes the keeper's record.
func (s *stage) keep(began int64) {
	self := proc.Self()
	k := agent.Keeper{Start: s.start, Process: self, Own: self, Program: s.o.Runtime, Version: "v", StartedMS: began}
	switch s.o.Process {
	case "dead":
		k.Process = s.dead
	case "reused":
		k.Start, k.Process = s.start, proc.Process{PID: self.PID, Start: self.Start - 1}
	case "unnamed":
		k.Process.Start = 0
	}
	ended := func() { k.EndedMS = time.Now().UnixMilli() - 1000 }
	switch how, arg, _ := strings.Cut(s.o.Keeper, " "); how {
	case "none":
		return
	case "torn":
		s.must(s.home.WriteFile(home.KeeperDir+"/"+string(s.id)+".json", []byte(`{"start":"0`), false))
		return
	case "before":
		k.Start, k.StartedMS = "ffff"+s.start[4:], began-1
		ended()
		status := 9
		k.Status = &status
	case "exited":
		status, err := strconv.Atoi(arg)
		s.must(err)
		ended()
		k.Status = &status
	case "signal":
		ended()
		k.Signal = arg
	case "lost":
		ended()
		k.Lost = arg
	case "killed":
		k.Own = s.dead
	}
	s.must(s.home.SaveKeeper(s.id, k))
}

// json fills in what an observation leaves to the moment: the start id, and times, which
// are relative.
func (s *stage) json(data json.RawMessage) []byte {
	var v any
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	s.must(d.Decode(&v))
	now := time.Now().UnixMilli()
	var fill func(v any) any
	fill = func(v any) any {
		switch v := v.(type) {
		case []any:
			for i := range v {
				v[i] = fill(v[i])
			}
		case map[string]any:
			for name, field := range v {
				v[name] = fill(field)
				n, isNumber := field.(json.Number)
				ms, err := n.Int64()
				if isNumber && err == nil && (name == "ms" || name == "statusUpdatedAt" || strings.HasSuffix(name, "_ms")) {
					v[name] = now + ms
				}
			}
			if v["start"] == nil && v["pid"] == nil {
				v["start"] = s.start
			}
		}
		return v
	}
	out, err := json.Marshal(fill(v))
	s.must(err)
	return out
}

// screen returns the recorded screen, in the pane of the observation.
func (s *stage) screen() string {
	if s.o.Screen == "" {
		return ""
	}
	dir, name := filepath.Split(s.o.Screen)
	text, ok := s.screens[dir][name]
	if !ok {
		s.Errorf("%s: no such screen", s.o.Screen)
	}
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if n := s.o.Rows; n > 0 {
		lines = lines[max(len(lines)-n, 0):]
	}
	for i, line := range lines {
		for _, c := range []string{"─", "▔"} {
			if more := s.o.Width - len([]rune(line)); more > 0 && strings.HasPrefix(line, c+c+c) && strings.HasSuffix(line, c) {
				lines[i] = strings.Repeat(c, more) + line
			}
		}
	}
	return strings.Join(lines, "\n") + "\n"
}

// overlay records the dialog on Codex's screen as the watchdog's look does.
func (s *stage) overlay() {
	d, ok := new(codex.Runtime).Dialog(s.screen(), agent.Launch{Agent: "agent1"})
	if !ok {
		return
	}
	now := time.Now().UnixMilli()
	s.must(s.home.Save("state/screens/"+string(s.id)+".json", map[string]any{
		"start": s.start, "name": d.Name, "text": d.Text, "since_ms": now, "seen_ms": now,
	}, false))
}
