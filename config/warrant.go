package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"netsky/home"
)

// A Warrant is what the owner must decide about a runtime before agents run on it: what
// they may do without asking, in the runtime's own terms.
type Warrant struct {
	Runtime string   // and the table of netsky.toml
	Name    string   // as printed
	Modes   []Mode   // the first is full access
	Keys    []string // in the table; a mode has a value for each, and one for the key also, or ""
	said    func(*Config) []*string
}

// A Mode is one answer. Every line of an up shows its words.
type Mode struct {
	Words  string
	More   string // said where it is asked for
	values []string
}

const (
	mayAll      = "do everything you can do, without asking"
	mayEdit     = "edit in its directory, commit and check in its worktree; ask for the rest"
	mayEditOnly = "edit in its directory; ask for the rest" // an earlier netsky's answer
	mayRead     = "read; ask for all else"

	editMeans = "in a worktree of its own: plain `git add` and `git commit`, which run your hooks, and exactly your check command,\nonce you have agreed to it, which runs what the agent has written"
)

// also is the key of a table that a mode may set beside those that are needed.
const also = "commit_and_check"

// Warrants returns the warrants of all runtimes that need one.
func Warrants() []Warrant {
	return []Warrant{
		{
			Runtime: "claude", Name: "Claude Code", Keys: []string{"permission_mode"},
			Modes: []Mode{
				{mayAll, "", []string{"bypassPermissions", ""}}, {mayEdit, editMeans, []string{"acceptEdits", Allow}}, {mayRead, "", []string{"manual", ""}},
			},
			said: func(c *Config) []*string { return []*string{&c.Claude.PermissionMode, &c.Claude.CommitAndCheck} },
		},
		{
			Runtime: "codex", Name: "Codex", Keys: []string{"sandbox", "approval"},
			Modes: []Mode{
				{mayAll, "", []string{"danger-full-access", "never", ""}},
				{mayEdit, editMeans, []string{"workspace-write", "on-request", Allow}},
				{mayRead, "", []string{"read-only", "untrusted", ""}},
			},
			said: func(c *Config) []*string {
				return []*string{&c.Codex.Sandbox, &c.Codex.Approval, &c.Codex.CommitAndCheck}
			},
		},
	}
}

// Given reports whether the configuration gives the warrant.
func (w Warrant) Given(c Config) bool { return !slices.Contains(w.of(c)[:len(w.Keys)], "") }

func (w Warrant) of(c Config) (values []string) {
	for _, v := range w.said(&c) {
		values = append(values, *v)
	}
	if last := len(values) - 1; values[last] == "ask" {
		values[last] = ""
	}
	return values
}

// Give sets the mode in the configuration, but not in the file.
func (w Warrant) Give(c *Config, m Mode) {
	for i, v := range w.said(c) {
		*v = m.values[i]
	}
}

// May returns what agents of a runtime may do, in a few words; "" for a runtime that
// needs no warrant.
func (c Config) May(runtime string) string {
	list := Warrants()
	i := slices.IndexFunc(list, func(w Warrant) bool { return w.Runtime == runtime })
	if i < 0 {
		return ""
	}
	w := list[i]
	said := w.of(c)
	for _, m := range w.Modes {
		if slices.Equal(m.values, said) {
			return "may " + m.Words
		}
	}
	if said = said[:len(w.Keys)]; slices.Equal(w.Modes[1].values[:len(said)], said) {
		return "may " + mayEditOnly
	}
	var parts []string
	for i, key := range w.Keys {
		parts = append(parts, strings.ReplaceAll(key, "_", " ")+" "+cmp.Or(said[i], "-"))
	}
	return strings.Join(parts, ", ")
}

// Write sets the mode in the home's netsky.toml and leaves the rest of it as it is.
func (w Warrant) Write(h home.Dir, m Mode) error {
	keys, values := w.Keys, m.values
	if last := len(values) - 1; values[last] != "" {
		keys = append(slices.Clone(keys), also)
	} else {
		values = values[:last]
	}
	return set(h, w.Runtime, keys, values, func(line string) bool { return emptyValue(line, keys) }, // an empty value is replaced
		func(c Config) bool { return slices.Equal(w.of(c)[:len(values)], values) })
}

// SetListen sets the dashboard's address in the home's netsky.toml and leaves the rest of it as it is.
func SetListen(h home.Dir, addr string) error {
	return set(h, "dashboard", []string{"listen"}, []string{addr}, func(line string) bool {
		key, _, ok := strings.Cut(line, "=")
		return ok && strings.TrimSpace(key) == "listen"
	}, func(c Config) bool { return c.Dashboard.Listen == addr })
}

// SetCheck sets the check command in the home's netsky.toml and leaves the rest of it as it is.
func SetCheck(h home.Dir, text string) error {
	return set(h, "work", []string{"check"}, []string{text}, func(line string) bool {
		key, _, ok := strings.Cut(line, "=")
		return ok && strings.TrimSpace(key) == "check"
	}, func(c Config) bool { return c.Work.Check == text })
}

// set writes the values into a table of the home's netsky.toml, in place of the lines of that table that are
// replaced. It writes nothing if the file would not mean that.
func set(h home.Dir, table string, names, values []string, replaced func(line string) bool, means func(Config) bool) error {
	data, err := h.ReadFile(home.ConfigFile, maxFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var keys string
	for i, key := range names {
		keys += fmt.Sprintf("%s = %q\n", key, values[i])
	}
	var out bytes.Buffer
	placed, within := false, false
	for _, l := range bytes.SplitAfter(data, []byte("\n")) {
		word := strings.TrimSpace(string(l))
		if strings.HasPrefix(word, "[") {
			head, _, _ := strings.Cut(word, "#")
			within = strings.TrimSpace(head) == "["+table+"]"
		}
		if within && replaced(word) {
			continue
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
		out.WriteString("\n[" + table + "]\n" + keys)
	}
	c, err := Parse(out.Bytes())
	if err == nil && !means(c) {
		err = errors.New("the file would not mean that")
	}
	if err != nil {
		return fmt.Errorf("%s: could not save the answer (%w); set it by hand under [%s]: %s",
			h.Path(home.ConfigFile), err, table, strings.ReplaceAll(strings.TrimSpace(keys), "\n", ", "))
	}
	return h.WriteFile(home.ConfigFile, out.Bytes(), true)
}

// emptyValue reports whether the line sets one of the keys to "".
func emptyValue(line string, keys []string) bool {
	key, value, ok := strings.Cut(line, "=")
	return ok && slices.Contains(keys, strings.TrimSpace(key)) && strings.HasPrefix(strings.TrimSpace(value), `""`)
}
