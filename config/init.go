package config

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"regexp"
	"strings"
	"sync"

	"netsky/home"
)

// Init writes [Sample]; into a netsky.toml that is there, the lines of it that the file lacks. Nothing else
// of that file changes. It reports whether there was one, and whether anything was written.
func Init(h home.Dir) (there, written bool, err error) {
	have, err := h.ReadFile(home.ConfigFile, maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return false, true, h.WriteFile(home.ConfigFile, Sample, true)
	}
	if err != nil {
		return true, false, err
	}
	before, err := Parse(have)
	if err != nil {
		return true, false, fmt.Errorf("%s: left as it is: %w", h.Path(home.ConfigFile), err)
	}
	full := complete(string(have))
	if full == string(have) {
		return true, false, nil
	}
	after, err := Parse([]byte(full))
	if err == nil && !reflect.DeepEqual(before, after) {
		err = errors.New("with the other keys it would not mean the same")
	}
	if err != nil {
		return true, false, fmt.Errorf("%s: left as it is: %w", h.Path(home.ConfigFile), err)
	}
	return true, true, h.WriteFile(home.ConfigFile, []byte(full), true)
}

// complete adds to the text of a netsky.toml what only the sample has: missing keys to the tables that are there,
// then the paragraphs of the sample that are missing.
func complete(have string) string {
	paragraphs := strings.Split(strings.TrimSpace(string(bytes.TrimSpace(Sample))), "\n\n")
	text, rest := have, ""
	for i, p := range paragraphs {
		table, body, _ := strings.Cut(p, "\n")
		switch {
		case strings.HasPrefix(p, "["):
			if from, to, ok := tableIn(text, tableName(table)); ok {
				text = text[:to] + missing(text[from:to], body) + text[to:]
				continue
			}
		case strings.Contains(have, p):
			continue
		case i == 0:
			text = p + "\n\n" + strings.TrimLeft(text, "\n")
			continue
		}
		rest += "\n" + p + "\n"
	}
	if rest != "" && text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return text + rest
}

// tableName returns the name of the table that a line begins, "" if it begins none.
func tableName(line string) string {
	head, _, _ := strings.Cut(line, "#")
	if head = strings.TrimSpace(head); !strings.HasPrefix(head, "[") || !strings.HasSuffix(head, "]") {
		return ""
	}
	return strings.Trim(head, "[] ")
}

// tableIn finds the lines of a table behind its head, without blank ones at its end.
func tableIn(text, name string) (from, to int, ok bool) {
	at := 0
	for line := range strings.SplitAfterSeq(text, "\n") {
		at += len(line)
		switch {
		case !ok && tableName(line) == name:
			from, to, ok = at, at, true
		case ok && strings.HasPrefix(strings.TrimSpace(line), "["):
			return from, to, ok
		case ok && strings.TrimSpace(line) != "":
			to = at
		}
	}
	return from, to, ok
}

var commentedKey = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^# ([a-z_]+) = `) })

// missing returns the lines of the sample's table whose keys the table does not have, commented out or not.
func missing(have, sample string) (lines string) {
	add := false
	for line := range strings.SplitSeq(sample, "\n") {
		if key := commentedKey().FindStringSubmatch(line); key != nil { // else it continues the comment above
			add = !regexp.MustCompile(`(?m)^[ \t#]*` + key[1] + `[ \t]*=`).MatchString(have)
		}
		if add {
			lines += line + "\n"
		}
	}
	if lines != "" && have != "" && !strings.HasSuffix(have, "\n") {
		lines = "\n" + lines
	}
	return lines
}
