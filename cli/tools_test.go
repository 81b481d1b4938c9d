//go:build live

package cli_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"netsky/internal/testworld"
)

// mustTools starts the server of an agent's tools, and returns what calls one and returns what it says.
func (w *world) mustTools(t *testing.T, n string) func(tool, args string) (text string, failed bool) {
	t.Helper()
	cmd := w.command(t.Context(), "netsky", "io", "serve", "--tools-only")
	cmd.Env = append(cmd.Env, "AGENT_N="+n)
	in, err := cmd.StdinPipe()
	testworld.Must(t, err)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	testworld.Must(t, err)
	t.Cleanup(func() {
		in.Close()
		if err := cmd.Wait(); err != nil && t.Context().Err() == nil {
			t.Errorf("io serve: %v", err)
		}
	})
	lines, id := bufio.NewScanner(out), 0
	lines.Buffer(nil, 1<<20)
	ask := func(method, params string) string {
		t.Helper()
		id++
		testworld.Got(fmt.Fprintf(in, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`+"\n", id, method, params))(t)
		for lines.Scan() {
			if strings.Contains(lines.Text(), fmt.Sprintf(`"id":%d`, id)) {
				return lines.Text()
			}
		}
		t.Fatal("no answer: ", lines.Err())
		return ""
	}
	ask("initialize", `{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}`)
	fmt.Fprintln(in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return func(tool, args string) (string, bool) {
		t.Helper()
		var r struct {
			Result struct {
				Content []struct{ Text string }
				IsError bool
			}
			Error *struct{ Message string }
		}
		testworld.Must(t, json.Unmarshal([]byte(ask("tools/call", fmt.Sprintf(`{"name":%q,"arguments":%s}`, tool, args))), &r))
		if r.Error != nil {
			return r.Error.Message, true
		}
		text := ""
		for _, c := range r.Result.Content {
			text += c.Text
		}
		return text, r.Result.IsError
	}
}

// What a model's tools say of the team is what was done: an objective that was not sent is not
// passed over, and what keeps an agent from starting is named.
func TestToolsManage(t *testing.T) {
	t.Parallel()
	w := mustWorld(t)
	w.must(t, "netsky", "up", "0", "--type", "demo", "--no-attach")
	call := w.mustTools(t, "0")
	if text, bad := call("agent_start", `{"agent":"1","objective":"first"}`); bad || !strings.Contains(text, "agent1 is up") {
		t.Fatalf("start: %s", text)
	}
	for n := 0; ; n++ { // until the brake refuses the text
		text, bad := call("agent_start", `{"agent":"1","objective":"once more"}`)
		if bad {
			if !strings.Contains(text, "agent1 was already up") || !strings.Contains(text, "objective: not sent") {
				t.Errorf("start: %s", text)
			}
			break
		}
		if n == 100 {
			t.Fatal("the brake refuses nothing")
		}
	}
	if text, bad := call("agent_stop", `{"agent":"1"}`); bad || !strings.Contains(text, "agent1: ended") {
		t.Errorf("stop: %s", text)
	}
	testworld.Must(t, os.WriteFile(filepath.Join(w.home, "netsky.toml"), []byte("[agents]\nclones = \"many\"\n"), 0o600))
	if text, bad := call("agent_start", `{"agent":"1"}`); !bad || !strings.Contains(text, "clones") {
		t.Errorf("start: %s", text)
	}
}
