package appserver_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"

	"netsky/codex/appserver"
	"netsky/internal/testworld"
)

func TestOverrides(t *testing.T) {
	t.Parallel()
	config := map[string]any{
		"n": int64(3), "yes": true, "text": "a \"b\"\n\t\\ <&> \x7f\x01 ü",
		"mcp_servers": map[string]any{"net sky": map[string]any{
			"command": "/x y", "args": []any{"a", "b=c"}, "env": map[string]any{"AGENT_N": "7"},
		}},
	}
	var got map[string]any
	testworld.Must(t, toml.Unmarshal([]byte(strings.Join(appserver.Overrides(config), "\n")), &got))
	if !reflect.DeepEqual(got, config) {
		t.Errorf("%v\nwant %v", got, config)
	}
	for _, tt := range []map[string]any{
		{"a": []string{"x"}, "e": map[string]string{"k": "v"}},
		{"a": []any{"x"}, "e": map[string]any{"k": "v", "none": nil}},
	} {
		if got, want := strings.Join(appserver.Overrides(tt), " "), `a=["x"] e={"k"="v"}`; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
