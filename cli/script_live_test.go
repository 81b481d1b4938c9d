//go:build live

package cli_test

// These scripts start many netskies, or need more than Go, git and tmux.
func init() { scripts = append(scripts, "testdata/script/live/*.txtar") }
