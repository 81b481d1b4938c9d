package access

import (
	"fmt"
	"os"
	"os/user"
	"strconv"
)

// A Holder is who listens on a port, as far as the kernel says.
type Holder struct {
	PID     int    // 0: unknown; another user's processes can't be looked into
	Program string // its name
	Dir     string // its working directory, which for a netsky daemon is its home
	UID     int    // -1: unknown
}

func (h Holder) String() string {
	text := "another program"
	switch {
	case h.Program == "netsky" && h.Dir != "":
		text = fmt.Sprintf("the netsky of %s (pid %d)", h.Dir, h.PID)
	case h.PID > 0:
		text = fmt.Sprintf("%s (pid %d)", h.Program, h.PID)
	}
	if h.UID < 0 || h.UID == os.Getuid() {
		return text
	}
	name := ""
	if u, err := user.LookupId(strconv.Itoa(h.UID)); err == nil {
		name = u.Username + ", "
	}
	return text + fmt.Sprintf(" of another user (%suid %d)", name, h.UID)
}
