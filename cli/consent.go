package cli

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"netsky/agent"
	"netsky/agent/home"
	"netsky/spawn"
)

// A warrant is what somebody has to say about a runtime before agents run on
// it: what they may do without asking, in the runtime's own terms.
type warrant struct {
	runtime string // and the table of netsky.toml
	name    string // as people write it
	modes   []mode // the first is full access
	said    func(config) []string
	say     func(*config, []string)
	keys    []string // in the table; a mode has a value for each
}

// A mode is one answer. The words stand on every up line.
type mode struct {
	values []string
	words  string
}

const (
	mayAll  = "everything you can do, without asking"
	mayEdit = "edit in its directory; ask for the rest"
	mayRead = "read; ask for all else"
)

// warrants are the runtimes that must be given one.
func warrants() []warrant {
	return []warrant{
		{
			runtime: "claude", name: "Claude Code", keys: []string{"permission_mode"},
			modes: []mode{{[]string{"bypassPermissions"}, mayAll}, {[]string{"acceptEdits"}, mayEdit}, {[]string{"manual"}, mayRead}},
			said:  func(c config) []string { return []string{c.Claude.PermissionMode} },
			say:   func(c *config, v []string) { c.Claude.PermissionMode = v[0] },
		},
		{
			runtime: "codex", name: "Codex", keys: []string{"sandbox", "approval"},
			modes: []mode{
				{[]string{"danger-full-access", "never"}, mayAll},
				{[]string{"workspace-write", "on-request"}, mayEdit},
				{[]string{"read-only", "untrusted"}, mayRead},
			},
			said: func(c config) []string { return []string{c.Codex.Sandbox, c.Codex.Approval} },
			say:  func(c *config, v []string) { c.Codex.Sandbox, c.Codex.Approval = v[0], v[1] },
		},
	}
}

func warrantOf(runtime string) (warrant, bool) {
	list := warrants()
	i := slices.IndexFunc(list, func(w warrant) bool { return w.runtime == runtime })
	if i < 0 {
		return warrant{}, false
	}
	return list[i], true
}

// may is what the configuration lets agents of a runtime do, in a few words; ""
// for a runtime that needs no warrant.
func (c config) may(runtime string) string {
	w, ok := warrantOf(runtime)
	if !ok {
		return ""
	}
	said := w.said(c)
	for _, m := range w.modes {
		if slices.Equal(m.values, said) {
			return "may " + m.words
		}
	}
	var parts []string
	for i, key := range w.keys {
		parts = append(parts, strings.ReplaceAll(key, "_", " ")+" "+orDash(said[i]))
	}
	return strings.Join(parts, ", ")
}

// A consent is an answer that is to be written to netsky.toml.
type consent struct {
	w warrant
	m mode
}

// consents makes sure that somebody has said what the planned agents may do: in
// netsky.toml, now on the terminal, or by --yes. An agent can say nothing of it.
// What was said now holds for this process; recordConsents puts it on file.
func (a *app) consents(h home.Dir, plans []spawn.Plan, self agent.ID, yes bool) (list []consent, err error) {
	cfg, err := a.cfg()
	if err != nil {
		return nil, err
	}
	in := bufio.NewReader(a.in)
	for _, w := range warrants() {
		needed := slices.ContainsFunc(plans, func(p spawn.Plan) bool { return p.Runtime.Name() == w.runtime })
		if !needed || !slices.Contains(w.said(cfg), "") {
			continue
		}
		if self.IsAgent() {
			return nil, usagef("what %s agents may do was never said, and it is the owner's to say: by the owner's next `netsky up`, or as `%s` under [%s] in %s",
				w.name, strings.Join(w.keys, "` and `"), w.runtime, h.Path(home.ConfigFile))
		}
		m, err := a.consent(h, w, in, yes)
		if err != nil {
			return nil, err
		}
		w.say(&a.config, m.values)
		list = append(list, consent{w, m})
	}
	return list, nil
}

func (a *app) consent(h home.Dir, w warrant, in *bufio.Reader, yes bool) (mode, error) {
	if yes {
		return w.modes[0], nil
	}
	_, tty := terminal(a.in)
	if _, out := terminal(a.err); tty && out {
		return a.askMode(w, in)
	}
	return mode{}, usagef("what %s agents may do was never said: set `%s` under [%s] in %s, or give --yes for full access",
		w.name, strings.Join(w.keys, "` and `"), w.runtime, h.Path(home.ConfigFile))
}

func (a *app) askMode(w warrant, in *bufio.Reader) (mode, error) {
	fmt.Fprintf(a.err, "What may %s agents do on this machine without asking you?\n", w.name)
	for i, m := range w.modes {
		fmt.Fprintf(a.err, "  %d  %s\n", i+1, m.words)
	}
	fmt.Fprintf(a.err, "1, 2 or 3 (anything else starts none): ")
	line, err := in.ReadString('\n')
	if err != nil {
		return mode{}, usagef("nothing was chosen: nothing started")
	}
	switch strings.TrimSpace(line) {
	case "1":
		return w.modes[0], nil
	case "2":
		return w.modes[1], nil
	case "3":
		return w.modes[2], nil
	}
	return mode{}, usagef("nothing was chosen: nothing started")
}

// recordConsents writes the answers to netsky.toml, where they can be read and
// changed.
func (a *app) recordConsents(h home.Dir, list []consent) error {
	for _, c := range list {
		if err := writeMode(h, c.w, c.m); err != nil {
			return err
		}
		a.warn("%s agents may: %s (written to %s)", c.w.name, c.m.words, tilde(a, h.Path(home.ConfigFile)))
	}
	return nil
}

// writeMode puts the mode into netsky.toml and leaves the rest of it as it is.
func writeMode(h home.Dir, w warrant, m mode) error {
	data, err := h.ReadFile(home.ConfigFile, 1<<20)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var keys string
	for i, key := range w.keys {
		keys += fmt.Sprintf("%s = %q\n", key, m.values[i])
	}
	var out bytes.Buffer
	placed, within := false, false
	for _, l := range bytes.SplitAfter(data, []byte("\n")) {
		word := strings.TrimSpace(string(l))
		if strings.HasPrefix(word, "[") {
			head, _, _ := strings.Cut(word, "#")
			within = strings.TrimSpace(head) == "["+w.runtime+"]"
		}
		if within && emptyValue(word, w.keys) {
			continue // an empty value gives way
		}
		out.Write(l)
		if within && !placed {
			if !bytes.HasSuffix(l, []byte("\n")) {
				out.WriteByte('\n')
			}
			placed = true
			out.WriteString(keys)
		}
	}
	if !placed {
		if n := out.Len(); n > 0 && !bytes.HasSuffix(out.Bytes(), []byte("\n")) {
			out.WriteByte('\n')
		}
		out.WriteString("\n[" + w.runtime + "]\n" + keys)
	}
	if _, err := parseConfig(out.Bytes()); err != nil {
		return fmt.Errorf("%s: the answer could not be put in (%w): set it by hand under [%s]: %s",
			h.Path(home.ConfigFile), err, w.runtime, strings.ReplaceAll(strings.TrimSpace(keys), "\n", ", "))
	}
	return h.WriteFile(home.ConfigFile, out.Bytes(), true)
}

// emptyValue reports whether the line sets one of the keys to "".
func emptyValue(line string, keys []string) bool {
	key, value, ok := strings.Cut(line, "=")
	return ok && slices.Contains(keys, strings.TrimSpace(key)) && strings.HasPrefix(strings.TrimSpace(value), `""`)
}
