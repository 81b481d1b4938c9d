package daemon

import (
	"context"
	"crypto/tls"
	"errors"

	"netsky/agent"
	"netsky/bus"
	"netsky/dashboard"
)

// URLFile holds where the dashboard is reached while the daemon runs.
const URLFile = agent.RunDir + "/url"

var errNoRecords = errors.New("the records cannot be opened")

// web serves the dashboard until something fails.
func (d *daemon) web(ctx context.Context) error {
	token, err := dashboard.Token(d.o.Home)
	if err != nil {
		return err
	}
	mail, err := d.o.Bus.Watch(ctx, bus.Spot{Place: bus.Inbox}, bus.Spot{Place: bus.Claimed}, bus.Spot{Place: bus.Outbox})
	if err != nil {
		return err
	}
	defer mail.Close()
	var encrypt *tls.Config
	if d.o.TLS != nil {
		if encrypt, err = d.o.TLS(); err != nil {
			return err
		}
	}
	s, err := dashboard.New(dashboard.Options{
		Home: d.o.Home, Records: d.reader, Agents: newAgents(d.o.Launcher, mail.C), Panes: d.screens, Send: d.o.Bus.Send, Token: token,
		TLS: encrypt, Wide: d.o.Wide, Version: d.o.Version, Log: d.o.Log.With("part", "dashboard"),
	})
	if err != nil {
		return err
	}
	defer s.Close()
	l, err := s.Listen(ctx, d.o.Listen)
	if err != nil {
		return err
	}
	if err := d.o.Home.WriteFile(URLFile, []byte(s.URL(l.Addr())+"\n"), false); err != nil {
		l.Close()
		return err
	}
	defer func() {
		if d.ours() {
			d.o.Home.Remove(URLFile)
		}
	}()
	return s.Serve(ctx, l)
}

// reader is the open database, as the dashboard reads it.
func (d *daemon) reader() (dashboard.Reader, error) {
	if db := d.database(); db != nil {
		return db, nil
	}
	return nil, errNoRecords
}
