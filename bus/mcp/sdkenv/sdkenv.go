// Package sdkenv takes a malformed MCPGODEBUG out of the environment before the
// MCP library reads it, which panics of one as the process starts: every verb
// would die, whatever it is for. A well-formed one stays.
//
// It works because Go initialises packages in the order of their paths as far as
// imports allow. What this package imports, package time imports too, and its
// path is before "time"; the library imports os, which imports time. So import
// nothing more here.
package sdkenv

import "syscall"

const name = "MCPGODEBUG"

func init() {
	if value, ok := syscall.Getenv(name); ok && value != "" && !wellFormed(value) {
		syscall.Unsetenv(name)
	}
}

// wellFormed says whether there is an = between any two commas.
func wellFormed(value string) bool {
	assigns := false
	for i := range len(value) {
		switch value[i] {
		case '=':
			assigns = true
		case ',':
			if !assigns {
				return false
			}
			assigns = false
		}
	}
	return assigns
}
