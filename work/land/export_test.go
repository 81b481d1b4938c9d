package land

// For fuzzing.
var (
	ParseConflicts = parseConflicts
	Hunks          = hunks
)
