package access

import (
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
)

// Words returns the browser and its system by name, or its User-Agent quoted if it is
// unknown.
func (b Browser) Words() string {
	agent := b.Name
	system := "unknown system"
	for _, s := range [][2]string{{"Android", "Android"}, {"iPhone", "iPhone"}, {"iPad", "iPad"}, {"Mac OS X", "macOS"}, {"Windows", "Windows"}, {"CrOS", "ChromeOS"}, {"Linux", "Linux"}} {
		if strings.Contains(agent, s[0]) {
			system = s[1]
			break
		}
	}
	for _, known := range [][2]string{{"Edg/", "Edge"}, {"OPR/", "Opera"}, {"Firefox/", "Firefox"}, {"Chrome/", "Chrome"}, {"Version/", "Safari"}} {
		if strings.Contains(agent, known[0]) {
			return known[1] + ", " + system
		}
	}
	if agent == "" {
		return "unnamed browser"
	}
	return strconv.Quote(agent)
}

// Tunnel returns the ssh command that makes the dashboard reachable from the machine
// from which a person is logged in, or "" if they are not or don't need it. connection
// is their SSH_CONNECTION, user their name here.
func (l Link) Tunnel(connection, user string) string {
	// SSH_CONNECTION holds: client address, client port, our address, our port.
	f := strings.Fields(connection)
	u, err := url.Parse(l.URL)
	if len(f) != 4 || err != nil || !net.ParseIP(u.Hostname()).IsLoopback() {
		return ""
	}
	host := f[2]
	if user != "" {
		host = user + "@" + host
	}
	if f[3] != "22" {
		host = "-p " + f[3] + " " + host
	}
	return fmt.Sprintf("ssh -N -L %s:%s %s", u.Port(), u.Host, host)
}
