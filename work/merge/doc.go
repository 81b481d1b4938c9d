// Package merge tells which branches of agents would conflict if they were merged, with each other
// and with the branch that they land on, before anybody merges them. What is not committed yet counts
// as well.
//
// It promises that a merge comes to what `git merge` comes to, where the branches land. It changes no
// worktree, index or ref, and adds no object to the repository. It does not know whether work that
// merges without a conflict works together.
package merge
