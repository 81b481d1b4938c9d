package testworld

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A Repo is a git repository of a test's, with an author of its own, whatever the machine's
// configuration is.
type Repo struct {
	tb  testing.TB
	Dir string
}

// NewRepo makes a repository in the directory, on the branch main, with one commit of a.txt.
func NewRepo(tb testing.TB, dir string) Repo {
	tb.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		tb.Fatal(err)
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	r := Repo{tb, dir}
	r.Git("init", "-q", "-b", "main")
	r.Git("config", "user.name", "Ada")
	r.Git("config", "user.email", "ada@example.org")
	r.Git("config", "commit.gpgsign", "false")
	r.Commit("first", "a.txt", "one\n")
	return r
}

// At returns the worktree of the repository in another directory.
func (r Repo) At(dir string) Repo { return Repo{r.tb, dir} }

// Write writes files, given as names and texts in turn.
func (r Repo) Write(files ...string) {
	r.tb.Helper()
	for i := 0; i < len(files); i += 2 {
		name := filepath.Join(r.Dir, files[i])
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			r.tb.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(files[i+1]), 0o644); err != nil {
			r.tb.Fatal(err)
		}
	}
}

// Read returns what is in a file, "" if it is not there.
func (r Repo) Read(name string) string {
	data, _ := os.ReadFile(filepath.Join(r.Dir, name))
	return string(data)
}

// Commit writes files and commits all that differs. It returns the commit.
func (r Repo) Commit(message string, files ...string) string {
	r.tb.Helper()
	r.Write(files...)
	r.Git("add", "-A")
	r.Git("commit", "-q", "--allow-empty", "-m", message)
	return r.Git("rev-parse", "HEAD")
}

// Git runs git there, and returns what it prints.
func (r Repo) Git(args ...string) string {
	r.tb.Helper()
	out, err := r.Try(args...)
	if err != nil {
		r.tb.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// Try is Git, but may fail.
func (r Repo) Try(args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir = r.Dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_ALLOW_PROTOCOL=file")
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}
