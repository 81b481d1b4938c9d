// Package openai is a model on the loopback, for tests of what runs Codex: a
// loopmodel that speaks the part of the OpenAI Responses API that the real
// Codex CLI needs. It has no wits. It echoes the last thing said to it, and
// does on request what a model might do: be slow, fail, call tools, count what
// it was told.
//
// A request is answered by the newest rule (Handle) that wants it, else by the
// orders in its last text (see Directives), else by an echo. Nothing is kept on
// disk, and Close ends all that is under way. Only tests import it.
package openai

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	"netsky/internal/loopmodel"
)

// Model is the name under which Codex knows how to offer its shell tool to us.
const Model = "gpt-5.5"

// A Server is a running model.
type Server struct {
	*loopmodel.Server[Request]
	answers atomic.Int64
}

// Start starts a model on a free port of the loopback.
func Start() (*Server, error) {
	s := &Server{}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/responses", s.responses)
	mux.HandleFunc("GET /v1/models", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"models":[]}`)
	})
	var err error
	if s.Server, err = loopmodel.Start[Request](mux); err != nil {
		return nil, err
	}
	return s, nil
}

// URL is the base URL for a model_provider of Codex's.
func (s *Server) URL() string { return s.Server.URL() + "/v1" }

// WriteHome makes dir a CODEX_HOME whose only model is this one, with no login,
// no dialog and nothing that goes to the network. extra are further lines of its
// config.toml, put before the first table.
func (s *Server) WriteHome(dir string, extra ...string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	config := fmt.Sprintf(`model = %q
model_provider = "loop"
check_for_update_on_startup = false
disable_paste_burst = true
%s
[model_providers.loop]
name = "Loop"
base_url = %q
wire_api = "responses"
env_key = "LOOPMODEL_KEY"
requires_openai_auth = false
request_max_retries = 0
stream_max_retries = 0

[features]
daemon_auto_start = false
unbounded_connection_retries = false

# Else Codex's screen begins with a dialog that offers this model instead.
[notice.model_migrations]
%q = "gpt-6-sol"

[tui]
animations = false
show_tooltips = false
screen_reader_detection_done = true
`, Model, strings.Join(extra, "\n"), s.URL(), Model)
	return os.WriteFile(filepath.Join(dir, "config.toml"), []byte(config), 0o600)
}

// Env is what Codex needs in its environment to use that home.
func Env(dir string) []string { return []string{"CODEX_HOME=" + dir, "LOOPMODEL_KEY=x"} }

// responses answers one request of Codex's.
func (s *Server) responses(w http.ResponseWriter, r *http.Request) {
	body, err := loopmodel.Body(w, r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	q, err := readRequest(r.Header, body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	reply := &Reply{Text: "A title"}
	if !q.Title {
		reply = s.Decide(q, Directives)
	}
	if !s.Pause(r, reply) {
		return
	}
	if reply.Status != 0 {
		loopmodel.Refuse(w, reply)
		return
	}
	s.stream(w, s.answers.Add(1), q, reply)
}
