package bridge

import (
	"slices"
	"strings"
)

// Silent returns why no text can come from a handle that may speak; empty if one can, as far as its
// form tells.
func Silent(handle string, telegram bool) string {
	digits := strings.Trim(handle, "0123456789") == ""
	_, domain, mail := strings.Cut(handle, "@")
	number, plus := strings.CutPrefix(handle, "+")
	switch {
	case telegram && !digits:
		return "Telegram's users are known by their numeric id, as 123456789"
	case telegram && (strings.HasPrefix(handle, "0") || len(handle) > 16):
		return "no user of Telegram has such an id"
	case telegram:
	case digits:
		return "in Messages, telephone numbers begin with + and the country's code, as +15550100"
	case plus && (len(number) < 7 || strings.HasPrefix(number, "0")):
		return "a telephone number has the country's code behind the +, and seven digits or more, as +15550100"
	case plus && trunk(number):
		return "the 0 behind the country's code is dialled only within the country"
	case mail && (!strings.Contains(domain, ".") || slices.Contains(strings.Split(domain, "."), "")):
		return "its domain is none, as that of me@example.org"
	}
	return ""
}

// trunk reports whether a number has the 0 that is dialled within a country, where numbers abroad
// never have one. In others, such as Italy, they do.
func trunk(number string) bool {
	return slices.ContainsFunc(strings.Fields("20 27 30 31 32 33 40 41 43 44 46 49 60 61 62 63 64 66 81 82 84 86 90 91 92 94 351 353 358 372 380 381 385 386 420 421 972"),
		func(country string) bool { return strings.HasPrefix(number, country+"0") })
}
