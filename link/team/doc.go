// Package team says which hosts belong together: their names, keys and roles.
package team
