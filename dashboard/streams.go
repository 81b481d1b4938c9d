package dashboard

import (
	"net/http"
	"strings"

	"github.com/gorilla/websocket"

	"netsky/dashboard/live"
	"netsky/dashboard/term"
	"netsky/dashboard/web"
)

// events is GET /events.
func (s *Server) events(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodHead {
		w.Header().Set("Content-Type", "text/event-stream")
		return
	}
	if sub, err := subscription(r); err != nil {
		s.fail(w, r, err)
	} else {
		s.live.ServeEvents(w, r, sub)
	}
}

// socket is GET /ws.
func (s *Server) socket(w http.ResponseWriter, r *http.Request) {
	if !websocket.IsWebSocketUpgrade(r) {
		w.Header().Set("Upgrade", "websocket")
		web.Refuse(w, r, http.StatusUpgradeRequired, "only websockets here")
		return
	}
	if sub, err := subscription(r); err != nil {
		s.fail(w, r, err)
	} else {
		s.live.ServeSocket(w, r, sub)
	}
}

func subscription(r *http.Request) (sub live.Subscription, err error) {
	q := newQuery(r)
	after, watch := q.text("after"), q.text("watch")
	if id := r.Header.Get("Last-Event-ID"); id != "" {
		after = id // it has seen more since
	}
	if sub.After = -1; after != "" {
		if sub.After, err = parseLog(after); err != nil {
			return sub, err
		}
	}
	if watch != "" {
		if sub.Watch, err = live.ParseWatch(strings.Split(watch, ",")); err != nil {
			return sub, badf("%s", err)
		}
	}
	return sub, q.done()
}

// palettePath has the style sheet of the panes' rows.
const palettePath = "/palette.css"

func (s *Server) paletteCSS(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/css; charset=utf-8")
	w.Header().Set("Cache-Control", "private, max-age=86400")
	w.Write(term.CSS())
}
