package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"netsky/home"
	"netsky/internal/proc"
)

// errHomeGone ends a daemon whose home has been removed, or removed and created again: its
// work there would be useless, and keep another daemon from starting.
var errHomeGone = errors.New("the home has been removed")

// homeEvery is how often the daemon checks that its home and its files exist.
const homeEvery = time.Second

// home returns when the home is no longer ours. It restores what somebody removes of run/:
// without its socket the daemon would run on, and nobody could reach or end it.
func (d *daemon) home(ctx context.Context) error {
	var url []byte // what the dashboard has written into its file
	for missing := 0; missing < 3; {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(proc.Tick(homeEvery)):
		}
		missing++ // a full descriptor table is temporary
		if !d.lock.Here() {
			continue
		}
		missing = 0
		removed, err := d.lock.Keep()
		if err != nil {
			d.o.Log.Warn("lock", "error", err)
		}
		if removed {
			d.o.Log.Warn("run/ was removed; restoring its files")
			if len(url) > 0 {
				if err := d.o.Home.WriteFile(URLFile, url, false); err != nil {
					d.o.Log.Warn("url file", "error", err)
				}
			}
			d.writePID()
		} else {
			url, _ = d.o.Home.ReadFile(URLFile, 4096) // no file: there is no dashboard
		}
		if err := d.reopen(); err != nil {
			d.o.Log.Warn("door", "error", err)
		}
	}
	return fmt.Errorf("%s: %w", d.o.Home.Root(), errHomeGone)
}

// predecessor returns the pid of the previous daemon, if it left its pid file: one that
// ends properly removes it.
func (d *daemon) predecessor() string {
	data, err := d.o.Home.ReadFile(home.DaemonPID, 32)
	if err != nil {
		return ""
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil || pid <= 0 || pid == os.Getpid() {
		return ""
	}
	return strconv.Itoa(pid)
}

func (d *daemon) writePID() {
	if err := d.o.Home.WriteFile(home.DaemonPID, []byte(strconv.Itoa(os.Getpid())+"\n"), false); err != nil {
		d.o.Log.Warn("pid file", "error", err)
	}
}
