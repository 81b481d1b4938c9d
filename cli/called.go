package cli

import (
	"os"
	"path/filepath"
	"strings"
)

// called writes the commands in a text for people as they work here: with a path
// where netsky on PATH is another program, or none.
func (a *app) called(text string) string {
	cmd := a.command()
	if cmd == "netsky" {
		return text
	}
	text = strings.NewReplacer("`netsky ", "`"+cmd+" ", "\n  netsky ", "\n  "+cmd+" ", "; netsky ", "; "+cmd+" ", "&& netsky ", "&& "+cmd+" ", "netsky down, then netsky up", cmd+" down, then "+cmd+" up").Replace(text)
	if rest, ok := strings.CutPrefix(text, "netsky "); ok {
		return cmd + " " + rest
	}
	return text
}

// command is what a person types to run this netsky.
func (a *app) command() string {
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
	for _, dir := range filepath.SplitList(a.getenv("PATH")) {
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
	for _, dir := range a.linkDirs() {
		if path := filepath.Join(dir, "netsky"); is(path) {
			return a.typed(path)
		}
	}
	return a.typed(file)
}

// typed is a path as a person types it.
func (a *app) typed(path string) string {
	if short := tilde(a, path); shellWord(short[1:]) == short[1:] {
		return short
	}
	return shellWord(path)
}

// linkDirs are where scripts/up links netsky, whether or not PATH has them.
func (a *app) linkDirs() []string {
	list := []string{"/usr/local/bin"}
	if home := a.getenv("HOME"); filepath.IsAbs(home) {
		list = append(list, filepath.Join(home, ".local/bin"))
	}
	return list
}
