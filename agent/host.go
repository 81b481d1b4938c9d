package agent

import (
	"fmt"
	"strings"
)

// MaxHost is the longest name of a host, in bytes.
const MaxHost = 32

// IsHost reports whether a name may be that of a host: [a-z][a-z0-9-]*, not ending in a
// hyphen, at most MaxHost bytes. So it is safe as a file's name, in an address and as a
// token of a subject.
func IsHost(name string) bool {
	if name == "" || len(name) > MaxHost || name[0] < 'a' || name[0] > 'z' || name[len(name)-1] == '-' {
		return false
	}
	for i := range len(name) {
		if c := name[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return true
}

// ParseAddress is Parse, and also takes an address on another host: agent3@build1.
func ParseAddress(s string) (ID, error) {
	local, host, remote := strings.Cut(s, "@")
	id, err := Parse(local)
	switch {
	case !remote:
		return id, err
	case err != nil || !IsHost(host):
		return "", nameError(s, ", owner, or one of these at a host: agent3@build1")
	}
	return ID(s), nil
}

// ParseArgAddress is ParseArg, and also takes 3@build1 for agent3@build1.
func ParseArgAddress(s string) (ID, error) {
	local, host, remote := strings.Cut(s, "@")
	if !remote {
		return ParseArg(s)
	}
	id, err := ParseArg(local)
	if err != nil {
		return "", fmt.Errorf("%q: %w", s, err)
	}
	return ParseAddress(string(id) + "@" + host)
}

// ParseAgentAddress is ParseArgAddress without the owners' addresses.
func ParseAgentAddress(s string) (ID, error) {
	id, err := ParseArgAddress(s)
	if err != nil || !id.IsAgent() {
		return "", nameError(s, ", or one of these at a host: agent3@build1")
	}
	return id, nil
}

// Host returns the host of an address, "" if that is this home.
func (id ID) Host() string {
	_, host, _ := strings.Cut(string(id), "@")
	return host
}

// Local returns the address without its host: what it is called there.
func (id ID) Local() ID {
	local, _, _ := strings.Cut(string(id), "@")
	return ID(local)
}

// At returns what a local address is called on other hosts than its own.
func (id ID) At(host string) ID { return id.Local() + "@" + ID(host) }
