package sdkenv_test

import (
	"os"
	"os/exec"
	"testing"

	_ "github.com/modelcontextprotocol/go-sdk/mcp"

	_ "netsky/bus/mcp/sdkenv"
)

// TestMain tells what is left of the variable, in a process of its own: this
// program has the library too.
func TestMain(m *testing.M) {
	if os.Getenv("SDKENV_TELL") != "" {
		os.Stdout.WriteString(os.Getenv("MCPGODEBUG"))
		return
	}
	os.Exit(m.Run())
}

func TestMalformedVariable(t *testing.T) {
	for _, tt := range []struct{ value, want string }{
		{"", ""},
		{"x", ""},
		{"a=1,x", ""},
		{"a=1,", ""},
		{",a=1", ""},
		{",", ""},
		{"=", "="},
		{"a=1", "a=1"},
		{"a=1,b=2=3", "a=1,b=2=3"},
		{" a = , b=2", " a = , b=2"},
	} {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "SDKENV_TELL=1", "MCPGODEBUG="+tt.value)
		if out, err := cmd.CombinedOutput(); err != nil || string(out) != tt.want {
			t.Errorf("MCPGODEBUG=%q: %v, %q is left, want %q", tt.value, err, out, tt.want)
		}
	}
}
