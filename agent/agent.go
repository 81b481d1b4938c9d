// Package agent defines what an agent is: its name and role, how it was launched, the
// states it reports, the events of its life and the questions it asks. All other packages
// share these types. internal/proc identifies its processes, home keeps its files.
package agent

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"netsky/internal/advice"
)

// An ID is an address on the bus: an agent's name, or the owner's. The zero ID is no
// address; every other value that a function of this package returns matches
// agent(0|[1-9][0-9]{0,3})|agentinfinity|owner, so it is safe as a file name, a tmux
// session name and a word of a command line. Only [ParseAddress], [ParseArgAddress] and
// [ID.At] return others, with a host behind an @: those are addresses of mail, and name
// nothing of this home.
type ID string

const (
	Root     ID = "agent0"        // the manager
	Infinity ID = "agentinfinity" // the repair agent
	Owner    ID = "owner"         // the person; an address, never an agent
)

// MaxClones is the largest number a clone can have.
const MaxClones = 9999

// ErrName reports an invalid agent name.
var ErrName = errors.New("not an agent's name")

// Clone returns the ID of the clone with number n, which must be 1 to MaxClones.
func Clone(n int) ID {
	if n < 1 || n > MaxClones {
		panic("agent: no such clone: " + strconv.Itoa(n))
	}
	return ID("agent" + strconv.Itoa(n))
}

// Parse parses an address as written in an envelope. It is strict: no spaces, no other
// spelling of a number.
func Parse(s string) (ID, error) {
	switch id := ID(s); id {
	case Root, Infinity, Owner:
		return id, nil
	}
	digits, ok := strings.CutPrefix(s, "agent")
	if !ok || len(digits) == 0 || len(digits) > 4 || digits[0] == '0' {
		return "", nameError(s, ", owner")
	}
	for i := range len(digits) {
		if digits[i] < '0' || digits[i] > '9' {
			return "", nameError(s, ", owner")
		}
	}
	return ID(s), nil
}

// ParseArg parses an address as typed by a person: also 3 for agent3 and infinity for
// agentinfinity.
func ParseArg(s string) (ID, error) {
	if id, err := Parse(s); err == nil {
		return id, nil
	}
	if id, err := Parse("agent" + s); err == nil {
		return id, nil
	}
	return "", nameError(s, ", owner")
}

// ParseAgent is ParseArg without the owner's address.
func ParseAgent(s string) (ID, error) {
	id, err := ParseArg(s)
	if far, ferr := ParseArgAddress(s); ferr == nil && far.Host() != "" && far.IsAgent() {
		return "", advice.With(fmt.Errorf("%s: %w on this host", far, ErrName), "`netsky --on %s …` with %s does it there", far.Host(), far.Local())
	}
	if err != nil || !id.IsAgent() {
		return "", nameError(s, "")
	}
	return id, nil
}

// nameError lists the valid names, and others.
func nameError(s, others string) error {
	if len(s) > 40 {
		s = s[:40] + "…"
	}
	return fmt.Errorf("%q: %w: agent0, agent1 to agent9999, agentinfinity%s", s, ErrName, others)
}

// IsAgent reports whether the address is an agent's, not the owner's.
func (id ID) IsAgent() bool { return id.Local() != Owner && id != "" }

// IsClone reports whether the agent is one of the workers agent1, agent2, ….
func (id ID) IsClone() bool {
	return id.IsAgent() && id.Local() != Root && id.Local() != Infinity
}

// N returns the value of AGENT_N for the agent: "0", "3", "infinity".
func (id ID) N() string { return strings.TrimPrefix(string(id), "agent") }

// Number returns the agent's number, and false for agentinfinity and the owner.
func (id ID) Number() (int, bool) {
	n, err := strconv.Atoi(id.N())
	return n, err == nil
}

// Roles, as the records name them.
const (
	RoleManager  = "manager"
	RoleWorker   = "worker"
	RoleWatchdog = "watchdog"
	RoleOwner    = "owner"
)

// RoleWord returns a role as people read it: the watchdog of the records is the repair
// agent.
func RoleWord(role string) string {
	if role == RoleWatchdog {
		return "repairs"
	}
	return role
}

// Role returns the role of the address.
func (id ID) Role() string {
	switch id.Local() {
	case Root:
		return RoleManager
	case Infinity:
		return RoleWatchdog
	case Owner:
		return RoleOwner
	}
	return RoleWorker
}

// Compare compares addresses in display order: agent0, agent1, …, agent10, agentinfinity,
// owner, then those of other hosts by host.
func Compare(a, b ID) int {
	return cmp.Or(strings.Compare(a.Host(), b.Host()), cmp.Compare(a.Local().rank(), b.Local().rank()))
}

func (id ID) rank() int {
	if n, ok := id.Number(); ok {
		return n
	}
	if id == Infinity {
		return MaxClones + 1
	}
	return MaxClones + 2
}

// Span lists agents briefly, consecutive numbers as a range: "agent0 to agent50,
// agentinfinity". It expects display order.
func Span(list []ID) string {
	var parts []string
	for i := 0; i < len(list); {
		n, ok := list[i].Number()
		end := i + 1
		for ok && end < len(list) {
			if m, numbered := list[end].Number(); !numbered || m != n+end-i {
				break
			}
			end++
		}
		if end-i > 2 {
			parts = append(parts, string(list[i])+" to "+string(list[end-1]))
		} else {
			for _, id := range list[i:end] {
				parts = append(parts, string(id))
			}
		}
		i = end
	}
	return strings.Join(parts, ", ")
}

// NewStart returns a start id: 16 hex digits that identify one start of one agent.
func NewStart() string {
	var b [8]byte
	rand.Read(b[:]) // never fails: crypto/rand ends the program instead
	return hex.EncodeToString(b[:])
}
