package home

// isMount reports whether something is mounted at a directory beside another
// file system: macOS has no such mounts.
func isMount(int) bool { return false }
