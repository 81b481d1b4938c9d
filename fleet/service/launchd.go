package service

import (
	"encoding/xml"
	"fmt"
	"path/filepath"
	"strings"
)

// launchd returns two agents of the user's graphical session, in which Claude Code's login
// can be read: one that runs when it begins, one each minute. With AbandonProcessGroup,
// launchd leaves alone what they start.
func (o Options) launchd() plan {
	dir := filepath.Join(o.UserHome, "Library", "LaunchAgents")
	label := "netsky." + o.name()
	domain := fmt.Sprintf("gui/%d", o.User)
	names := []string{label, label + ".tick"}
	files := []File{
		{filepath.Join(dir, names[0]+".plist"), o.plist(names[0], "	<key>RunAtLoad</key>\n	<true/>\n", "service", "run")},
		{filepath.Join(dir, names[1]+".plist"), o.plist(names[1], "	<key>StartInterval</key>\n	<integer>60</integer>\n", "watchdog", "tick")},
	}
	p := plan{
		files: files,
		states: map[string][]string{
			"enabled": {"launchctl", "print", domain + "/" + names[0]},
			"active":  {"launchctl", "print", domain + "/" + names[1]},
		},
		note: "it begins when you log in at the screen; macOS gives no program your keychain before that",
	}
	for i, f := range files {
		p.before = append(p.before, []string{"launchctl", "bootout", domain + "/" + names[i]})
		p.on = append(p.on, []string{"launchctl", "bootstrap", domain, f.Path})
		p.off = append(p.off, []string{"launchctl", "bootout", domain + "/" + names[i]})
	}
	return p
}

func (o Options) plist(label, when string, args ...string) string {
	var b strings.Builder
	line := func(indent int, tag, text string) {
		b.WriteString(strings.Repeat("\t", indent) + "<" + tag + ">" + escape(text) + "</" + tag + ">\n")
	}
	b.WriteString(xml.Header + comment(o.mark()) + "\n")
	b.WriteString(`<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">` + "\n")
	b.WriteString("<plist version=\"1.0\">\n<dict>\n")
	line(1, "key", "Label")
	line(1, "string", label)
	line(1, "key", "ProgramArguments")
	b.WriteString("\t<array>\n")
	for _, a := range append([]string{o.Binary}, args...) {
		line(2, "string", a)
	}
	b.WriteString("\t</array>\n")
	line(1, "key", "EnvironmentVariables")
	b.WriteString("\t<dict>\n")
	for _, e := range o.environ() {
		name, value, _ := strings.Cut(e, "=")
		line(2, "key", name)
		line(2, "string", value)
	}
	b.WriteString("\t</dict>\n" + when)
	b.WriteString("\t<key>AbandonProcessGroup</key>\n\t<true/>\n")
	line(1, "key", "LimitLoadToSessionType")
	line(1, "string", "Aqua")
	b.WriteString("</dict>\n</plist>\n")
	return b.String()
}

// comment returns an XML comment, which can't contain two dashes in a row.
func comment(s string) string {
	return "<!-- " + strings.ReplaceAll(s, "--", "-&#45;") + " -->"
}

func escape(s string) string {
	var b strings.Builder
	xml.EscapeText(&b, []byte(s)) // writes to memory
	return b.String()
}
