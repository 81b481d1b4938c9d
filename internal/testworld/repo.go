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
	Must(tb, os.MkdirAll(dir, 0o755))
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	r := Repo{tb, dir}
	r.Git("init", "-q", "-b", "main")
	// A commit starts no maintenance: that would be another process for each.
	config := "[user]\n\tname = Ada\n\temail = ada@example.org\n[commit]\n\tgpgsign = false\n[maintenance]\n\tauto = false\n"
	f := Got(os.OpenFile(filepath.Join(r.Dir, ".git", "config"), os.O_APPEND|os.O_WRONLY, 0))(tb)
	Got(f.WriteString(config))(tb)
	Must(tb, f.Close())
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
		Must(r.tb, os.MkdirAll(filepath.Dir(name), 0o755))
		Must(r.tb, os.WriteFile(name, []byte(files[i+1]), 0o644))
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
