package release

import (
	"context"
	"os"
	"slices"
	"strings"
)

// dpkgOwner returns the package to which the file belongs, as dpkg -S and dpkg-divert(1) have it. Where
// /bin is a link to /usr/bin, packages may list the file below either.
func dpkgOwner(ctx context.Context, ask asker, file string) (string, error) {
	name, err := dpkgOwns(ctx, ask, file, "")
	if short := strings.TrimPrefix(file, "/usr"); name == "" && err == nil && short != file && sameFile(file, short) {
		return dpkgOwns(ctx, ask, short, "")
	}
	return name, err
}

func sameFile(a, b string) bool {
	one, err := os.Stat(a)
	other, err2 := os.Stat(b)
	return err == nil && err2 == nil && os.SameFile(one, other)
}

// dpkgOwns asks for one path. A diversion moves the file of every other package than by out of the way:
// dpkg -S names the packages by the path that they list.
func dpkgOwns(ctx context.Context, ask asker, file, but string) (string, error) {
	out, err := ask.about(ctx, "no path found matching pattern", "-S", pattern(file))
	if err != nil {
		return "", err
	}
	var owners []string
	by, from, here := "", "", false
	for line := range strings.Lines(out) {
		line = strings.TrimSuffix(line, "\n")
		if who, path, ok := diversion(line, " from: "); ok {
			by, from, here = who, path, path == file
			continue
		}
		if _, path, ok := diversion(line, " to: "); ok && path == file && but == "" {
			return dpkgOwns(ctx, ask, from, by)
		}
		if list, ok := strings.CutSuffix(line, ": "+file); ok {
			owners = strings.Split(list, ", ")
		}
	}
	for i, name := range owners {
		owners[i], _, _ = strings.Cut(name, ":") // its architecture
	}
	switch {
	case but != "":
		owners = slices.DeleteFunc(owners, func(name string) bool { return name == but })
	case here:
		owners = slices.DeleteFunc(owners, func(name string) bool { return name != by })
	}
	if len(owners) == 0 {
		return "", nil
	}
	return owners[0], nil
}

// diversion parses "diversion by PACKAGE from: PATH", and "local diversion from: PATH", which is of no package.
func diversion(line, direction string) (by, path string, ok bool) {
	who, path, ok := strings.Cut(line, direction)
	if by, diverts := strings.CutPrefix(who, "diversion by "); ok && diverts {
		return by, path, true
	}
	return "local diversion", path, ok && who == "local diversion"
}

// pattern returns a path as dpkg -S takes it: it reads a shell's patterns.
func pattern(path string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(path)
}
