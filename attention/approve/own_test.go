package approve_test

import (
	"os"
	"path/filepath"
	"testing"

	"netsky/agent"
	"netsky/attention/approve"
	"netsky/home"
	"netsky/internal/testworld"
	"netsky/work/check"
	"netsky/work/git"
	"netsky/work/tree"
)

// An ownWorld is an agent in its worktree, and what it may do there without asking.
type ownWorld struct {
	testworld.Repo
	home home.Dir
	main testworld.Repo
	own  approve.Own
}

const ownCheck = "make test && ./more 'it'"

func newOwn(t *testing.T) ownWorld {
	t.Helper()
	root := testworld.Got(filepath.EvalSymlinks(t.TempDir()))(t)
	h, f := testworld.FastHome(t), testworld.NewRepo(t, filepath.Join(root, "src"))
	f.Commit("one", "sub/a", "1")
	r := testworld.Got(git.Open(t.Context(), f.Dir, ""))(t)
	p := testworld.Got(tree.Make(t.Context(), h, "agent1", r, false))(t)
	testworld.Must(t, h.SaveLaunch(agent.Launch{Agent: "agent1", Dir: p.Dir}))
	w := ownWorld{f.At(p.Dir), h, f, approve.Own{Home: h, Check: check.Command{What: "check", Text: ownCheck}, Path: os.Getenv("PATH")}}
	testworld.Must(t, w.own.Check.Agree(h))
	return w
}

func (w ownWorld) claude(t *testing.T, text string) bool {
	t.Helper()
	return w.own.Allows(t.Context(), agent.Approval{Agent: "agent1", Tool: "Bash", Subject: "command", Text: text, Dir: w.Dir})
}

func (w ownWorld) codex(t *testing.T, text string) bool {
	t.Helper()
	return w.own.Allows(t.Context(), agent.Approval{Agent: "agent1", Tool: "shell", Text: text, Dir: w.Dir})
}

// Only one `git add` or `git commit` of plain words needs no question, and exactly the check command.
func TestOwnTexts(t *testing.T) {
	t.Parallel()
	w := newOwn(t)
	for _, text := range []string{
		"git add a", "git add -A", "git  add -u -- sub/a 'a b' é.txt", "git add .", `git add "a b"`, "git add '*.go'",
		`git commit -m x`, `git commit -am 'it; rm -rf / && $(x) > y'`, "git commit -q -m 'one\n\ntwo `x` $y'", `git commit -m "Fix: it's done" -- sub/a`,
		`git commit -m 'it'"'"'s'`, `git commit --message x -a`, ` git commit -m --no-verify `, ownCheck, ownCheck + "\n",
	} {
		testworld.Equal(t, w.claude(t, text), true, "asks: %q", text)
	}
	if !w.codex(t, `/bin/bash -c "git commit -m \"it's b\""`) || !w.codex(t, `/bin/bash -lc 'git commit -m "a b"'`) || !w.codex(t, `bash -lc 'git add a'`) || !w.codex(t, `/bin/bash -lc "make test && ./more 'it'"`) {
		t.Error("asks in Codex's shell")
	}
	for _, text := range []string{
		"", " ", "git", "git add", "git commit", "git status", "gitadd a", "git\u00a0add a", "g\\it add a", "/usr/bin/git add a", "./git add a", "sudo git add a",
		// Options that start a program, read another file, or leave out the hooks.
		"git -c core.hooksPath=/dev/null commit -m x", "git -C /tmp commit -m x", "git --git-dir=x commit -m x", "git --exec-path=. add a",
		"git commit -m x --no-verify", "git commit -n -m x", "git commit -nm x", "git commit -anm x", "git commit '-n' -m x", `git commit "--no-verify" -m x`,
		"git commit --no-veri -m x", "git commit -mx", "git commit -m", "git commit -m ''", "git commit -m ' '", "git commit -a", "git commit -F /etc/passwd", "git commit -C HEAD",
		"git commit -c HEAD", "git commit --amend -m x", "git commit --amend --no-edit", "git commit -m x -e", "git commit -t x -m x", "git commit -S -m x", "git commit -m x --gpg-sign=x",
		"git commit -m x --author=a", "git commit --trailer a:b -m x", "git commit -m x --pathspec-from-file=a", "git commit -p -m x", "git commit --interactive -m x",
		"git add -p", "git add -i", "git add -e", "git add --edit a", "git add a -p", "git add -f a", "git add --pathspec-from-file=a", "git add --chmod=+x a", "git add --renormalize .", "git add -Ap",
		"git add ../a", "git add sub/../../a", "git add /etc/passwd", "git add :/", "git add ':(glob)**'", "git add -- :/", "git commit -m x ../a", "git add -- -p",
		// Another command, or another meaning to some shell.
		"git add a && rm b", "git add a; rm b", "git add a & rm b", "git add a | sh", "git add a || sh", "git add a\nrm b", "git add a\rrm b", "git add a\tb", "git add a #", "git add a\x00b", "git add a\x1bb",
		"git add $(x)", "git add `x`", "git add $x", "git add ${x}", `git add "$(x)"`, "git add \"`x`\"", `git add "$x"`, `git add "a\"; x; \""`, "git add a\\ b", "git add $'a'", `git add $"a"`, "git add a\\\nb",
		"git add <(x)", "git add >(x)", "git add a > b", "git add a >> b", "git add a 2>&1", "git add a < b", "git commit -m x <<EOF\nx\nEOF", "git commit -m \"$(cat <<'EOF'\nx\nEOF\n)\"", "git commit -m x <<< y",
		"git add *", "git add a?", "git add [a]", "git add {a,b}", "git add ~", "git add ~root", "git add !!", `git commit -m "a!!"`, "git add a^b", "git add =ls", "git add (x)", "(git add a)", "{ git add a; }", "! git add a",
		"A=b git add a", "GIT_DIR=x git add a", "env git add a", "command git add a", "eval 'git add a'", "exec git add a", "time git add a", "sh -c 'git add a'", "git add 'a", `git add "a`, "git add a'",
		"git add a；rm b", "git add \u202eb", "git commit -m 'a\u202eb'", "git commit -m 'a\x1b[2J'", "git add \xff", "git commit -m '\xff'", "git add a\u2028rm", "git add a\u2003b",
		ownCheck + "; x", ownCheck + " x", "make test", "make test && ./more it", "x\n" + ownCheck, "(" + ownCheck + ")", "cd x && " + ownCheck,
		`bash -lc 'git add a'`, // Claude Code's is no shell's
	} {
		testworld.Equal(t, w.claude(t, text), false, "allowed: %q", text)
	}
	for _, text := range []string{
		`/bin/bash -c "git commit -m \"\$(x)\""`, `/bin/bash -c "git commit -m \"$(x)\""`, "/bin/bash -c \"git add \\`x\\`\"", `/bin/bash -c "git add \a"`, `/bin/bash -c "git add a\"; x"`, `/bin/bash -c "git add a\`,
		`/bin/bash -c "git commit -m \"a\\\"; x\""`, "/bin/bash -c \"git add a\\\nb\"", `/bin/bash -c "git add 'a'"'; x'`,
		`/bin/bash -lc 'git add a; x'`, `/bin/bash -lc 'git add a' x`, `./bash -lc 'git add a'`, `/tmp/bash -lc 'git add a'`, `bash -ilc 'git add a'`, `bash 'git add a'`, `bash -lc "git add $(x)"`,
		`bash -lc 'git add a' && x`, `bash -lc 'bash -lc "git add a"'`, `bash --rcfile x 'git add a'`,
	} {
		testworld.Equal(t, w.codex(t, text), false, "allowed: %q", text)
	}
}

// What a request says beside its text, where it would run, and what is in the worktree can make it another one.
func TestOwnElse(t *testing.T) {
	t.Parallel()
	type request = agent.Approval
	for _, tt := range []struct {
		name   string
		change func(w *ownWorld, q *request)
		check  bool // the check command is allowed all the same
		commit bool
	}{
		{name: "nothing", change: func(*ownWorld, *request) {}, check: true, commit: true},
		{name: "a time limit", change: func(_ *ownWorld, q *request) { q.Fields = []agent.Field{{Name: "timeout", Text: "5"}} }, check: true, commit: true},
		{name: "in the background", change: func(_ *ownWorld, q *request) { q.Fields = []agent.Field{{Name: "run_in_background", Text: "true"}} }},
		{name: "outside of a sandbox", change: func(_ *ownWorld, q *request) {
			q.Fields = []agent.Field{{Name: "dangerouslyDisableSandbox", Text: "true"}}
		}},
		{name: "another tool", change: func(_ *ownWorld, q *request) { q.Tool = "mcp__x__Bash" }},
		{name: "another argument", change: func(_ *ownWorld, q *request) { q.Subject = "description" }},
		{name: "cut", change: func(_ *ownWorld, q *request) { q.Missing = 1 }},
		{name: "only at the pane", change: func(_ *ownWorld, q *request) { q.Only = "x" }},
		{name: "more rights", change: func(_ *ownWorld, q *request) {
			q.Tool, q.Fields = "shell", []agent.Field{{Name: "additionalPermissions", Text: "{}"}}
		}},
		{name: "below", change: func(w *ownWorld, q *request) { q.Dir += "/sub" }, check: true, commit: true},
		{name: "the owner's directory", change: func(w *ownWorld, q *request) { q.Dir = w.main.Dir }},
		{name: "nowhere", change: func(w *ownWorld, q *request) { q.Dir = "" }},
		{name: "another agent", change: func(w *ownWorld, q *request) { q.Agent = "agent2" }},
		{name: "agent0", change: func(w *ownWorld, q *request) { q.Agent = agent.Root }},
		{name: "works in the owner's directory", change: func(w *ownWorld, q *request) {
			w.home.SaveLaunch(agent.Launch{Agent: "agent1", Dir: w.main.Dir})
		}},
		{name: "a link out of it", change: func(w *ownWorld, q *request) {
			os.Symlink(w.main.Dir, w.Dir+"/out")
			q.Dir += "/out"
		}},
		{name: "in a repository of its own", change: func(w *ownWorld, q *request) {
			w.Git("init", "-q", "inner")
			q.Dir += "/inner"
		}},
		{name: "in what git takes for a bare one", change: func(w *ownWorld, q *request) {
			w.Write("inner/HEAD", "ref: refs/heads/x", "inner/deeper/x", "")
			q.Dir += "/inner/deeper"
		}},
		{name: "a repository in the index", change: func(w *ownWorld, _ *request) {
			w.Git("update-index", "--add", "--cacheinfo", "160000,"+w.Git("rev-parse", "HEAD")+",inner")
		}, check: true},
		{name: ".git leads elsewhere", change: func(w *ownWorld, _ *request) {
			w.Git("init", "-q", "inner")
			w.Write(".git", "gitdir: inner/.git\n")
		}, check: true},
		{name: "hooks in the worktree", change: func(w *ownWorld, _ *request) { w.main.Git("config", "core.hooksPath", ".husky") }, check: true},
		{name: "a hook that is a link into it", change: func(w *ownWorld, _ *request) {
			w.Write("hook", "")
			os.MkdirAll(w.main.Dir+"/.git/hooks", 0o755)
			os.Symlink(w.Dir+"/hook", w.main.Dir+"/.git/hooks/pre-commit")
		}, check: true},
		{name: "the owner's hook", change: func(w *ownWorld, _ *request) { w.main.Write(".git/hooks/pre-commit", "#!/bin/sh\n") }, check: true, commit: true},
		{name: "programs found in the worktree", change: func(w *ownWorld, _ *request) { w.own.Path = w.Dir + "/bin:" + w.own.Path }, check: true},
		{name: "programs found where it runs", change: func(w *ownWorld, _ *request) { w.own.Path = ":" + w.own.Path }, check: true},
		{name: "a check that was not agreed to", change: func(w *ownWorld, q *request) { w.own.Check.What = "setup" }, commit: true},
		{name: "no check", change: func(w *ownWorld, _ *request) { w.own.Check.Text = "" }, commit: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newOwn(t)
			q := request{Agent: "agent1", Tool: "Bash", Subject: "command", Text: "git commit -m x", Dir: w.Dir}
			tt.change(&w, &q)
			testworld.Equal(t, w.own.Allows(t.Context(), q), tt.commit, "commit: allowed")
			q.Text = ownCheck
			testworld.Equal(t, w.own.Allows(t.Context(), q), tt.check, "check: allowed")
		})
	}
}
