package dashboard

import (
	"net/http"
	"net/url"
	"strings"

	"netsky/agent"
	"netsky/dashboard/web"
)

// readForm is POST /read: the owner's mail is marked as read, one letter by its
// id and sender, or with upto all that had come when the page was drawn. It
// leads back to the page that it came from.
func (p *pages) readForm(w http.ResponseWriter, r *http.Request) {
	f, status, err := formOf(r, "id", "from", "upto")
	if err == nil {
		from := agent.ID(f["from"])
		if f["upto"] == "" && (f["id"] == "" || !from.IsAgent()) {
			web.Refuse(w, r, http.StatusBadRequest, "which message was read? id and from say it, or upto")
			return
		}
		if err, status = p.unread.markRead(f["id"], from, f["upto"]), http.StatusInternalServerError; err == nil {
			w.Header().Set("Location", cameFrom(r))
			w.WriteHeader(http.StatusSeeOther)
			return
		}
		p.o.Log.Warn("read", "error", err)
	}
	web.Refuse(w, r, status, "not marked as read: "+err.Error())
}

// cameFrom is the page of ours that a form was on.
func cameFrom(r *http.Request) string {
	u, err := url.Parse(r.Referer())
	if err != nil || u.Host != r.Host || !strings.HasPrefix(u.Path, "/") || strings.HasPrefix(u.Path, "//") {
		return "/"
	}
	return (&url.URL{Path: u.Path, RawQuery: u.RawQuery}).String()
}
