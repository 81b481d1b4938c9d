package plan

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"netsky/home"
	"netsky/prompts"
	"netsky/work/git"
	"netsky/work/tree"
)

// treeFacts returns what a prompt says of a worktree.
func treeFacts(w tree.Worktree) prompts.Worktree {
	return prompts.Worktree{Root: w.Dir, Main: w.Main, Branch: git.Branch(w.Branch), Base: git.Branch(w.Base)}
}

// maxInstructions is how much of one file of instructions goes into a prompt, in bytes.
const maxInstructions = 256 << 10

// inTree adapts a prompt to a start in the worktree. What the agent's program would have read in the
// owner's directory, and does not find from here, is appended.
func inTree(in *prompts.Input, w tree.Worktree) {
	in.Tree = treeFacts(w)
	for _, file := range missed(in.Runtime, w, in.Dir) {
		text, err := home.ReadOwn(file, maxInstructions)
		switch {
		case err != nil:
			text = fmt.Appendf(nil, "(it can't be read here: %v)", err)
		case !utf8.Valid(text):
			text = []byte("(it is not text)")
		}
		in.Addenda = append(slices.Clip(in.Addenda), prompts.Layer{
			Name: file,
			Text: prompts.Literal("# " + file + "\n\nThe owner's instructions in " + file + ", which is not in your worktree:\n\n" + string(text)),
		})
	}
}

// missed returns the files of instructions that the program reads in the owner's directory and not
// in the worktree: those that are in no commit, and for Claude Code, which looks in every directory
// above, those above the repository. From the outermost to the innermost.
func missed(runtime string, w tree.Worktree, dir string) (files []string) {
	names := map[string][]string{"claude": {"CLAUDE.md", "CLAUDE.local.md"}, "codex": {"AGENTS.md"}}[runtime]
	if names == nil {
		return nil
	}
	sub, err := filepath.Rel(w.Dir, dir)
	if err != nil {
		return nil
	}
	seen := func(name string) bool { // by a program that runs in dir
		_, err := os.Lstat(name)
		return err == nil
	}
	for at := filepath.Join(w.Main, sub); ; at = filepath.Dir(at) {
		rel, err := filepath.Rel(w.Main, at)
		inside := err == nil && rel != ".." && !strings.HasPrefix(rel, "../")
		if !inside && (runtime != "claude" || tree.Within(at, w.Dir)) {
			break // what is above both is found from either
		}
		for _, name := range slices.Backward(names) {
			file := filepath.Join(at, name)
			info, err := os.Stat(file)
			if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() || inside && seen(filepath.Join(w.Dir, rel, name)) {
				continue
			}
			files = append(files, file)
		}
		if at == "/" {
			break
		}
	}
	slices.Reverse(files)
	return files
}
