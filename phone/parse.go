package phone

import (
	"regexp"
	"strconv"
	"strings"
	"sync"
	"unicode"

	"netsky/agent"
)

// The things that the owner can ask for by text. Anything else is a message to an agent.
const (
	askMessage = "message"
	askAnswer  = "answer"
	askStatus  = "status"
	askNeeds   = "needs"
	askHelp    = "help"
	askStop    = "stop"
	askPeek    = "peek"
	askWhom    = "whom" // stop or peek, without an agent
)

// An ask is what a text of the owner's asks for.
type ask struct {
	what  string
	agent agent.ID // stop, peek, and a message to a named agent
	named bool     // the message names its agent
	code  string   // answer, and needs of one item
	allow bool
	lines int // peek
	text  string
}

const (
	peekLines = 20
	mostLines = 200
)

// The whole text has to be a command: a sentence that contains one is a message.
var (
	answerForm = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^(?i:(yes|y|allow|no|n|deny))[ ,:]+([a-zA-Z]{5}(?:@[0-9a-zA-Z-]+)?)[.!]?$`)
	})
	bareForm  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(?i:yes|y|allow|no|n|deny)[.!]?$`) })
	slashForm = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^/([a-zA-Z]+)(?:@[0-9a-zA-Z_]+)?(|\s.*)$`) })
	agentForm = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^(?i:(?:agent ?)?((?:[0-9]{1,4}|infinity)(?:@[0-9a-z-]+)?))$`)
	})
	namedForm = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^(?i:(?:agent ?((?:[0-9]{1,4}|infinity)(?:@[0-9a-z-]+)?)|((?:[0-9]{1,4}|infinity)@[0-9a-z-]+))) ?[:,][ \t\r\n]*`)
	})
)

// parse returns what a text asks for. As Telegram writes commands, they begin with a slash, and may
// name the bot.
func parse(text string) ask {
	text = strings.TrimFunc(text, func(r rune) bool { return unicode.IsSpace(r) || unicode.Is(unicode.Cf, r) }) // marks of direction
	if m := slashForm().FindStringSubmatch(text); m != nil {
		if strings.EqualFold(m[1], "start") { // its first one; a link to the bot adds a word
			return ask{what: askHelp}
		}
		if a := command(m[1] + m[2]); a.what != askMessage {
			return a
		}
	}
	return command(text)
}

// command returns what a text without a slash asks for.
func command(text string) ask {
	if m := answerForm().FindStringSubmatch(text); m != nil {
		yes := strings.ContainsAny(m[1][:1], "yYaA")
		return ask{what: askAnswer, code: strings.ToLower(m[2]), allow: yes}
	}
	words := strings.Fields(text)
	if len(words) == 0 || len(words) > 4 || len(text) > 60 {
		return message(text)
	}
	verb, rest := strings.ToLower(words[0]), words[1:]
	if verb == "interrupt" { // as the verb at the computer is called
		verb = askStop
	}
	switch {
	case len(rest) == 0 && (verb == askStop || verb == askPeek):
		return ask{what: askWhom, text: verb}
	case len(rest) == 0 && (verb == askStatus || verb == askNeeds || verb == askHelp):
		return ask{what: verb}
	case verb == askNeeds && len(rest) == 1 && code(rest[0]):
		return ask{what: askNeeds, code: strings.ToLower(rest[0])}
	case verb != askStop && verb != askPeek:
		return message(text)
	}
	lines := 0
	if n := len(rest) - 1; verb == askPeek && n > 0 {
		if k, err := strconv.Atoi(rest[n]); err == nil && agentForm().MatchString(strings.Join(rest[:n], " ")) {
			lines, rest = min(max(k, 1), mostLines), rest[:n]
		}
	}
	if m := agentForm().FindStringSubmatch(strings.Join(rest, " ")); m != nil {
		if id, err := agent.ParseArgAddress(strings.ToLower(m[1])); err == nil {
			if lines == 0 {
				lines = peekLines
			}
			return ask{what: verb, agent: id, lines: lines}
		}
	}
	return message(text)
}

// message returns a message to the agent that it names first, else to agent0.
func message(text string) ask {
	if m := namedForm().FindStringSubmatch(text); m != nil {
		if id, err := agent.ParseArgAddress(strings.ToLower(m[1] + m[2])); err == nil {
			return ask{what: askMessage, agent: id, named: true, text: text[len(m[0]):]}
		}
	}
	return ask{what: askMessage, agent: agent.Root, text: text}
}

// code reports whether a word may be an item's code: abcde, or abcde@build1.
func code(s string) bool {
	s, host, remote := strings.Cut(s, "@")
	if remote && !agent.IsHost(strings.ToLower(host)) {
		return false
	}
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ" // not all that is one of them in lower case
	return len(s) == 5 && strings.Trim(s, letters) == ""
}
