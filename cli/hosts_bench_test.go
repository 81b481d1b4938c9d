package cli_test

import (
	"os"
	"testing"
	"time"

	"netsky/internal/testworld"
)

// BenchmarkOn times `netsky --on HOST status` against `ssh HOST true`, both on a kept connection, the two in
// turn: to this machine, and to one that is 20 ms away.
func BenchmarkOn(b *testing.B) {
	for name, away := range map[string]time.Duration{"here": 0, "away": 20 * time.Millisecond} {
		b.Run(name, func(b *testing.B) {
			here, there := mustWorld(b), mustWorld(b)
			s := testworld.StartSSHD(b, append(there.env, "PATH="+os.Getenv("PATH"))...)
			s.Delay = away / 2
			here.env = append(here.env, "PATH="+s.Bin+":"+os.Getenv("PATH"))
			run := func(name string, args ...string) func() {
				return func() { testworld.Must(b, here.command(b.Context(), name, args...).Run(), name) }
			}
			kept := "ControlPath=" + here.dir + "/kept"
			run(s.Bin+"/ssh", "-f", "-N", "-o", "ControlMaster=yes", "-o", "ControlPersist=10m", "-o", kept, "build1")()
			there.must(b, "netsky", "init")
			here.must(b, "netsky", "init")
			here.must(b, "netsky", "--on", "build1", "status")
			compare(b, run("netsky", "--on", "build1", "status"), run(s.Bin+"/ssh", "-o", kept, "build1", "true"))
		})
	}
}
