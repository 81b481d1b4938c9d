package watch

import (
	"context"
	"crypto/sha256"
	"fmt"
	"time"

	"netsky/agent"
	"netsky/home"
	"netsky/store"
)

// mistakeEvery is how often the configuration is looked at. A mistake that is there twice in
// a row is not just being typed.
const mistakeEvery = 5 * time.Second

// mistakeFile has the id of the mail about a mistake that was there at the last look.
const mistakeFile = "state/watchdog/mistake.json"

// A mistakeWatch is what is known of a mistake in the configuration.
type mistakeWatch struct {
	text   string // at the last look
	mail   string // about it, to the owner
	opened bool   // mail was read from the file
}

// mistake tells the owner what is wrong in the configuration, once by its text. Once it is
// corrected, the mail about it counts as read.
func (l *loop) mistake(ctx context.Context) {
	if l.o.Mistake == nil {
		return
	}
	m := &l.wrong
	if !m.opened {
		m.opened = true
		m.mail, _ = home.Load[string](l.o.Launcher.Home, mistakeFile) // without it, the same id is sent again
	}
	text, then := l.o.Mistake()
	before := m.text
	m.text = text
	if text != before || text == "" && m.mail == "" {
		return
	}
	id := ""
	if text != "" {
		id = fmt.Sprintf("config-%x", sha256.Sum256([]byte(text)))[:len("config-")+12]
	}
	if id == m.mail {
		return
	}
	defer func() {
		if err := l.o.Launcher.Home.Save(mistakeFile, m.mail, false); err != nil {
			l.o.Log.Warn("config", "error", err)
		}
	}()
	if m.mail != "" {
		if err := l.markRead(m.mail); err != nil {
			l.o.Log.Warn("config", "mail", m.mail, "error", err)
		}
		m.mail = ""
	}
	if id == "" {
		l.o.Log.Info("config", "text", "corrected")
		return
	}
	l.event(ctx, id, store.LevelWarn, "", "", text+"; until it is corrected, "+then)
	if l.page(ctx, agent.Root, id, fmt.Sprintf("%s\nUntil it is corrected, %s. What the daemon itself reads there counts after `netsky daemon stop` and `netsky up`.", text, then)) {
		m.mail = id
	}
}
