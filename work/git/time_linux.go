package git

import "syscall"

// changeTime is when the file's own record last changed.
func changeTime(st *syscall.Stat_t) int64 { return st.Ctim.Nano() }
