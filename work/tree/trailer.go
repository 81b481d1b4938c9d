// This file makes the commits of an agent carry its name, as "Netsky-Agent: agent3", whoever
// git's configuration says that the author is. It keeps agents in worktrees from the stash, which all
// worktrees share, and notes which worktrees they add.
//
// The agent's git is told, by an environment variable alone, to look for hooks in a directory of
// the home. Each hook there runs the one of the same name that the repository has, or that its own
// core.hooksPath names; the one that prepares a message also appends the trailer. Nothing is
// written into a repository or into the owner's configuration. A git whose caller names another
// directory of hooks, by -c or by that variable, commits without the trailer, and so do other
// implementations of git.

package tree

import (
	"context"
	"errors"
	"os"
	"path"
	"path/filepath"
	"strings"

	"netsky/agent"
	"netsky/home"
	"netsky/internal/execx"
	"netsky/work/git"
)

// Trailer is the trailer's.
const Trailer = "Netsky-Agent"

// HooksDirname is where the hooks are, below the home.
const HooksDirname = "state/git-hooks"

// variable is what git takes configuration from, as -c does for the programs that git starts. It is
// not GIT_CONFIG_COUNT, as Codex keeps variables with KEY in their names from the programs that an
// agent runs, and git fails with half of those.
const variable = "GIT_CONFIG_PARAMETERS"

// plain are the hooks that only run what the repository has. Those of a receiving repository are
// none of them, as git does not pass the variable on to it.
var plain = []string{
	"applypatch-msg", "pre-applypatch", "post-applypatch", "pre-commit", "pre-merge-commit", "post-commit",
	"pre-rebase", "post-merge", "pre-push", "pre-auto-gc", "post-rewrite", "sendemail-validate",
}

// In the directory of an agent's hooks are a copy of them, and what programs such as lefthook have installed
// there, which runs for that agent alone.
const (
	kept      = ".kept"
	installed = ".installed"
)

// forward finds the repository's own hook, or else the one that was installed.
const forward = `own=$(env -u ` + variable + ` git rev-parse --git-path "hooks/${0##*/}" 2>/dev/null) || exit 0
[ -f "$own" ] && [ -x "$own" ] || own=${0%/*}/` + installed + `/${0##*/}
[ -f "$own" ] && [ -x "$own" ] || exit 0
`

// checkedOut notes a worktree that the agent adds: nothing was checked out there before.
const checkedOut = `#!/bin/sh
# netsky: notes each worktree that the agent adds; runs the repository's own hook of this name.
case "$1" in
*[!0]*) ;;
*) { git rev-parse --absolute-git-dir >> STRAYED; } 2>/dev/null ;;
esac
` + forward + `exec "$own" "$@"
`

// restore runs whenever git has written an index, as before a commit. Of what has replaced a hook of
// netsky's, the second line is another.
const restore = `#!/bin/sh
# netsky: keeps what others install in here apart; runs the repository's own hook of this name.
here=${0%/*}
for f in "$here"/*; do
	second=
	{ read -r first && read -r second; } < "$f"
	case "$f $second" in
	*".old # netsky: "*) rm -f "$f" ;;
	*" # netsky: "*) ;;
	*) [ -f "$here/` + kept + `/${f##*/}" ] && mkdir -p "$here/` + installed + `" && mv "$f" "$here/` + installed + `/" && cp -p "$here/` + kept + `/${f##*/}" "$f" ;;
	esac
done
`

const hook = "#!/bin/sh\n# netsky: runs the repository's own hook of this name.\n" + forward + `exec "$own" "$@"
`

// name appends the trailer to the message of a commit that the agent makes, and not to one that it
// only carries elsewhere, nor to an empty one, which aborts the commit.
const name = `name() {
	dir=$(git rev-parse --git-dir) || return 0
	for other in rebase-merge rebase-apply CHERRY_PICK_HEAD; do
		[ -e "$dir/$other" ] && return 0
	done
	[ -n "$(sed '/ >8 -/,$d' "$1" | git stripspace --strip-comments)" ] || return 0
	# git 2.39 appends a trailer to the subject of a message that has no line end.
	[ -z "$(tail -c 1 "$1")" ] || echo >> "$1"
	git interpret-trailers --in-place --if-exists doNothing --trailer "` + Trailer + `: AGENT" "$1"
}
`

// prepare is for messages that are given beforehand, also if the commit skips other hooks.
const prepare = "#!/bin/sh\n# netsky: runs the repository's own hook of this name, then adds the agent's name to the message.\n" + name + `own() {
	` + forward + `	"$own" "$@"
}
(own "$@") || exit
name "$1"
exit 0
`

// check is for those that are typed.
const check = "#!/bin/sh\n# netsky: adds the agent's name to the message, then runs the repository's own hook of this name.\n" + name +
	"name \"$1\"\n" + forward + `exec "$own" "$@"
`

// refs keeps an agent from the stash, of which a repository has one for all worktrees.
const refs = `#!/bin/sh
# netsky: keeps the stash out of worktrees, which share one; runs the repository's own hook of this name.
input=$(cat)
case "$1 $input" in
"prepared "*" refs/stash"*)
	if [ -e "$(git rev-parse --git-dir)/commondir" ]; then
		echo "netsky: all worktrees of this repository share one stash, and others would take yours for theirs; commit instead: git commit -am wip" >&2
		exit 1
	fi ;;
esac
`

const refsOwn = forward + `printf '%s\n' "$input" | "$own" "$@"
`

// PrepareHooks writes the agent's hooks, and returns the environment with the variable that names them.
// A variable that an earlier Prepare has set is replaced. r is the repository that the agent works
// in; the zero Repo is none.
func PrepareHooks(ctx context.Context, h home.Dir, id agent.ID, r git.Repo, environ []string) ([]string, error) {
	files := map[string]string{"prepare-commit-msg": named(prepare, id), "commit-msg": named(check, id), "post-checkout": strings.Replace(checkedOut, "STRAYED", execx.Quote(h.Path(home.StrayFile(id))), 1)}
	for _, name := range plain {
		files[name] = hook
	}
	theirs := ""
	if r.Top != "" {
		if dir, err := r.HooksDir(ctx); err == nil {
			theirs = dir
		}
	}
	if files["reference-transaction"] = refs; has(theirs, "reference-transaction") { // git runs it often
		files["reference-transaction"] += refsOwn
	}
	if files["post-index-change"] = restore; has(theirs, "post-index-change") {
		files["post-index-change"] += forward + `exec "$own" "$@"
`
	}
	if dir, err := h.OpenDir(path.Dir(home.StrayFile(id)), true); err != nil {
		return nil, err
	} else if err := dir.Close(); err != nil {
		return nil, err
	}
	rel := filepath.Join(HooksDirname, string(id))
	for name, text := range files {
		if err := write(h, filepath.Join(rel, kept, name), text); err != nil {
			return nil, err
		}
		if err := setApart(h, rel, name); err != nil {
			return nil, err
		}
		if err := write(h, filepath.Join(rel, name), text); err != nil {
			return nil, err
		}
	}
	own := execx.Quote("core.hooksPath=" + h.Path(rel))
	before := strings.TrimSpace(strings.TrimSuffix(execx.Value(environ, variable), own))
	return append(execx.Without(environ, variable), variable+"="+strings.TrimSpace(before+" "+own)), nil
}

// named puts the agent's name into a hook.
func named(hook string, id agent.ID) string { return strings.ReplaceAll(hook, "AGENT", string(id)) }

// setApart moves away what another program has installed in a hook's place.
func setApart(h home.Dir, rel, name string) error {
	have, err := h.ReadFile(filepath.Join(rel, name), 1<<20)
	if err != nil || strings.Contains(string(have), "\n# netsky: ") {
		return nil // there is none, or netsky's
	}
	if err := os.MkdirAll(h.Path(rel, installed), 0o700); err != nil {
		return err
	}
	return os.Rename(h.Path(rel, name), h.Path(rel, installed, name))
}

// write writes a program, unless it is there.
func write(h home.Dir, rel, text string) error {
	have, err := h.ReadFile(rel, int64(len(text))+1)
	if err != nil || string(have) != text {
		if err := h.WriteFile(rel, []byte(text), false); err != nil {
			return err
		}
	}
	f, err := h.OpenAppend(rel)
	if err != nil {
		return err
	}
	return errors.Join(f.Chmod(0o700), f.Close())
}

// has reports whether a repository has a hook, with its hooks in dir; "" is no repository.
func has(dir, name string) bool {
	info, err := os.Stat(filepath.Join(dir, name))
	return dir != "" && err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0
}
