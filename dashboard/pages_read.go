package dashboard

import (
	"net/http"
	"net/url"
	"strings"

	"netsky/agent"
	"netsky/dashboard/access"
)

// readForm is POST /read: it marks the owner's mail as read, either one message by its
// id and sender, or with upto all that had arrived when the page was rendered. It
// redirects to the page that the form was on.
func (p *pages) readForm(w http.ResponseWriter, r *http.Request) {
	f, status, err := formOf(r, "id", "from", "upto")
	if err == nil {
		from := agent.ID(f["from"])
		if f["upto"] == "" && (f["id"] == "" || !from.IsAgent()) {
			access.Refuse(w, r, http.StatusBadRequest, "name a message by id and from, or several by upto")
			return
		}
		if err, status = p.unread.markRead(f["id"], from, f["upto"]), http.StatusInternalServerError; err == nil {
			w.Header().Set("Location", cameFrom(r))
			w.WriteHeader(http.StatusSeeOther)
			return
		}
		p.o.Log.Warn("read", "error", err)
	}
	access.Refuse(w, r, status, "not marked as read: "+err.Error())
}

// cameFrom returns the page of this server that a form was on.
func cameFrom(r *http.Request) string {
	u, err := url.Parse(r.Referer())
	if err != nil || u.Host != r.Host || !strings.HasPrefix(u.Path, "/") || strings.HasPrefix(u.Path, "//") {
		return "/"
	}
	return (&url.URL{Path: u.Path, RawQuery: u.RawQuery}).String()
}
