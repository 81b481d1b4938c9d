package fleet

import (
	"netsky/agent"
	"netsky/config"
)

// who is a set of roles.
type who uint8

const (
	owner who = 1 << iota
	root      // agent0
	clones
	infinity

	managers = owner | root | infinity
)

// rights says who may do what: by verb, or for one that means several things by the verb and its
// option. What is not listed anybody may do who can write to the bus. The pages and the phone act as
// the owner, whom they have made sure of before.
var rights = map[string]struct {
	who who
	why string // why others may not, and what they can do instead
}{
	// What starts, ends and changes agents, or speaks for all of them.
	"up": {managers, askRoot}, "agent": {managers, askRoot}, "down": {managers, askRoot}, "restart": {managers, askRoot},
	othersTasks: {managers, askRoot}, "interrupt": {managers, askRoot}, "codex": {managers, askRoot}, "task start": {managers, askRoot}, "work retire": {managers, askRoot},
	"daemon run": {managers, askRoot}, "daemon stop": {managers, askRoot}, "daemon restart": {managers, askRoot}, "doctor --fix": {managers, askRoot}, "init": {managers, askRoot},
	"service install": {managers, askRoot}, "service uninstall": {managers, askRoot}, "service run": {managers, askRoot},
	"escalate": {managers, askRoot}, "forget": {managers, askRoot}, "on": {managers, askRoot},
	"imessage history": {managers, askRoot}, "imessage send": {managers, askRoot}, "imessage doctor": {managers, askRoot},
	"io serve -s imessage": {root | infinity, "only agent0 and agentinfinity write to the owner's phone"},

	"cron add": {owner | root, onlyRoot}, "loop": {owner | root, onlyRoot}, "cron rm": {owner | root, onlyRoot},

	"land": {owner | root, inReply}, "undo": {owner | root, inReply}, // agent0 only if netsky.toml says so: see MayLand

	// What a message could talk an agent into, and must not.
	"approve": {owner, atTerminal}, "dashboard": {owner, atTerminal}, "uninstall": {owner, atTerminal}, "demo": {owner, atTerminal},
	"self update": {owner, atTerminal}, "self rollback": {owner, atTerminal},
	"link serve": {owner, atTerminal}, "link invite": {owner, atTerminal}, "link join": {owner, atTerminal}, "link approve": {owner, atTerminal}, "link reject": {owner, atTerminal},
	"link remove": {owner, atTerminal}, "link leave": {owner, atTerminal}, "link move": {owner, atTerminal},
	otherHosts: {owner, atTerminal}, "hosts install": {owner, atTerminal}, "drill": {owner, atTerminal}, "quiet": {owner, atTerminal}, "forget --unproved": {owner, atTerminal}, "check --set": {owner, atTerminal},
	"imessage access ls": {owner, atTerminal}, "imessage access allow": {owner, atTerminal}, "imessage access deny": {owner, atTerminal},
	"imessage access pair": {owner, atTerminal},
	"channel drain AGENT":  {managers, "a clone may take only its own mail"},
	"inbox":                {owner, "only for the owner; an agent reads its mail with `netsky channel drain`"},
}

// otherHosts is to have other hosts of the team do something.
const otherHosts = "deed on another host"

// othersTasks is to assign tasks to others, to change theirs, and to accept what they have claimed.
const othersTasks = "task of another's"

const (
	askRoot    = "ask agent0 to do it"
	inReply    = "ask for it in your reply"
	onlyRoot   = "only for the owner and agent0; ask agent0 to do it"
	atTerminal = "only the owner can do this, from a terminal of their own"
)

// May returns an error unless an actor may do a deed, as package fleet decides it for every surface.
func May(actor agent.ID, deed string) error {
	r, ok := rights[deed]
	if !ok || r.who&roleOf(actor) != 0 {
		return nil
	}
	if r.why == askRoot {
		return usagef("%s: not allowed for clones (this is %s); %s", deed, actor, r.why)
	}
	if r.why == inReply {
		return usagef("%s: not allowed for %s; %s", deed, actor, r.why)
	}
	return usagef("%s: %s", deed, r.why)
}

// MayLand returns an error unless an actor may land work and undo that: agent0 may if netsky.toml says so.
func MayLand(actor agent.ID, c config.Config, deed string) error {
	if roleOf(actor) == root && c.Work.Land != config.LandRoot {
		return usagef("%s: only the owner can, as `land` under [work] in netsky.toml is not \"agent0\"", deed)
	}
	return May(actor, deed)
}

func roleOf(id agent.ID) who {
	switch {
	case id == agent.Root:
		return root
	case id == agent.Infinity:
		return infinity
	case id.IsClone():
		return clones
	}
	return owner
}
