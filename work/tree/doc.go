// Package tree makes and keeps the worktrees in which clones work: each on a branch of its own,
// with the ignored files it needs, and with hooks that put the agent's name into its commits.
// It also finds work that exists nowhere else, so that nothing removes it.
//
// A crash leaves a worktree that is whole, or one that the next up makes whole.
package tree
