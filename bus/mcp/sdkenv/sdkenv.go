// Package sdkenv removes a malformed MCPGODEBUG from the environment before the MCP
// library reads it, which would panic at the start of the process and so break every
// verb. A well-formed value stays.
//
// It works because Go initialises packages in the order of their paths as far as
// imports allow. Everything this package imports is also imported by package time, and
// its path sorts before "time"; the library imports os, which imports time. So import
// nothing more here.
package sdkenv

import "syscall"

const name = "MCPGODEBUG"

func init() {
	if value, ok := syscall.Getenv(name); ok && value != "" && !wellFormed(value) {
		syscall.Unsetenv(name)
	}
}

// wellFormed reports whether there is an = between any two commas.
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
