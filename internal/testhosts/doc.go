// Package testhosts makes several hosts of one machine, for tests of what crosses a network:
// each has processes, a network interface, users, home and temporary directories, and an
// sshd of its own, and netsky on its PATH. What a host needs of the system, as tmux and git,
// is the machine's.
//
// A host is a set of Linux namespaces. Its first process ends with the test's, even if that
// is killed, and the kernel ends all others with it; no user, interface or mount of the
// machine's changes. The network between hosts is a goroutine that passes packets on, so
// a test can delay, lose and withhold them without support of the kernel's.
//
// It needs root. It is not in the binary.
package testhosts
