package view

import (
	"os"
	"path/filepath"
	"strings"

	"netsky/internal/advice"
	"netsky/internal/words"
)

// A Caller is a person who types commands.
type Caller struct{ Getenv func(string) string }

// Called returns the text with its commands as they work here: with a path if netsky
// on PATH is another program or missing.
func (c Caller) Called(text string) string {
	cmd := c.Command()
	if cmd == "netsky" {
		return text
	}
	text = strings.NewReplacer("`netsky ", "`"+cmd+" ", "\n  netsky ", "\n  "+cmd+" ", "; netsky ", "; "+cmd+" ", "&& netsky ", "&& "+cmd+" ", "netsky down, then netsky up", cmd+" down, then "+cmd+" up").Replace(text)
	if rest, ok := strings.CutPrefix(text, "netsky "); ok {
		return cmd + " " + rest
	}
	return text
}

// Command returns what a person types to run this netsky.
func (c Caller) Command() string {
	file, err := os.Executable()
	if err != nil {
		return "netsky"
	}
	own, err := os.Stat(file)
	if err != nil {
		return "netsky"
	}
	is := func(path string) bool {
		info, err := os.Stat(path)
		return err == nil && os.SameFile(info, own)
	}
	for _, dir := range filepath.SplitList(c.Getenv("PATH")) {
		path := filepath.Join(dir, "netsky")
		info, err := os.Stat(path)
		if err != nil || info.IsDir() || info.Mode()&0o111 == 0 {
			continue
		}
		if os.SameFile(info, own) {
			return "netsky"
		}
		break // another one
	}
	for _, dir := range c.LinkDirs() {
		if path := filepath.Join(dir, "netsky"); is(path) {
			return c.typed(path)
		}
	}
	return c.typed(file)
}

// typed returns a path as a person types it.
func (c Caller) typed(path string) string {
	if short := words.Tilde(c.Getenv("HOME"), path); advice.Word(short[1:]) == short[1:] {
		return short
	}
	return advice.Word(path)
}

// LinkDirs returns where scripts/up links netsky, whether or not PATH has them.
func (c Caller) LinkDirs() []string {
	list := []string{"/usr/local/bin"}
	if home := c.Getenv("HOME"); filepath.IsAbs(home) {
		list = append(list, filepath.Join(home, ".local/bin"))
	}
	return list
}
