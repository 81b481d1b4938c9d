package cli

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"netsky/agent"
)

// A mode is what Codex agents may do without asking, in Codex's own terms.
type mode struct {
	sandbox, approval string
	words             string
}

// The modes that the first up offers. The words stand on every up line.
var modes = []mode{
	{"danger-full-access", "never", "everything you can do, without asking"},
	{"workspace-write", "on-request", "edit in its directory; ask for the rest"},
	{"read-only", "untrusted", "read; ask for all else"},
}

// modeWords is what the configuration lets Codex agents do, in a few words.
func (c codexConfig) modeWords() string {
	for _, m := range modes {
		if m.sandbox == c.Sandbox && m.approval == c.Approval {
			return m.words
		}
	}
	return fmt.Sprintf("sandbox %s, approval %s", orDash(c.Sandbox), orDash(c.Approval))
}

// consent makes sure that somebody has said what Codex agents may do: in
// netsky.toml, now on the terminal, or by --yes. The answer is written to
// netsky.toml, where it can be read and changed.
func (a *app) consent(h agent.Home, yes bool) error {
	cfg, err := a.cfg()
	if err != nil {
		return err
	}
	if cfg.Codex.Sandbox != "" && cfg.Codex.Approval != "" {
		return nil
	}
	choice := modes[0]
	_, in := terminal(a.in)
	_, out := terminal(a.err)
	switch {
	case yes:
	case in && out:
		m, err := a.askMode()
		if err != nil {
			return err
		}
		choice = m
	default:
		return usagef("what Codex agents may do was never said: set `sandbox` and `approval` under [codex] in %s, or give --yes for full access",
			h.Path(agent.ConfigFile))
	}
	if err := writeMode(h, choice); err != nil {
		return err
	}
	a.config.Codex.Sandbox, a.config.Codex.Approval = choice.sandbox, choice.approval
	a.warn("Codex agents may: %s (written to %s)", choice.words, tilde(a, h.Path(agent.ConfigFile)))
	return nil
}

func (a *app) askMode() (mode, error) {
	fmt.Fprintln(a.err, "What may Codex agents do on this machine without asking you?")
	for i, m := range modes {
		fmt.Fprintf(a.err, "  %d  %s\n", i+1, m.words)
	}
	fmt.Fprintf(a.err, "1, 2 or 3 (anything else starts none): ")
	line, err := bufio.NewReader(a.in).ReadString('\n')
	if err != nil {
		return mode{}, usagef("nothing was chosen: nothing started")
	}
	switch strings.TrimSpace(line) {
	case "1":
		return modes[0], nil
	case "2":
		return modes[1], nil
	case "3":
		return modes[2], nil
	}
	return mode{}, usagef("nothing was chosen: nothing started")
}

// writeMode puts the mode into netsky.toml and leaves the rest of it as it is.
func writeMode(h agent.Home, m mode) error {
	data, err := h.ReadFile(agent.ConfigFile, 1<<20)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	keys := fmt.Sprintf("sandbox = %q\napproval = %q\n", m.sandbox, m.approval)
	lines := bytes.SplitAfter(data, []byte("\n"))
	var out bytes.Buffer
	placed := false
	for _, l := range lines {
		word := strings.TrimSpace(string(l))
		if placed && (strings.HasPrefix(word, "sandbox") || strings.HasPrefix(word, "approval")) && strings.Contains(word, "\"\"") {
			continue // an empty value gives way
		}
		out.Write(l)
		if word == "[codex]" && !placed {
			placed = true
			out.WriteString(keys)
		}
	}
	if !placed {
		if n := out.Len(); n > 0 && !bytes.HasSuffix(out.Bytes(), []byte("\n")) {
			out.WriteByte('\n')
		}
		out.WriteString("\n[codex]\n" + keys)
	}
	if _, err := parseConfig(out.Bytes()); err != nil {
		return fmt.Errorf("%s: the answer could not be put in (%w): set sandbox = %q and approval = %q under [codex] by hand",
			h.Path(agent.ConfigFile), err, m.sandbox, m.approval)
	}
	return h.WriteFile(agent.ConfigFile, out.Bytes(), true)
}
