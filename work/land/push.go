package land

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"netsky/bus/envelope"
	"netsky/internal/advice"
	"netsky/internal/execx"
	"netsky/store"
	"netsky/work/git"
	"netsky/work/record"
	"netsky/work/tree"
)

// pushTime limits a push, and the program that asks for the merge.
const pushTime = 5 * time.Minute

// A pusher pushes a branch instead of landing it.
type pusher struct {
	Desk
	repo  git.Repo
	merge Merge
}

// push pushes the agent's branch and asks for it to be merged. A branch that was pushed without a
// request is on record, and an error that matches ErrNotYet says what to run.
func (d pusher) push(ctx context.Context, w tree.Worktree, o LandOptions, l *Landing) error {
	r, m := d.repo, d.merge
	remote, err := remoteOf(ctx, r, m)
	if err != nil {
		return fmt.Errorf("%s: %w", l.Agent, err)
	}
	l.How, l.Tree = Push, m.Tree
	d.record(ctx, record.SetLanding(l.Landing))
	d.step("push")
	g := r.Act(pushTime)
	done := d.patient("git push", pushTime)
	err = act(ctx, g, "push", "--porcelain", "--", remote, m.Head+":"+m.Branch)
	if done(); err != nil {
		l.State, l.Reason = record.Void, envelope.Plain(err.Error())
		d.record(ctx, record.SetLanding(l.Landing))
		return fmt.Errorf("%s: not pushed: %w", l.Agent, err)
	}
	d.step("pushed")
	l.State, l.After, l.Ended = record.Pushed, m.Head, store.At(time.Now())
	text, err := message(ctx, r, w, m, Squash, o.Message)
	if err == nil {
		l.URL, err = d.request(ctx, remote, text)
	}
	if err != nil {
		l.Reason = envelope.Plain(err.Error())
		err = advice.With(refusef("%s: %s was pushed to %s, but nobody was asked to merge it: %w", l.Agent, git.Branch(m.Branch), remote, err),
			"ask there; or: gh pr create --head %s --base %s", advice.Word(git.Branch(m.Branch)), advice.Word(git.Branch(m.Target)))
	}
	d.record(ctx, record.SetLanding(l.Landing), logged(l.Landing))
	return err
}

// remoteOf returns the remote that the branch is pushed to: its own, its target's, origin, or the
// only one there is.
func remoteOf(ctx context.Context, r git.Repo, m Merge) (string, error) {
	d := r.Look()
	for _, key := range []string{"branch." + git.Branch(m.Branch) + ".pushRemote", "remote.pushDefault", "branch." + git.Branch(m.Branch) + ".remote", "branch." + git.Branch(m.Target) + ".remote"} {
		if name, err := d.First(ctx, "config", "--get", key); err == nil && name != "" && name != "." {
			return name, nil
		}
	}
	out, err := d.Run(ctx, 16<<10, "remote")
	if err != nil {
		return "", err
	}
	list := strings.Fields(out)
	for _, name := range list {
		if name == "origin" || len(list) == 1 {
			return name, nil
		}
	}
	if len(list) == 0 {
		return "", errors.New("the repository has no remote to push to")
	}
	return "", advice.With(fmt.Errorf("which of the remotes %s to push to is not set", strings.Join(list, ", ")), "git config remote.pushDefault REMOTE")
}

// request asks for the merge with gh or glab, and returns the request's address.
func (d pusher) request(ctx context.Context, remote, text string) (string, error) {
	r, m := d.repo, d.merge
	url, _ := r.Look().First(ctx, "remote", "get-url", "--push", remote)
	title, body, _ := strings.Cut(text, "\n")
	gh := []string{"gh", "pr", "create", "--head", git.Branch(m.Branch), "--base", git.Branch(m.Target), "--title", title, "--body", strings.TrimSpace(body)}
	glab := []string{"glab", "mr", "create", "--yes", "--source-branch", git.Branch(m.Branch), "--target-branch", git.Branch(m.Target), "--title", title, "--description", strings.TrimSpace(body)}
	tools := [][]string{gh, glab}
	if strings.Contains(url, "gitlab") {
		tools = [][]string{glab, gh}
	}
	path := execx.Value(d.Environ, "PATH")
	for _, tool := range tools {
		if name := execx.Find(path, tool[0]); name != "" {
			return d.call(ctx, r.Top, name, tool[1:])
		}
	}
	return "", errors.New("neither gh nor glab is installed")
}

// call runs the program. The address is the last one that it prints: that of the request it made, or of
// the one that it says is there already.
func (d pusher) call(ctx context.Context, dir, name string, args []string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, pushTime)
	defer cancel()
	out, words := &tail{}, &tail{}
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append(execx.Without(execx.Inherited(d.Environ), "NETSKY_*", "GIT_*", "PWD"), "PWD="+dir, "GH_PROMPT_DISABLED=1", "NO_PROMPT=1")
	cmd.Stdout, cmd.Stderr = out, words
	cmd.WaitDelay = time.Second
	if null, err := os.Open(os.DevNull); err == nil {
		defer null.Close()
		cmd.Stdin = null
	}
	err := cmd.Run()
	url := address(out.String())
	if err != nil {
		if strings.Contains(words.String(), "already exists") && address(words.String()) != "" {
			return address(words.String()), nil
		}
		return "", fmt.Errorf("%s: %w", cmd.Args[0], worded(err, words))
	}
	return url, nil
}

// address returns the last web address in a text.
func address(text string) (url string) {
	for word := range strings.FieldsSeq(text) {
		if strings.HasPrefix(word, "https://") || strings.HasPrefix(word, "http://") {
			url = word
		}
	}
	return url
}
