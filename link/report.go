package link

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"netsky/home"
	"netsky/internal/proc"
	"netsky/link/ssh"
)

// ReportFile says how the link is, for verbs and pages.
const ReportFile = "state/link/report.json"

// A Report is how a link is.
type Report struct {
	Host      string                `json:"host"`
	Server    string                `json:"server,omitzero"` // "": this host's own
	Connected bool                  `json:"connected"`
	Since     time.Time             `json:"since"`             // of being connected, or not
	Why       string                `json:"why,omitzero"`      // it is not connected
	Seen      time.Time             `json:"seen"`              // when this was written; a link that runs writes it each half a minute
	Troubles  map[string]Trouble    `json:"troubles,omitzero"` // what does not work now, by what it is about
	Hosts     map[string]HostReport `json:"hosts,omitzero"`
}

// A Trouble is what does not work, and since when.
type Trouble struct {
	Since time.Time `json:"since"`
	What  string    `json:"what"`
}

// A HostReport is how the mail of one other host is.
type HostReport struct {
	Waiting  int       `json:"waiting"` // messages for it that the server does not have yet
	Sent     int64     `json:"sent"`    // since the link began
	Received int64     `json:"received"`
	LastSent time.Time `json:"last_sent,omitzero"`
	LastIn   time.Time `json:"last_received,omitzero"`
}

// LoadReport returns how the link was when it was last written, or that a full disk keeps it
// from being written.
func LoadReport(h home.Dir) (Report, error) {
	r, err := home.Load[Report](h, ReportFile)
	if err == nil && time.Since(r.Seen) > 2*reportEvery {
		if full := home.Room(h.Root(), reportRoom); full != nil {
			r.Connected, r.Since, r.Seen, r.Why = false, r.Seen, now(), "nothing is known of it since then: "+full.Error()
		}
	}
	return r, err
}

// reportRoom is the space that a report needs, in bytes.
const reportRoom = 64 << 10

// Tunnel returns what is wrong with the tunnel to a host, if it is down.
func (r Report) Tunnel(host string) (t Trouble, down bool) {
	t, down = r.Troubles[TunnelTo+host]
	return t, down
}

// silent is after how long without a new report the link counts as ended.
const silent = 2 * time.Minute

// Down says why no mail goes anywhere now, "" if it does.
func (r Report) Down(now time.Time) string {
	switch {
	case now.Sub(r.Seen) > silent:
		return "the link has not run since " + r.Seen.Local().Format(time.DateTime) + ", as the daemon does not"
	case !r.Connected:
		return "the link to the team's server is down since " + r.Since.Local().Format(time.DateTime) + ": " + r.Why
	}
	return ""
}

const reportEvery = 30 * time.Second

// A report is written whenever it has changed, and each half a minute, while there is a session.
type report struct {
	home home.Dir
	log  *slog.Logger

	mu      sync.Mutex // guards the fields below
	r       Report
	changed chan struct{} // there is something to write
}

func (p *report) begin(host, server string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.changed = make(chan struct{}, 1)
	troubles := make(map[string]Trouble)
	for about, t := range p.r.Troubles {
		if strings.HasPrefix(about, TunnelTo) { // which are kept beside the sessions
			troubles[about] = t
		}
	}
	p.r = Report{Host: host, Server: server, Since: now(), Why: "not connected yet", Troubles: troubles, Hosts: map[string]HostReport{}}
}

func now() time.Time { return time.Now().UTC().Truncate(time.Second) }

// change edits the report and has it written soon.
func (p *report) change(edit func(*Report)) {
	p.mu.Lock()
	edit(&p.r)
	c := p.changed
	p.mu.Unlock()
	select {
	case c <- struct{}{}:
	default:
	}
}

// connected notes that there is a connection, or why not.
func (p *report) connected(err error) {
	p.change(func(r *Report) {
		was := r.Connected
		r.Connected = err == nil
		if r.Connected != was {
			r.Since = now()
		}
		why := ""
		if err != nil {
			why = err.Error()
		}
		if r.Why != why {
			p.log.Info("link", "connected", r.Connected, "why", why)
		}
		r.Why = why
	})
}

func (p *report) isConnected() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.r.Connected
}

// tunnelled notes that the tunnel is up, or why not.
func (p *report) tunnelled(st ssh.State) {
	var err error
	if !st.Up {
		err = errors.New(st.Why)
	}
	p.trouble("tunnel", err)
}

// trouble notes what does not work, or that it does again. That nothing can be said without a
// connection is no trouble of its own.
func (p *report) trouble(about string, err error) {
	if errors.Is(err, nats.ErrReconnectBufExceeded) {
		return // there is no connection, which is said
	}
	p.mu.Lock()
	old, was := p.r.Troubles[about]
	p.mu.Unlock()
	switch {
	case err == nil && !was, err != nil && was && old.What == err.Error():
		return
	case err == nil:
		p.log.Info("link again", "about", about)
		p.change(func(r *Report) { delete(r.Troubles, about) })
		return
	}
	p.log.Warn("link", "about", about, "error", err)
	p.change(func(r *Report) {
		if !was {
			old.Since = now()
		}
		if old.What = err.Error(); r.Troubles == nil {
			r.Troubles = make(map[string]Trouble)
		}
		r.Troubles[about] = old
	})
}

// host edits what is reported of another host.
func (p *report) host(name string, edit func(*HostReport)) {
	p.change(func(r *Report) {
		h := r.Hosts[name]
		edit(&h)
		r.Hosts[name] = h
	})
}

// keep writes the report until ctx ends, and at its end that the link is down.
func (p *report) keep(ctx context.Context) error {
	for {
		p.save()
		if err := proc.SleepUntil(ctx, reportEvery, p.changed); err != nil {
			p.connected(errors.New("the link has ended, with the daemon or to be started again"))
			p.save()
			return err
		}
		if err := proc.Sleep(ctx, lookEvery); err != nil { // not more than one a second
			continue
		}
	}
}

func (p *report) save() {
	p.mu.Lock()
	r := p.r
	r.Troubles, r.Hosts, r.Seen = maps.Clone(r.Troubles), maps.Clone(r.Hosts), now()
	p.mu.Unlock()
	if err := p.home.Save(ReportFile, r, false); err != nil {
		p.log.Warn("link", "report", err)
	}
}
