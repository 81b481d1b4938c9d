package release

import (
	"cmp"
	"regexp"
	"strings"
	"sync"
)

// semver is a version as https://semver.org/spec/v2.0.0.html has it.
var semver = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?$`)
})

// Compare returns -1, 0 or 1, as a comes before b, is the same or comes after it by the precedence of
// Semantic Versioning: "0.2.0-rc.1" comes before "0.2.0", and what follows a "+" does not count. What is
// no version comes before every version.
func Compare(a, b string) int {
	v, w := semver().FindStringSubmatch(a), semver().FindStringSubmatch(b)
	if v == nil || w == nil {
		return cmp.Compare(len(v), len(w))
	}
	for i := 1; i <= 3; i++ {
		if c := compareField(v[i], w[i]); c != 0 {
			return c
		}
	}
	if v[4] == "" || w[4] == "" { // a release comes after all that precede it
		return cmp.Compare(len(w[4]), len(v[4]))
	}
	pre, other := strings.Split(v[4], "."), strings.Split(w[4], ".")
	for i := range min(len(pre), len(other)) {
		if c := compareField(pre[i], other[i]); c != 0 {
			return c
		}
	}
	return cmp.Compare(len(pre), len(other))
}

// compareField compares numbers by their value, words by their bytes, and a number comes before a word.
func compareField(a, b string) int {
	const digits = "0123456789"
	numA, numB := strings.Trim(a, digits) == "", strings.Trim(b, digits) == ""
	switch {
	case numA && numB:
		a, b = strings.TrimLeft(a, "0"), strings.TrimLeft(b, "0")
		return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b))
	case numA:
		return -1
	case numB:
		return 1
	}
	return strings.Compare(a, b)
}
