package anthropic_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
)

// serveReplies is an MCP server with one tool, reply, that writes what it was
// called with to the file LOOPMODEL_MCP.
func serveReplies(in io.Reader, out io.Writer) {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var call struct {
			ID     json.RawMessage
			Method string
			Params struct {
				Arguments struct{ ID, Text string }
			}
		}
		if json.Unmarshal(lines.Bytes(), &call) != nil || call.ID == nil {
			continue
		}
		answer := map[string]any{"jsonrpc": "2.0", "id": call.ID}
		switch call.Method {
		case "initialize":
			answer["result"] = map[string]any{
				"protocolVersion": "2025-06-18", "capabilities": map[string]any{"tools": map[string]any{}},
				"serverInfo": map[string]any{"name": "agent", "version": "1"},
			}
		case "tools/list":
			answer["result"] = map[string]any{"tools": []any{map[string]any{
				"name": "reply", "inputSchema": map[string]any{"type": "object", "properties": map[string]any{
					"id": map[string]any{"type": "string"}, "text": map[string]any{"type": "string"},
				}},
				"_meta": map[string]any{"anthropic/alwaysLoad": true},
			}}}
		case "tools/call":
			note(call.Params.Arguments.ID, call.Params.Arguments.Text)
			answer["result"] = map[string]any{"content": []any{map[string]any{"type": "text", "text": "sent"}}}
		default:
			answer["error"] = map[string]any{"code": -32601, "message": "no such method"}
		}
		data, _ := json.Marshal(answer)
		fmt.Fprintf(out, "%s\n", data)
	}
}

func note(id, text string) {
	f, err := os.OpenFile(os.Getenv("LOOPMODEL_MCP"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	defer f.Close()
	fmt.Fprintf(f, "%s %q\n", id, text)
}
