package cli

import (
	"errors"
	"io/fs"
	"os/exec"
	"strings"

	"netsky/agent"
	"netsky/agent/home"
	"netsky/bus"
	"netsky/codex"
	"netsky/daemon"
	"netsky/dashboard"
	"netsky/prompts"
	"netsky/spawn"
	"netsky/spawn/claude"
	"netsky/store"
	"netsky/tmux"
)

// hints says what to do next about an error. The packages below state facts;
// advice stands here and nowhere else.
func (a *app) hints(err error) []string {
	var up needUp
	var asks atDialog
	var foreign *spawn.ForeignError
	var own errOwnCheckout
	var dir inOtherDir
	var other onOtherRuntime
	var runs notCodex
	var web *daemon.NotServed
	var list []string
	add := func(s string) { list = append(list, s) }
	switch {
	case errors.As(err, &up):
		add("`netsky agent " + up.id.N() + "` starts it")
	case errors.As(err, &other):
		add("`netsky down " + other.names() + " && netsky up " + other.names() + " " + other.again + "` ends them and starts them so")
	case errors.As(err, &dir):
		names := strings.Join(dir.agents, " ")
		add("`netsky down " + names + " && netsky up " + names + " --dir " + shellWord(dir.wanted) + "` ends them and starts them there")
	case errors.As(err, &asks):
		add("`netsky approvals` lists what waits for your yes; `netsky attach " + string(asks.id) + "` goes to its pane")
	case errors.Is(err, tmux.ErrUnanswered):
		add("once tmux answers, `netsky status` shows what was started, and `netsky up` starts what is missing; `netsky down --force`\nends agents without tmux")
	case errors.Is(err, bus.ErrNoMailbox):
		add("`netsky status` lists the agents; `netsky agent N` starts one, and gives it a mailbox")
	case errors.Is(err, bus.ErrBrake):
		add("so many messages mean a loop, or a reader who does not keep up: send it again in a minute, or go on without it")
	case errors.Is(err, bus.ErrNotAllowed):
		add("clones write to agent0 and to each other; the owner and agentinfinity they only answer")
	case errors.Is(err, exec.ErrNotFound):
		add("on Debian: apt-get install tmux; on macOS: brew install tmux")
	case errors.Is(err, home.ErrNotHome):
		add("set NETSKY_HOME to a directory that is empty or does not exist yet; without NETSKY_HOME, netsky uses ~/.netsky")
		if h, found := home.Find(a.getenv); found == nil && errors.Is(err, home.ErrOccupied) {
			add("to let netsky use this one beside your own files: touch " + shellWord(h.Path(home.MarkerFile)))
		}
	case errors.Is(err, home.ErrHomeOpen):
		if h, found := home.Find(a.getenv); found == nil {
			add("netsky did not make it and leaves its mode alone; to close it: chmod 700 " + shellWord(h.Root()))
		}
	case errors.As(err, &own):
		add("name your project's directory: cd DIR first, or --dir DIR (--dir . is this one)")
	case errors.As(err, &foreign) && foreign.Home != "":
		add("`NETSKY_HOME=" + shellWord(foreign.Home) + " netsky status` shows it; without [tmux] socket and NETSKY_TMUX_SOCKET each home has a tmux server of its own")
	case errors.Is(err, spawn.ErrForeign):
		add("end or rename that session, or give netsky a server of its own: `socket = \"netsky\"` under [tmux] in netsky.toml")
	case errors.Is(err, prompts.ErrPlaceholder):
		add("`netsky prompt AGENT --layers` shows what the text is made of")
	case errors.Is(err, errLaunch):
		add("`netsky agent N --fresh --type RUNTIME --dir DIR` says both anew, and starts it with a clean conversation")
	case errors.Is(err, daemon.ErrUnwanted):
		add("`netsky up` starts it again; `netsky down --all` ends all that runs")
	case errors.Is(err, daemon.ErrNotRunning):
		add("`netsky up` starts it")
	case errors.Is(err, daemon.ErrHung):
		add("`netsky daemon stop` ends it; `netsky up` starts another")
	case errors.Is(err, dashboard.ErrWide):
		add("under [dashboard] in netsky.toml, set `cert` and `key` to serve it encrypted, or `wide = true` to allow it unencrypted")
	case errors.As(err, &web) && web.Web.Taken:
		add("end that program, and the dashboard is back within a second; or set `listen = \"127.0.0.1:0\"` under [dashboard] in\nnetsky.toml, which takes a free port and keeps it, then `netsky daemon stop` and `netsky dashboard`")
	case errors.Is(err, agent.ErrNoApproval):
		add("`netsky approvals` lists what waits for your yes; `netsky status` says who waits at its pane")
	case errors.Is(err, codex.ErrLogin):
		add("or `netsky up --type demo` starts agents without a model")
	case errors.Is(err, codex.ErrMissing):
		add("npm install -g @openai/codex installs it; `netsky up --type demo` starts agents without a model")
	case errors.Is(err, claude.ErrLogin):
		add("run `claude` and /login, or set ANTHROPIC_API_KEY; `netsky up --type demo` starts agents without a model")
	case errors.Is(err, claude.ErrMissing):
		add("npm install -g @anthropic-ai/claude-code installs it; `netsky up --type demo` starts agents without a model")
	case errors.Is(err, claude.ErrOld):
		add("`claude update` brings a newer one; `netsky up --type demo` starts agents without a model")
	case errors.Is(err, claude.ErrRoot):
		add("run netsky as another user; or set permission_mode = \"acceptEdits\" under [claude] in netsky.toml; or, if this machine is a\nsandbox with nothing to lose, IS_SANDBOX=1 in the environment, which netsky never sets by itself")
	case errors.Is(err, store.ErrNewer):
		add("this netsky is older than the database: run the newer one, or move meta.db away")
	case store.Damaged(err):
		if h, found := home.Find(a.getenv); found == nil {
			add(repairRecords(h))
		}
	case errors.Is(err, store.ErrNotFound):
		add("`netsky find TEXT` searches texts, file names and ids; `netsky log` and `netsky channel ls AGENT` list ids")
	case errors.Is(err, errNoMessage):
		add("`netsky inbox --all` shows your mail with its ids")
	case errors.Is(err, errDaemonRuns):
		add("`netsky daemon status` shows it, `netsky daemon stop` ends it")
	case errors.Is(err, errOwnersMail):
		add("`netsky inbox` shows it")
	case errors.As(err, &runs):
		add("`netsky ask " + string(runs.id) + " \"…\"` asks it as it is; `netsky down " + string(runs.id) + "` ends it")
	case errors.Is(err, errOwnMail):
		add("`netsky channel ls AGENT` lists it, and takes nothing")
	case errors.Is(err, errTakenMail):
		add("run it again when that has ended")
	case errors.Is(err, home.ErrLocked):
		add("wait for it to finish, or see `netsky status`")
	case errors.Is(err, fs.ErrPermission):
		add("the home and all below it must be yours: " + a.getenv("HOME") + "/.netsky, or NETSKY_HOME")
	}
	return list
}

// repairRecords is what makes the records whole again.
func repairRecords(h home.Dir) string {
	file := h.Path(home.DBFile)
	return "mv " + shellWord(file) + " " + shellWord(file+".damaged") +
		" repairs it: what agents' files and mailboxes hold is put on record anew"
}
