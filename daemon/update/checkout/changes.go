package checkout

import (
	"regexp"
	"strings"

	"netsky/daemon/update/release"
)

// Changes returns the part of a CHANGELOG that is of versions newer than that one: the sections whose headings
// name them ("## 0.2.0", "## [0.2.0] - 2026-11-27"), and those above all of them that name none.
func Changes(changelog, version string) string {
	heading := regexp.MustCompile(`^## \[?([0-9][0-9A-Za-z.+-]*)`)
	var text strings.Builder
	in, versions := false, false
	for line := range strings.Lines(changelog) {
		if m := heading.FindStringSubmatch(line); m != nil {
			in, versions = release.Compare(m[1], version) > 0, true
		} else if strings.HasPrefix(line, "## ") && !versions {
			in = true
		}
		if in {
			text.WriteString(line)
		}
	}
	return strings.TrimSpace(text.String())
}
