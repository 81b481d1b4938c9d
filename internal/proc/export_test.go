package proc

// SurvivorsOf is Survivors by a table of processes: number, parent, birth.
func SurvivorsOf(table [][3]int64, d Descent, known []Process) (pids []int) {
	all := make([]procEntry, len(table))
	for i, e := range table {
		all[i] = procEntry{pid: int(e[0]), parent: int(e[1]), start: e[2]}
	}
	for _, p := range survivors(all, d, known) {
		pids = append(pids, p.PID)
	}
	return pids
}
