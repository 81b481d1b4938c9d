package dashboard

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"html/template"
	"io/fs"
	"net/http"
	"path"
	"sync"
	"time"

	"netsky/agent"
	"netsky/dashboard/access"
	"netsky/dashboard/live"
	"netsky/store"
	"netsky/view"
)

//go:embed templates static
var files embed.FS

const (
	onPage    = 50              // items of a list on one page
	pageLimit = 5 * time.Second // to read what a page shows

	// updateHeader marks the script's request for a page that it already shows, by the name of the
	// changes on it, if it shows any.
	updateHeader = "Netsky-Update"
)

// pages are the HTML pages. Each is complete; the script only fetches it again when
// something has changed.
type pages struct {
	*Server
	set    map[string]func() *template.Template // by name; parsed when first shown
	assets func() map[string]asset              // by file name
}

// An asset is a file that pages load. Its URL contains a hash of the file, so that a
// browser may cache it and never uses an old one.
type asset struct {
	data []byte
	kind string
	url  string
}

// addPages adds the pages and their assets. They read through s.records, s.o.Agents,
// s.approvals and s.live, as the API does.
func addPages(s *Server, r *access.Routes) {
	p := &pages{Server: s, set: map[string]func() *template.Template{}, assets: sync.OnceValue(assets)}
	for _, name := range []string{
		"overview", "agent", "panes", "tasks", "task", "messages", "message", "sessions", "session", "logs", "note", "find", "say", "error", "work", "changes", "cost", "updates",
	} {
		p.set[name] = sync.OnceValue(func() *template.Template {
			t := template.New("base").Funcs(funcs(s.o.Now, p.assets))
			return template.Must(t.ParseFS(files, "templates/base.html", "templates/part_*.html", "templates/"+name+".html"))
		})
	}
	r.Get("/{$}", p.show(p.overviewPage))
	r.Get("/agents/{id}", p.show(p.agentPage))
	r.Get("/panes", p.show(p.panesPage))
	r.Get("/tasks", p.show(s.tasks.page))
	r.Get("/tasks/{id}", p.show(s.tasks.one))
	r.Get("/messages", p.show(p.messagesPage))
	r.Get("/messages/{id}", p.show(p.messagePage))
	r.Get("/sessions", p.show(p.sessionsPage))
	r.Get("/sessions/{id}", p.show(p.sessionPage))
	r.Get("/work", p.showWithin(workLimit, s.works.page))
	r.Get("/work/{agent}", p.showWithin(workLimit, s.works.changesPage))
	r.Post("/work/{agent}/comment", s.works.commentForm)
	r.Post("/work/{agent}/drop", s.works.dropForm)
	r.Post("/work/{agent}/send", s.works.sendForm)
	r.Get("/cost", p.show(s.costs.page))
	r.Get("/updates", p.show(p.updatesPage))
	r.Get("/logs", p.show(p.logsPage))
	r.Get("/notes/{id}", p.show(p.notePage))
	r.Get("/find", p.find)
	r.Post("/user-message", p.sayForm)
	r.Post("/read", s.unread.form)
	r.Post("/approval", s.decisions.form)
	r.Get("/api/needs", answer(s, p.needs))
	r.Get(access.StaticPath+"{name}", p.static)
}

// kindOf returns the content type of an asset. Package mime would read the system's own
// tables and keep all of them in memory.
func kindOf(name string) string {
	switch path.Ext(name) {
	case ".css":
		return "text/css; charset=utf-8"
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	}
	panic("dashboard: " + name + ": no content type for this extension") // it is in the binary
}

func assets() map[string]asset {
	found := map[string]asset{}
	list, err := fs.ReadDir(files, "static")
	if err != nil {
		panic("dashboard: " + err.Error()) // it is in the binary
	}
	for _, f := range list {
		data, err := files.ReadFile("static/" + f.Name())
		if err != nil {
			panic("dashboard: " + err.Error())
		}
		sum := sha256.Sum256(data)
		found[f.Name()] = asset{data, kindOf(f.Name()), access.StaticPath + f.Name() + "?v=" + hex.EncodeToString(sum[:6])}
	}
	return found
}

func (p *pages) static(w http.ResponseWriter, r *http.Request) {
	a, ok := p.assets()[r.PathValue("name")]
	if !ok {
		access.Refuse(w, r, http.StatusNotFound, "not found")
		return
	}
	w.Header().Set("Content-Type", a.kind)
	if r.URL.RequestURI() == a.url {
		w.Header().Set("Cache-Control", "private, max-age=31536000, immutable")
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(a.data))
}

// A shell is what all pages show around their own content.
type shell struct {
	Title     string
	Section   string // of the navigation
	Sub       bool   // a page within that section, not the section's own
	Version   string
	Now       store.Time
	Agents    []view.Agent
	Hosts     []host // the other hosts of the team, if they tell this one
	Approvals []live.Approval
	Health    health
	Answers   bool     // approvals can be answered here
	Errors    []string // what could not be read; the rest is shown anyway
	Draft     draft
	Known     string // the versions of what it shows; the script ignores events with these
	Watch     bool   // it shows panes
	Update    bool   // requested by the script, which draws the panes itself
	Have      string // with that: the name of the changes that the page shows
	Body      any
}

// agent returns the current state of an agent of this host.
func (sh *shell) agent(id agent.ID) (view.Agent, bool) { return find(sh.Agents, id) }

func find(list []view.Agent, id agent.ID) (view.Agent, bool) {
	for _, a := range list {
		if a.ID == id {
			return a, true
		}
	}
	return view.Agent{}, false
}

// asLive sets the state of open sessions to the current state of their agents: the
// record may be older than what the same page shows of the agent.
func (sh *shell) asLive(list []store.Session) {
	for i, s := range list {
		if s.Ended != 0 {
			continue
		}
		if a, ok := sh.agent(s.Actor); ok && a.Start == s.Start {
			list[i].State = a.State
		} else {
			list[i].State = agent.Unknown
		}
	}
}

func (sh *shell) failed(err error) {
	if err != nil {
		sh.Errors = append(sh.Errors, err.Error())
	}
}

// shell reads what all pages show.
func (p *pages) shell(ctx context.Context) *shell {
	sh := &shell{Version: p.o.Version, Now: store.At(p.o.Now())}
	var err error
	if sh.Agents, err = p.o.Agents.Agents(ctx); err != nil {
		sh.failed(err)
	}
	if sh.Approvals, err = p.approvals(); err != nil {
		sh.failed(err)
	}
	sh.Hosts = hostsOf(p.o)
	waits, err := p.needsOf(ctx, sh.Agents)
	if err != nil {
		sh.failed(err)
	}
	sh.Health, sh.Answers = healthOf(sh.Agents, waits, len(sh.Errors) > 0), p.o.Desk != nil
	sh.Draft = draft{ID: newDraft(), To: agent.Root}
	return sh
}

// A drawer fills in a page and returns the name of its template.
type drawer func(ctx context.Context, sh *shell, q *query) (name string, err error)

func (p *pages) show(draw drawer) http.HandlerFunc { return p.showWithin(pageLimit, draw) }

// showWithin is show for pages that may take longer to read.
func (p *pages) showWithin(limit time.Duration, draw drawer) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), limit)
		defer cancel()
		records := p.live.RecordsVersion(ctx) // before they are read, so that a change in between is reported as an event
		sh, q := p.shell(ctx), newQuery(r)
		sh.Known = live.Known(sh.Everywhere(), sh.Approvals, records)
		sh.Have = r.Header.Get(updateHeader)
		sh.Update = sh.Have != ""
		name, err := draw(ctx, sh, q)
		if wrong := q.done(); wrong != nil { // takes precedence over what a misread parameter led to
			err = wrong
		}
		if err != nil {
			p.wrong(w, r, sh, err)
			return
		}
		p.render(w, r, http.StatusOK, name, sh)
	}
}

// wrong renders an error page.
func (p *pages) wrong(w http.ResponseWriter, r *http.Request, sh *shell, err error) {
	if errors.Is(err, context.Canceled) {
		return // the client is gone
	}
	status := statusOf(err)
	if status >= http.StatusInternalServerError {
		p.o.Log.Warn("page", "path", r.URL.Path, "error", err)
	}
	sh.Title, sh.Body = http.StatusText(status), err.Error()
	p.render(w, r, status, "error", sh)
}

// render writes the whole page or nothing of it.
func (p *pages) render(w http.ResponseWriter, r *http.Request, status int, name string, sh *shell) {
	var b bytes.Buffer
	if err := p.set[name]().ExecuteTemplate(&b, "page", sh); err != nil {
		p.o.Log.Warn("page", "path", r.URL.Path, "error", err)
		access.Refuse(w, r, http.StatusInternalServerError, "the page could not be rendered")
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	// With no-referrer a browser would send "Origin: null" with a form's POST.
	h.Set("Referrer-Policy", "same-origin")
	w.WriteHeader(status)
	w.Write(b.Bytes())
}
