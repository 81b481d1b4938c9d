// Package home is the directory that holds all of one netsky: which directories can be
// one, every path below it, atomic replacement of files, locks, event files, and removing
// the home.
//
// Files are small JSON objects, replaced atomically, so a reader sees the old one or the
// new one and never half of either. A crash leaves at most a dot-file named ".tmp-…"
// beside them, which no reader looks at. What must survive a power loss (desired state,
// mail) is fsynced; what is rendered at each spawn is not.
package home
