package attention

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"netsky/agent"
	"netsky/bus/envelope"
	"netsky/internal/words"
)

// A Kind is a kind of need.
type Kind string

const (
	Approval   Kind = "approval"
	Dialog     Kind = "dialog"
	Join       Kind = "join"    // a host that asks to join the team
	Login      Kind = "login"   // an account that nobody is logged in to
	Limit      Kind = "limit"   // an account that does not serve anybody
	Budget     Kind = "budget"  // of the owner's, which is used up
	Blocked    Kind = "blocked" // an agent that can't go on: its conversation is full, say
	Unready    Kind = "unready" // started a while ago, and not ready
	Hung       Kind = "hung"
	Looping    Kind = "looping"
	Dead       Kind = "dead"
	Down       Kind = "down"   // wanted up, and not started
	Config     Kind = "config" // a mistake in netsky.toml
	Daemon     Kind = "daemon"
	Link       Kind = "link"      // to the other hosts of the team
	Unreached  Kind = "unreached" // an alert that could not be sent to the owner
	Question   Kind = "question"
	Conflict   Kind = "conflict" // between the work of two agents, or with the branch it lands on
	Unreadable Kind = "unreadable"
)

// kinds are all, those that are shown first first.
var kinds = []Kind{Approval, Dialog, Join, Login, Limit, Budget, Blocked, Unready, Hung, Looping, Dead, Down, Config, Daemon, Link, Unreached, Question, Conflict, Unreadable}

// Kinds returns all kinds, those that are shown first first.
func Kinds() []Kind { return slices.Clone(kinds) }

// phrases are the kinds' texts: a heading, and the verb for one agent and for several.
var phrases = map[Kind]struct{ title, one, many string }{
	Approval:   {"Permission", "asks for permission", "agents ask for permission"},
	Dialog:     {"Dialogs", "waits at a dialog", "agents wait at a dialog"},
	Join:       {"Hosts", "asks to join", "hosts ask to join"},
	Login:      {"Logins", "is not logged in", "agents are not logged in"},
	Limit:      {"Limits", "is not served by its vendor", "agents are not served by their vendor"},
	Budget:     {"Budgets", "is at the end of its budget", "agents are at the end of their budget"},
	Blocked:    {"Blocked", "is blocked", "agents are blocked"},
	Unready:    {"Not ready", "does not get ready", "agents do not get ready"},
	Hung:       {"Hung", "is hung", "agents are hung"},
	Looping:    {"Crashing", "keeps crashing", "agents keep crashing"},
	Dead:       {"Dead", "is dead", "agents are dead"},
	Down:       {"Down", "is down and should be up", "agents are down and should be up"},
	Config:     {"Configuration", "has a mistake", "have mistakes"},
	Daemon:     {"Daemon", "needs you", "need you"},
	Link:       {"Link", "needs you", "need you"},
	Unreached:  {"Alerts", "did not reach you", "did not reach you"},
	Question:   {"Questions", "waits for your answer", "agents wait for your answer"},
	Conflict:   {"Conflicts", "has work that conflicts", "agents have work that conflicts"},
	Unreadable: {"Unreadable messages", "received an unreadable message", "agents received unreadable messages"},
}

// Title returns a heading for needs of the kind.
func (k Kind) Title() string { return phrases[k].title }

// Phrase says what one agent with such a need does.
func (k Kind) Phrase() string { return phrases[k].one }

// Phrase says what the agents with the need do, to be read after their names.
func (n Need) Phrase() string {
	if len(n.Agents) > 1 {
		return strings.TrimPrefix(phrases[n.Kind].many, "agents ")
	}
	return phrases[n.Kind].one
}

// Passes reports whether agents go on working meanwhile, or go on by themselves.
func (k Kind) Passes() bool { return k == Unreadable || k == Limit || k == Conflict }

// Headline names the first need, or how many agents have one of its kind; "" if there is
// none. Beside what can be answered it also names the worst failure, which answering would
// not end.
func Headline(list []Need) string {
	if len(list) == 0 {
		return ""
	}
	line := kindLine(list, list[0].Kind)
	if list[0].Kind != Approval && list[0].Kind != Dialog {
		return line
	}
	for _, k := range []Kind{Dead, Looping, Hung, Unready, Blocked, Login, Limit, Budget, Down} {
		if more := kindLine(list, k); more != "" {
			return line + ", " + more
		}
	}
	return line
}

// kindLine says which agent has a need of the kind, or how many have; "" if none.
func kindLine(list []Need, kind Kind) string {
	of, about := map[agent.ID]bool{}, ""
	for _, n := range list {
		if n.Kind == kind {
			about = n.About
			for _, id := range n.Agents {
				of[id], about = true, string(id)
			}
		}
	}
	switch {
	case about == "":
		return ""
	case len(of) < 2:
		return about + " " + phrases[kind].one
	}
	return fmt.Sprintf("%d %s", len(of), phrases[kind].many)
}

// Who names those that the need concerns.
func (n Need) Who() string {
	if len(n.Agents) == 0 {
		return n.About
	}
	return Names(n.Agents)
}

// Names joins agents' names: "agent0 to agent9, agentinfinity".
func Names(ids []agent.ID) string {
	return agent.Span(slices.SortedFunc(slices.Values(ids), agent.Compare))
}

// What is the tool that an approval is about, and the title of any other need.
func (n Need) What() string { return strings.TrimPrefix(n.Title, permission) }

// maxLine is how much of a text a line of the list has.
const maxLine = 300

// Line describes the need in a line: who, and the text.
func (n Need) Line() string {
	text := envelope.Line(n.Text, maxLine)
	if n.Kind == Approval {
		text, _ = agent.Flat(n.Text, maxLine)
		if n.away {
			dir, _ := agent.Flat(n.Dir, maxLine)
			text = strings.TrimSpace(text + " (in " + dir + ")")
		}
	}
	if text == "" {
		return n.Who() + " " + n.Title
	}
	return n.Who() + " " + n.Title + ": " + text
}

// inLine reports whether [Need.Line] shows all of the text.
func (n Need) inLine() bool {
	line, cut := agent.Flat(n.Text, maxLine)
	return !cut && line == n.Text
}

// How is the command that settles the need, and how to refuse if that is possible.
func (n Need) How() string {
	switch {
	case n.Host != "" && len(n.Options) > 0 && !n.inLine():
		return "`netsky needs " + n.Code + "` shows all of it; then `" + n.Command + "` says yes, --deny refuses"
	case n.Host != "" && len(n.Options) > 0:
		return "`" + n.Command + "` says yes, --deny refuses"
	case n.Host != "":
		return "`" + n.Command + "` shows what settles it"
	case n.Kind == Budget:
		return "`" + n.Command + "` allows as much again, --deny leaves it at that"
	case n.Kind == Dialog && len(n.Options) > 0:
		return "`" + n.Command + "` answers with yes, --deny refuses"
	case len(n.Options) > 0 && !n.inLine():
		return "`netsky needs " + n.Code + "` shows all of it; then `" + n.Command + "` allows it once, --deny refuses"
	case len(n.Options) > 0:
		return "`" + n.Command + "` allows this once, --deny refuses"
	case n.Closed != "":
		return "`" + n.Command + "`: " + n.Closed
	case n.Kind == Limit:
		return "nothing to do: " + n.Otherwise
	}
	if n.Commands[0].Does == compact {
		return "`" + n.Command + "`, then /compact; or `" + n.Commands[1].Line + "`"
	}
	return "`" + n.Command + "`"
}

// compact is what to do about a conversation that is full.
const compact = "Open its terminal, then /compact"

// Next is the command that settles the need, as the next step of `netsky` alone.
func (n Need) Next() string {
	switch {
	case n.AsOf != 0:
		return "netsky link shows since when " + n.Host + " is silent; " + n.Who() + " asks for something there, and is not reached now"
	case n.Host != "" && len(n.Options) > 0:
		return n.Command + " says yes to what " + n.Who() + " asks, --deny refuses; netsky needs shows what that is"
	case n.Host != "":
		return n.Command + " shows what settles it"
	case n.Kind == Budget:
		return n.Command + " allows " + n.Who() + " as much again, --deny leaves it at that; netsky cost shows what was used"
	case n.Kind == Dialog && len(n.Options) > 0:
		return n.Command + " answers what " + n.Who() + " waits at with yes, --deny refuses; netsky needs shows what that is"
	case len(n.Options) > 0:
		return n.Command + " allows once what " + n.Who() + " asks for, --deny refuses; netsky needs shows what that is"
	case n.Closed != "":
		return n.Command + " opens the pane in which " + n.Who() + " asks for something that netsky can't answer: " + n.Closed
	case n.Commands[0].Does == compact:
		return n.Command + ", then /compact; or " + n.Commands[1].Line
	case n.Kind == Limit:
		return n.How()
	}
	if n.Commands[0] == correct {
		return n.Command + " shows the mistake in netsky.toml, which keeps netsky from starting anything"
	}
	if n.Kind == Daemon && n.id[0] == "blind" {
		return n.Command + " looks for what keeps netsky from looking after the agents"
	}
	return n.Command + " " + cmp.Or(map[Kind]string{
		Dialog:     "lets you answer what it waits for; netsky needs shows what that is",
		Join:       "lets " + n.Who() + " into the team, if it shows that code",
		Login:      "opens its pane to log in; its mail waits, and it continues by itself then",
		Unready:    "opens its pane, which shows why it does not get ready",
		Hung:       "ends its turn",
		Looping:    "shows how it ended",
		Dead:       "starts it again",
		Down:       "starts it",
		Daemon:     "starts the daemon again",
		Link:       "shows how the links to the other hosts are",
		Unreached:  "forgets the alert that did not reach you, once you have seen to it",
		Conflict:   "shows whose work conflicts with what",
		Question:   "answers what " + n.Who() + " asks; netsky needs shows that",
		Unreadable: "lists the unreadable messages",
	}[n.Kind], "is the next step: "+n.Otherwise)
}

// Count says how many there are: "3 items need you".
func Count(n int) string {
	if n == 1 {
		return "1 item needs you"
	}
	return fmt.Sprintf("%d items need you", n)
}

// First returns the first need that does not pass by itself; else the first, if any.
func First(list []Need) (first Need, urgent bool) {
	if i := slices.IndexFunc(list, func(n Need) bool { return !n.Kind.Passes() }); i >= 0 {
		return list[i], true
	}
	if len(list) > 0 {
		return list[0], false
	}
	return first, false
}

// Lines are the list as `netsky needs` prints it.
func Lines(list []Need, now time.Time) (lines []string) {
	for _, n := range list {
		how := n.How()
		if !strings.HasSuffix(how, n.Otherwise) {
			how += "; otherwise " + n.Otherwise
		}
		lines = append(lines, fmt.Sprintf("%s  %-10s %5s  %s", n.Code, n.Kind, n.age(now), n.Line()+n.Stale(now)), "       "+how)
	}
	if len(list) == 0 {
		lines = []string{"nothing needs you"}
	}
	return lines
}

// Whole is the need as `netsky needs CODE` prints it.
func (n Need) Whole(now time.Time) []string {
	lines := []string{fmt.Sprintf("%s  %s  %s %s", n.Code, n.Kind, n.Who(), n.Title)}
	add := func(name, text string) {
		if text != "" {
			lines = append(lines, fmt.Sprintf("%-10s %s", name, strings.ReplaceAll(text, "\n", "\n           ")))
		}
	}
	add("text", n.Text)
	add("closed", n.Closed)
	add("reason", n.Reason)
	add("directory", n.Dir)
	if n.Who() != n.About {
		add("about", n.About)
	}
	if n.Since != 0 {
		add("since", n.Since.Time().Local().Format("Mon 2 Jan 15:04:05")+", for "+n.age(now))
	}
	if n.Host != "" {
		add("host", n.Host+n.Stale(now))
	}
	add("otherwise", n.Otherwise)
	for _, c := range n.Commands {
		add("command", c.Line+"  ("+c.Does+")")
	}
	add("digest", n.Digest)
	return lines
}

// age is for how long it has been so: "45s", "12m".
func (n Need) age(now time.Time) string {
	if n.Since == 0 {
		return "-"
	}
	return words.Ago(now.Sub(n.Since.Time()))
}
