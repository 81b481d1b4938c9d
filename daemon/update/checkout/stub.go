// Package checkout stub.
package checkout

func Changes(changelog, version string) string { return "" }
