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
	"netsky/dashboard/live"
	"netsky/dashboard/web"
	"netsky/store"
)

//go:embed templates static
var files embed.FS

const (
	onPage    = 50              // items of a list on one page
	pageLimit = 5 * time.Second // for what a page reads

	// updateHeader comes with the script's request for a page that it shows already.
	updateHeader = "Netsky-Update"
)

// pages are what a person sees: each is complete, and the script only fetches it
// again when something has changed.
type pages struct {
	*Server
	set    map[string]func() *template.Template // by name; parsed when first shown
	assets func() map[string]asset              // by file name
}

// An asset is a file that pages load. Its URL contains a hash of the file, so that a
// browser may cache it and still never has an old one.
type asset struct {
	data []byte
	kind string
	url  string
}

// pages adds the pages and their files. They read through s.records,
// s.o.Agents, s.approvals and s.live, as the API does.
func (s *Server) pages(r *web.Routes) {
	p := &pages{Server: s, set: map[string]func() *template.Template{}, assets: sync.OnceValue(assets)}
	for _, name := range []string{
		"overview", "agent", "panes", "tasks", "task", "messages", "message", "sessions", "session", "logs", "note", "find", "say", "error",
	} {
		p.set[name] = sync.OnceValue(func() *template.Template {
			t := template.New("base").Funcs(p.funcs())
			return template.Must(t.ParseFS(files, "templates/base.html", "templates/part_*.html", "templates/"+name+".html"))
		})
	}
	r.Get("/{$}", p.show(p.overviewPage))
	r.Get("/agents/{id}", p.show(p.agentPage))
	r.Get("/panes", p.show(p.panesPage))
	r.Get("/tasks", p.show(p.tasksPage))
	r.Get("/tasks/{id}", p.show(p.taskPage))
	r.Get("/messages", p.show(p.messagesPage))
	r.Get("/messages/{id}", p.show(p.messagePage))
	r.Get("/sessions", p.show(p.sessionsPage))
	r.Get("/sessions/{id}", p.show(p.sessionPage))
	r.Get("/logs", p.show(p.logsPage))
	r.Get("/notes/{id}", p.show(p.notePage))
	r.Get("/find", p.find)
	r.Post("/user-message", p.sayForm)
	r.Post("/read", p.readForm)
	r.Get("/api/needs", answer(p.Server, p.needs))
	r.Get(web.StaticPath+"{name}", p.static)
}

// kindOf is the type of an asset. Package mime would go by the machine's own
// list, and keep all of it in memory.
func kindOf(name string) string {
	switch path.Ext(name) {
	case ".css":
		return "text/css; charset=utf-8"
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	}
	panic("dashboard: " + name + ": what kind of file is it?") // it is in the binary
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
		found[f.Name()] = asset{data, kindOf(f.Name()), web.StaticPath + f.Name() + "?v=" + hex.EncodeToString(sum[:6])}
	}
	return found
}

func (p *pages) static(w http.ResponseWriter, r *http.Request) {
	a, ok := p.assets()[r.PathValue("name")]
	if !ok {
		web.Refuse(w, r, http.StatusNotFound, "nothing is here")
		return
	}
	w.Header().Set("Content-Type", a.kind)
	if r.URL.RequestURI() == a.url {
		w.Header().Set("Cache-Control", "private, max-age=31536000, immutable")
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(a.data))
}

// A shell is what every page shows, around what is its own.
type shell struct {
	Title     string
	Section   string // of the navigation
	Sub       bool   // it is a page of that section, not the section's own
	Version   string
	Now       store.Time
	Agents    []live.Agent
	Approvals []live.Approval
	Health    health
	Errors    []string // what could not be found out; the rest is shown all the same
	Draft     draft
	Known     string // the versions of what it shows: events that bring them are no news to it
	Watch     bool   // it shows panes
	Update    bool   // for the script, which draws them itself
	Body      any
}

// agent is how one is at this moment.
func (sh *shell) agent(id agent.ID) (live.Agent, bool) {
	for _, a := range sh.Agents {
		if a.ID == id {
			return a, true
		}
	}
	return live.Agent{}, false
}

// asLive gives open sessions the state that their agents have now: the record may be
// older than what the same page shows of the agent.
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

// shell looks at what every page shows.
func (p *pages) shell(ctx context.Context) *shell {
	sh := &shell{Version: p.o.Version, Now: store.At(p.o.Now())}
	var err error
	if sh.Agents, err = p.o.Agents.Agents(ctx); err != nil {
		sh.failed(err)
	}
	if sh.Approvals, err = p.approvals(); err != nil {
		sh.failed(err)
	}
	sh.Health = healthOf(sh.Agents, sh.Approvals, len(sh.Errors) > 0)
	sh.Draft = draft{ID: newDraft(), To: agent.Root}
	return sh
}

// A drawer fills in a page and says which template it has.
type drawer func(ctx context.Context, sh *shell, q *query) (name string, err error)

func (p *pages) show(draw drawer) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), pageLimit)
		defer cancel()
		records := p.live.RecordsVersion(ctx) // before they are read, so that what changes meanwhile is news
		sh, q := p.shell(ctx), newQuery(r)
		sh.Known = live.Known(sh.Agents, sh.Approvals, records)
		sh.Update = r.Header.Get(updateHeader) != ""
		name, err := draw(ctx, sh, q)
		if wrong := q.done(); wrong != nil { // before what came of misreading it
			err = wrong
		}
		if err != nil {
			p.wrong(w, r, sh, err)
			return
		}
		p.render(w, r, http.StatusOK, name, sh)
	}
}

// wrong shows why there is no page, in the manner of the others.
func (p *pages) wrong(w http.ResponseWriter, r *http.Request, sh *shell, err error) {
	if errors.Is(err, context.Canceled) {
		return // nobody is there to be told
	}
	status := statusOf(err)
	if status >= http.StatusInternalServerError {
		p.o.Log.Warn("page", "path", r.URL.Path, "error", err)
	}
	sh.Title, sh.Body = http.StatusText(status), err.Error()
	p.render(w, r, status, "error", sh)
}

// render writes a page whole or not at all.
func (p *pages) render(w http.ResponseWriter, r *http.Request, status int, name string, sh *shell) {
	var b bytes.Buffer
	if err := p.set[name]().ExecuteTemplate(&b, "page", sh); err != nil {
		p.o.Log.Warn("page", "path", r.URL.Path, "error", err)
		web.Refuse(w, r, http.StatusInternalServerError, "the page cannot be drawn")
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	// With no-referrer a browser would say "Origin: null" of a form's POST.
	h.Set("Referrer-Policy", "same-origin")
	w.WriteHeader(status)
	w.Write(b.Bytes())
}
