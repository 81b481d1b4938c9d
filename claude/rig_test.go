package claude_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"netsky/agent"
	"netsky/claude"
	"netsky/home"
	"netsky/internal/testworld"
)

// A rig is a home, a work directory, a configuration directory of Claude Code's
// and a program named claude.
type rig struct {
	testing.TB
	ctx     context.Context
	home    home.Dir
	work    string
	config  string // CLAUDE_CONFIG_DIR
	bin     string
	env     []string
	options claude.Options
	runtime *claude.Runtime
}

func mustRig(tb testing.TB) *rig {
	tb.Helper()
	h := testworld.Home(tb)
	root := filepath.Dir(h.Root())
	g := &rig{
		TB: tb, home: h, work: filepath.Join(root, "work"), config: filepath.Join(root, "config"), bin: filepath.Join(root, "bin"),
	}
	for _, d := range []string{g.work, g.config, g.bin} {
		testworld.Must(tb, os.Mkdir(d, 0o700))
	}
	var cancel context.CancelFunc
	g.ctx, cancel = context.WithTimeout(context.Background(), 3*testworld.Patience)
	tb.Cleanup(cancel)
	g.env = []string{"PATH=" + g.bin + ":/usr/bin:/bin", "HOME=" + root, "CLAUDE_CONFIG_DIR=" + g.config, "TERM=xterm-256color"}
	g.fresh()
	return g
}

// fresh gives the rig a runtime that remembers nothing.
func (g *rig) fresh() *claude.Runtime {
	g.runtime = &claude.Runtime{
		Home: g.home, Binary: "/opt/net sky/netsky", Options: func(agent.ID) claude.Options { return g.options },
		Managed: filepath.Join(filepath.Dir(g.config), "managed"),
	}
	return g.runtime
}

// mustFake makes the rig's program a script: it prints its version, answers
// "auth status" with that shell command, and notes each of its runs.
func (g *rig) mustFake(version, auth string) {
	g.Helper()
	testworld.Program(g, filepath.Join(g.bin, "claude"), fmt.Sprintf(`#!/bin/sh
echo "$*" >> %q
case $1 in
--version) echo "%s (Claude Code)" ;;
auth) %s ;;
*) exit 9 ;;
esac
`, g.runsFile(), version, auth))
	g.fresh()
}

func (g *rig) runsFile() string { return filepath.Join(g.bin, "runs") }

// runs is how the fake has been run, one line each.
func (g *rig) runs() string {
	data, _ := os.ReadFile(g.runsFile())
	return string(data)
}

func (g *rig) mustWrite(file, text string) {
	g.Helper()
	testworld.Must(g, os.MkdirAll(filepath.Dir(file), 0o700))
	testworld.Must(g, os.WriteFile(file, []byte(text), 0o600))
}

// launch is that of a start of the agent, with a prompt on file.
func (g *rig) launch(id agent.ID) agent.Launch {
	g.Helper()
	testworld.Must(g, g.home.WriteFile(home.PromptFile(id), []byte("You are "+string(id)+".\n"), false))
	return agent.Launch{
		Agent: id, Start: agent.NewStart(), Runtime: "claude", Dir: g.work,
		PromptFile: g.home.Path(home.PromptFile(id)), Env: append([]string{}, g.env...),
	}
}

// mustPrepare prepares a launch.
func (g *rig) mustPrepare(id agent.ID) agent.Launch {
	g.Helper()
	l := g.launch(id)
	testworld.Must(g, g.runtime.Prepare(g.ctx, &l), "Prepare(%s)", id)
	return l
}

// read is a JSON file of the agent's mailbox.
func (g *rig) read(id agent.ID, name string) map[string]any {
	g.Helper()
	data := testworld.Got(g.home.ReadFile(home.Mailbox(id)+"/"+name, 1<<20))(g)
	return mustObject(g, data)
}

// mustObject is a JSON object with its numbers as they are written.
func mustObject(tb testing.TB, data []byte) (v map[string]any) {
	tb.Helper()
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		tb.Fatalf("%v\n%s", err, data)
	}
	return v
}

// converse writes a conversation as Claude Code would have.
func (g *rig) converse(session, text string) string {
	g.Helper()
	file := filepath.Join(g.config, "projects", "-work", session+".jsonl")
	g.mustWrite(file, text)
	return file
}

const aTurn = `{"type":"mode","mode":"normal"}` + "\n" + `{"parentUuid":null,"type":"user","message":{"role":"user","content":"hi"}}` + "\n"

// word is what follows an option in a command line; "" if it is not there.
func word(argv []string, option string) string {
	for i, w := range argv {
		if w == option && i+1 < len(argv) {
			return argv[i+1]
		}
	}
	return ""
}

// loggedIn answers the question for a login with yes.
const loggedIn = `echo '{"loggedIn": true}'`

// mustMention fails unless an error says all these words.
func mustMention(tb testing.TB, what string, err error, words ...string) {
	tb.Helper()
	if err == nil {
		tb.Errorf("%s = nil, want an error with %q", what, words)
		return
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			tb.Errorf("%s = %q, want %q in it", what, err, w)
		}
	}
}
