package appserver

import (
	"encoding/json"
	"reflect"
	"testing"

	"netsky/agent"
	"netsky/internal/testworld"
)

// What a request holds is shown whole, and what needs more than a yes takes none.
func TestAsked(t *testing.T) {
	running := item{ID: "i-1", Type: "fileChange"}
	testworld.Must(t, json.Unmarshal([]byte(`[{"path":"/w/a","kind":{"type":"update","move_path":"/w/b"},"diff":"-x\n+y"}]`), &running.Changes))
	find := func(_, id string) item {
		if id == "i-1" {
			return running
		}
		return item{}
	}
	for _, tt := range []struct {
		name, method, params string
		want                 Approval
		yes, no              string // the answers; "" is not looked at
	}{
		{"command", "item/commandExecution/requestApproval", `{"itemId":"i-0","command":"ls\n  rm x","cwd":"/w","reason":"why","availableDecisions":["accept"],"networkApprovalContext":{"host":"evil"}}`,
			Approval{Tool: "shell", Text: "ls\n  rm x", Reason: "why", Dir: "/w", Fields: []agent.Field{{Name: "networkApprovalContext", Text: `{"host":"evil"}`}}},
			`{"decision":"accept"}`, `{"decision":"decline"}`},
		{"command that nobody has seen", "item/commandExecution/requestApproval", `{"itemId":"i-0"}`,
			Approval{Tool: "shell", Only: "Codex has not said which command"}, "", ""},
		{"edit", "item/fileChange/requestApproval", `{"itemId":"i-1","grantRoot":"/etc","reason":null}`,
			Approval{Tool: "edit", Fields: []agent.Field{{Name: "update /w/a, moved to /w/b", Text: "-x\n+y\n"}, {Name: "grantRoot", Text: "/etc"}}},
			`{"decision":"accept"}`, `{"decision":"decline"}`},
		{"edit that nobody has seen", "item/fileChange/requestApproval", `{"itemId":"i-2"}`,
			Approval{Tool: "edit", Only: "Codex has not said which files change, and how"}, "", ""},
		{"tool", "mcpServer/elicitation/request", `{"serverName":"s","message":"Allow it?","_meta":{"codex_approval_kind":"mcp_tool_call","tool_name":"t","tool_params":{"to":"a\nb","n":2}},"requestedSchema":{"type":"object","properties":{}}}`,
			Approval{Tool: "s.t", Text: "Allow it?", Fields: []agent.Field{{Name: "to", Text: "a\nb"}, {Name: "n", Text: "2"}}},
			`{"_meta":null,"action":"accept","content":{}}`, `{"_meta":null,"action":"decline","content":null}`},
		{"form", "mcpServer/elicitation/request", `{"serverName":"s","message":"Your name?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}}`,
			Approval{Tool: "s", Text: "Your name?", Only: "it is a form of the MCP server s to fill in", Fields: []agent.Field{{Name: "name", Text: `{"type":"string"}`}}}, "", ""},
		{"approval with a field", "mcpServer/elicitation/request", `{"serverName":"s","message":"m","_meta":{"codex_approval_kind":"mcp_tool_call","tool_name":"t"},"requestedSchema":{"properties":{"x":{}}}}`,
			Approval{Tool: "s.t", Text: "m", Only: "it is a form of the MCP server s to fill in", Fields: []agent.Field{{Name: "x", Text: "{}"}}}, "", ""},
		{"question", "item/tool/requestUserInput", `{"questions":[{"header":"Color","question":"Which?","options":[{"label":"red","description":"warm"},{"label":"blue"}]}]}`,
			Approval{Tool: "question", Only: "it is a question with a choice of answers", Fields: []agent.Field{{Name: "Color", Text: "Which?\n- red: warm\n- blue"}}}, "", ""},
		{"permissions", "item/permissions/requestApproval", `{"permissions":{"network":{"enabled":true}}}`,
			Approval{Tool: "permissions", Only: "netsky never grants more rights for the rest of a turn", Fields: []agent.Field{{Name: "permissions", Text: `{"network":{"enabled":true}}`}}}, "", ""},
	} {
		q := asked(tt.method, []byte(tt.params), find)
		if q == nil || !reflect.DeepEqual(q.approval, tt.want) {
			t.Errorf("%s: %+v, want %+v", tt.name, q.approval, tt.want)
			continue
		}
		for d, want := range map[Decision]string{Accept: tt.yes, Decline: tt.no} {
			if got, _ := json.Marshal(q.answer(d)); want != "" && string(got) != want {
				t.Errorf("%s: the answer is %s, want %s", tt.name, got, want)
			}
		}
	}
}
