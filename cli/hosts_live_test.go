//go:build live

package cli_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"netsky/attention"
	"netsky/internal/testworld"
)

// away waits until netsky on the owner's host shows a question with that text, and returns its code.
func (w *world) away(t *testing.T, text string) (code string) {
	t.Helper()
	testworld.Wait(t, fmt.Sprintf("a question about %q", text), func() bool {
		var list struct{ Needs []attention.Need }
		testworld.Must(t, json.Unmarshal([]byte(w.must(t, "netsky", "needs", "--json")), &list))
		for _, n := range list.Needs {
			if n.Kind == attention.Approval && strings.Contains(n.Text, text) {
				code = n.Code
			}
		}
		return code != ""
	})
	return code
}

// What the real Claude Code and Codex ask on another host is answered on the owner's: by the
// verb, with a click on the page, and by the phone. It takes effect there, once.
func TestHostsApprovals(t *testing.T) {
	t.Parallel()
	laptop, build1 := mustPhone(t, "[host.build1]\n"), mustWorld(t)
	build1.addClaude(t)
	build1.addCodex(t)
	build1.config(t, "[claude]\npermission_mode = \"manual\"\n[codex]\nsandbox = \"workspace-write\"\napproval = \"on-request\"\n")
	s := testworld.StartSSHD(t, append([]string{"PATH=" + os.Getenv("PATH")}, build1.env...)...)
	laptop.prepend(s.Bin)
	laptop.must(t, "netsky", "link", "serve", "--name", "laptop")
	laptop.must(t, "netsky", "link", "invite", "build1", "--yes")
	build1.mustUp(t, "agent", "1", "--type", "claude", "--dir", filepath.Join(build1.dir, "src"))
	build1.mustUp(t, "agent", "2", "--type", "codex")
	laptop.mustShow(t, "status", "agent1@build1", "agent2@build1")
	p := mustPage(t)
	p.open(laptop.link(t))
	p.shows("agent1@build1", "agent2@build1")

	for _, tt := range []struct{ how, agent, order string }{
		{"verb", "agent1@build1", "loop: shell touch "},
		{"denied", "agent1@build1", "loop: shell touch "},
		{"page", "agent1@build1", "loop: shell touch "},
		{"phone", "agent1@build1", "loop: shell touch "},
		{"verb", "agent2@build1", "loop: ask touch "},
		{"page", "agent2@build1", "loop: ask touch "},
		{"phone", "agent2@build1", "loop: ask touch "},
	} {
		file := filepath.Join(build1.dir, tt.agent+"-"+tt.how)
		id := laptop.mustSend(t, tt.agent, tt.order+file)
		code := laptop.away(t, "touch "+file)
		if !strings.HasSuffix(code, "@build1") {
			t.Errorf("the code is %s", code)
		}
		button := fmt.Sprintf(`[...document.querySelectorAll("form")].find(f => f.code && f.code.value == %q)?.querySelector("button")`, code)
		switch tt.how {
		case "verb":
			laptop.must(t, "netsky", "approve", code)
		case "denied":
			laptop.must(t, "netsky", "approve", code, "--deny")
		case "page":
			testworld.Wait(t, "the page asks", func() bool { return p.eval(button) != "undefined" })
			p.eval(button + ".click()")
		case "phone":
			laptop.gets("yes " + code + " or no " + code)
			laptop.says("yes " + code)
		}
		laptop.mustOne(t, id)
		testworld.Equal(t, testworld.Err(os.Stat(file)) == nil, tt.how != "denied", "%s of %s: the command ran", tt.how, tt.agent)
		testworld.Wait(t, "nothing is asked any more", func() bool { return !strings.Contains(laptop.must(t, "netsky", "needs"), code) })
		testworld.Wait(t, "nothing to click", func() bool { return p.eval(button) == "undefined" })
		if out, err := laptop.command(t.Context(), "netsky", "approve", code).CombinedOutput(); err == nil {
			t.Errorf("%s counted twice: %s", code, out)
		}
		by := map[string]string{
			"verb": "allowed by the owner, with netsky approve", "denied": "denied by the owner, with netsky approve",
			"page": "answered in the dashboard, allowed by the owner", "phone": "allowed by the owner, with the phone",
		}[tt.how]
		decided := func(line, by string) bool { return strings.Contains(line, by) && strings.Contains(line, "touch "+file) }
		log := ""
		testworld.WaitOr(t, func() bool {
			log = laptop.must(t, "netsky", "log")
			lines := strings.Split(log, "\n")
			return slices.ContainsFunc(lines, func(l string) bool { return decided(l, by+": ") }) &&
				slices.ContainsFunc(lines, func(l string) bool { return decided(l, "approval@build1") })
		}, func() string { return "the decision of both hosts in the log:\n" + log })
	}
}
