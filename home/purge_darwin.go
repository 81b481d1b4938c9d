package home

// isMount reports whether a directory is a mount point on the same file system: macOS has
// no such mounts.
func isMount(int) bool { return false }
