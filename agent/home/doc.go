// Package home is the directory that holds all of one netsky: what can be one,
// every path below it, files that are replaced atomically, locks, event files,
// and the removal of what a home holds.
//
// Files are small JSON objects, replaced atomically, so a reader sees the old
// one or the new one and never half of either. A crash leaves at most a dot-file
// named ".tmp-…" beside them, which no reader looks at. What must survive a loss
// of power (desired state, mail) is fsynced; what is rendered anew at each spawn
// is not.
package home
