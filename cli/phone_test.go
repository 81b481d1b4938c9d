package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"netsky/home"
	"netsky/imessage"
	"netsky/internal/messagesim"
	"netsky/internal/testworld"
)

const ownerHandle = "+15550100"

// A phoneWorld is a world with a phone: a simulated database of Messages, and a stand-in for
// osascript.
type phoneWorld struct {
	*world
	t      testing.TB
	sim    *messagesim.Sim
	script *messagesim.Script
	home   home.Dir
}

func mustPhone(t testing.TB, config string) *phoneWorld {
	t.Helper()
	w := &phoneWorld{t: t, sim: messagesim.Start(t, 15)}
	w.script = w.sim.Script(imessage.Scripts()...)
	w.world = mustWorld(t)
	// Of the later of two values of a name the later one counts.
	for _, v := range w.script.Env {
		if strings.HasPrefix(v, "MESSAGESIM_") || strings.HasPrefix(v, "PATH=") {
			w.env = append(w.env, v)
		}
	}
	text := fmt.Sprintf("[owner]\nimessage = [%q]\n[imessage]\nenabled = true\ndb = %q\n%s", ownerHandle, w.sim.Path, config)
	testworld.Must(t, os.WriteFile(filepath.Join(w.world.home, home.ConfigFile), []byte(text), 0o600))
	var err error
	if w.home, err = home.At(w.world.home); err != nil {
		t.Fatal(err)
	}
	return w
}

// says inserts a text of the owner's.
func (w *phoneWorld) says(text string) string {
	return w.sim.Insert(messagesim.Message{From: ownerHandle, Text: text, At: time.Now()})
}
