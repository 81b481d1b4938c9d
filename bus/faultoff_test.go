//go:build !faults

package bus_test

// armFault does nothing: this build has no seam for faults.
func armFault(string) {}
