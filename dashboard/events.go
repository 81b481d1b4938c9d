package dashboard

import "net/http"

const (
	eventsPath = "/events"
	socketPath = "/ws"
)

func (s *Server) events(w http.ResponseWriter, r *http.Request) {}
func (s *Server) socket(w http.ResponseWriter, r *http.Request) {}
