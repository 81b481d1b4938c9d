package spell

import (
	"slices"
	"strings"

	"netsky/agent"
)

// A habit is a verb of other programs, with what to type here instead. Verbs that change
// something are never guessed, only suggested.
type habit struct {
	words []string
	say   func(agents, rest []string) string
}

// cmd returns a command with the agents that were named.
func cmd(command string, agents []string, more ...string) string {
	return "`" + strings.Join(slices.Concat([]string{command}, agents, more), " ") + "`"
}

var habits = []habit{
	{[]string{"stop", "quit", "exit", "end", "shutdown", "halt"}, func(agents, _ []string) string {
		if len(agents) == 0 {
			return "`netsky down` asks agent0 and the clones to finish, then ends them; with --all, everything"
		}
		return cmd("netsky down", agents) + " lets the running turn finish, then ends the agent; " + cmd("netsky interrupt", agents[:1]) + " ends only its turn, as `stop` by phone does"
	}},
	{[]string{"kill", "killall"}, func(agents, _ []string) string {
		if len(agents) == 0 {
			return "`netsky down --force` ends agent0 and the clones at once; `netsky interrupt AGENT` ends only a turn"
		}
		return cmd("netsky down", agents, "--force") + " ends at once; " + cmd("netsky interrupt", agents[:1]) + " ends only a turn"
	}},
	{[]string{"reload", "reboot"}, func(agents, _ []string) string { return cmd("netsky restart", agents) }},
	{[]string{"start", "new", "spawn", "create", "launch", "add"}, func(agents, rest []string) string {
		if n, ok := NumberIn(rest); ok && len(agents) == 1 {
			return "`netsky up agent" + n + "` starts that agent; `netsky up " + n + "` starts agent0, " + n + " clones and agentinfinity"
		}
		if len(agents) == 0 {
			return "`netsky up` starts the team; `netsky up agent1` only that agent"
		}
		return cmd("netsky up", agents)
	}},
	{[]string{"msg", "message", "tell", "say", "write", "chat"}, func(agents, _ []string) string {
		who := "AGENT"
		if len(agents) > 0 {
			who = agents[0]
		}
		return "`netsky ask " + who + " \"…\"` sends a message and waits for the answer; `netsky send " + who + " \"…\"` does not wait"
	}},
	{[]string{"rm", "remove", "delete", "del"}, func(agents, _ []string) string {
		if len(agents) == 0 {
			return "`netsky down AGENT` ends an agent; `netsky uninstall` removes netsky from PATH"
		}
		return cmd("netsky down", agents) + " ends it; then " + cmd("netsky forget", agents) + " removes it from status"
	}},
	{[]string{"connect", "enter", "open", "join", "switch"}, func(agents, _ []string) string {
		return cmd("netsky attach", agents[:min(len(agents), 1)]) + " opens its pane"
	}},
	{[]string{"search", "grep", "query", "lookup"}, func([]string, []string) string {
		return "`netsky find TEXT` searches messages, tasks and notes"
	}},
	{[]string{"logs", "history", "events"}, func([]string, []string) string { return "`netsky log`" }},
	{[]string{"mail", "messages", "read", "from"}, func([]string, []string) string {
		return "`netsky inbox` prints what agents wrote to you; with --all, also what you have read"
	}},
	{[]string{"cancel", "abort"}, func(agents, _ []string) string {
		if len(agents) == 0 {
			agents = []string{"AGENT"}
		}
		return cmd("netsky interrupt", agents[:1]) + " ends its running turn"
	}},
	{[]string{"no", "deny", "reject", "refuse"}, func([]string, []string) string {
		return "`netsky approve CODE --deny` refuses what an agent asks for; `netsky approvals` lists it"
	}},
	{[]string{"yes", "allow", "accept"}, func([]string, []string) string {
		return "`netsky approvals` lists what agents ask permission for; `netsky approve CODE` allows it"
	}},
	{[]string{"web", "ui", "gui"}, func([]string, []string) string { return "`netsky dashboard`" }},
	{[]string{"upgrade", "update"}, func([]string, []string) string {
		return "`netsky self update` installs a newer netsky; `netsky self status` shows what is installed"
	}},
	{[]string{"config", "configure", "settings", "set"}, func([]string, []string) string {
		return "netsky.toml in netsky's home holds the configuration; `netsky init` writes it, with its keys commented out"
	}},
	{[]string{"merge", "pr", "apply"}, func(agents, _ []string) string {
		if len(agents) == 0 {
			agents = []string{"AGENT"}
		}
		return cmd("netsky land", agents[:1]) + " puts an agent's work on your branch; `netsky work` lists what is ready"
	}},
	{[]string{"revert", "rollback"}, func([]string, []string) string {
		return "`netsky undo ID` takes a landing back; `netsky land ls` lists them; `netsky self rollback` goes back to the netsky before the last update"
	}},
	{[]string{"review", "changes"}, func(agents, _ []string) string {
		if len(agents) == 0 {
			agents = []string{"AGENT"}
		}
		return cmd("netsky diff", agents[:1]) + " shows what an agent has changed"
	}},
	{[]string{"telegram", "phone", "whatsapp", "signal"}, func([]string, []string) string {
		return "`netsky imessage` is the phone bridge, for iMessage and for Telegram: [telegram] in netsky.toml"
	}},
	{[]string{"schedule", "at", "timer", "every"}, func([]string, []string) string {
		return "`netsky cron add` sends a message at set times, `netsky loop` again and again"
	}},
	{[]string{"budget", "budgets", "limit", "usage", "price"}, func([]string, []string) string {
		return "`netsky cost` prints what was used; [budget] in netsky.toml limits it"
	}},
	{[]string{"pause", "suspend", "sleep"}, func(agents, _ []string) string {
		return cmd("netsky down", agents) + " ends an agent and keeps its conversation; `netsky quiet 1h` only holds back what would reach you"
	}},
	{[]string{"resume", "continue", "unpause"}, func(agents, _ []string) string {
		return cmd("netsky up", agents) + " starts an agent again, with its conversation"
	}},
	{[]string{"project", "projects", "workspace", "workspaces"}, func([]string, []string) string {
		return "`netsky status` names the directory; `netsky up --dir DIR` works in another one; NETSKY_HOME=DIR is a second home"
	}},
	{[]string{"launchd", "systemd", "boot", "autostart"}, func([]string, []string) string {
		return "`netsky service install` has what was up come up again after a reboot"
	}},
	{[]string{"session", "sessions", "whoami", "who"}, func([]string, []string) string {
		return "`netsky status -v` prints each agent's session; `netsky show AGENT` its history"
	}},
	{[]string{"agents"}, func([]string, []string) string { return "`netsky status` lists the agents" }},
	{[]string{"answer", "respond"}, func([]string, []string) string {
		return "`netsky reply ID \"…\"` answers a message; `netsky approve CODE` a request for permission"
	}},
	{[]string{"export", "backup", "dump"}, func([]string, []string) string {
		return "`netsky show ID --json` and `netsky log --json` print the records; all files are in netsky's home, which `netsky status` names"
	}},
	{[]string{"login", "logout", "auth"}, func([]string, []string) string {
		return "agents use the login of the program they run on, claude or codex; `netsky doctor` says whether there is one"
	}},
	{[]string{"clean", "reset"}, func([]string, []string) string {
		return "`netsky agent N --fresh` begins a new conversation; `netsky uninstall --purge` removes what netsky made"
	}},
	{[]string{"health", "info", "ping", "diagnose"}, func([]string, []string) string { return "`netsky doctor` examines the installation" }},
	{[]string{"tail", "follow"}, func([]string, []string) string { return "`netsky log --follow`" }},
	{[]string{"watch", "top"}, func([]string, []string) string { return "`netsky status --watch`" }},
}

// Habit returns what to type instead of another program's verb, "" if the word is not one.
// rest are the words after it.
func Habit(word string, rest []string) string {
	i := slices.IndexFunc(habits, func(h habit) bool { return slices.Contains(h.words, word) })
	if i < 0 {
		return ""
	}
	var agents []string
	for _, r := range rest {
		if id, err := agent.ParseAgent(r); err == nil {
			agents = append(agents, string(id))
		}
	}
	return habits[i].say(agents, rest)
}
