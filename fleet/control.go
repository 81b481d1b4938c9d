package fleet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/jsonschema-go/jsonschema"

	"netsky/agent"
	"netsky/bus/envelope"
	"netsky/config"
	"netsky/daemon"
	"netsky/fleet/plan"
	"netsky/home"
	"netsky/internal/advice"
	"netsky/internal/proc"
	"netsky/store"
)

// maxRequest is how large a request may be, with its answers.
const maxRequest = 4 << 20

// Offering returns the daemon as it does deeds for other processes, and for other hosts.
func (f Daemon) Offering() Daemon {
	g := *f.Fleet
	g.checks = new(checkRuns)
	return Daemon{&g}
}

// Control serves the deeds and their description: what [daemon.Options] call Deeds. Whoever can open
// the socket is this user, and acts as the agent below whose program it runs, else as the owner. Other
// hosts are asked by other; nil: there are none.
func (f Daemon) Control(other Other) http.Handler {
	mux := http.NewServeMux()
	if other != nil {
		mux.HandleFunc("POST /hosts/{host}/deeds/{name}", control(f).elsewhere(other))
	}
	mux.HandleFunc("GET /api", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.MarshalWrite(w, Describe(f.Home, f.Version))
	})
	for _, d := range deeds() {
		mux.HandleFunc("POST /deeds/"+d.name, func(w http.ResponseWriter, r *http.Request) { control(f).serve(w, r, d) })
	}
	mux.HandleFunc("POST /deeds/{name}", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/x-ndjson")
		w.WriteHeader(http.StatusNotFound)
		err := advice.With(usagef("%q: no such deed", r.PathValue("name")), "`netsky api` lists them")
		_ = json.MarshalEncode(jsontext.NewEncoder(w), Event{Done: &Done{Failed: failure(err), Status: Status(err)}}, wire)
	})
	return mux
}

// A control serves one request.
type control struct{ *Fleet }

// serve does one deed. It ends with the request's connection, as a verb does by Ctrl-C.
func (f control) serve(w http.ResponseWriter, r *http.Request, d deed) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	in := jsontext.NewDecoder(http.MaxBytesReader(w, r.Body, maxRequest))
	conn := http.NewResponseController(w)
	_ = conn.EnableFullDuplex() // which HTTP/1.1 has
	w.Header().Set("Content-Type", "application/x-ndjson")
	w.Header().Set("Connection", "close") // what the body has behind the deed is no request
	answers := make(chan string, maxAnswers)
	c := &caller{ctx: ctx, cancel: cancel, answers: answers, out: jsontext.NewEncoder(flusher{w, conn})}
	v, err := func() (any, error) {
		body, err := in.ReadValue()
		if err != nil {
			close(answers)
			return nil, unread(d.name, err)
		}
		body = body.Clone()
		go func() {
			if listen(in, answers) != nil {
				cancel()
			}
		}()
		g, err := f.onBehalf(ctx, c)
		if err != nil {
			return nil, err
		}
		return d.do(ctx, g, body)
	}()
	c.done(v, err)
	_ = conn.SetReadDeadline(time.Now())
	for range answers { // until the body is not read any more
	}
}

// maxAnswers is how many answers are kept for questions to come; no deed asks as many.
const maxAnswers = 100

// listen passes on the answers in a request's body until that ends. It reads on while nothing is asked, as only then
// the end of the connection shows.
func listen(in *jsontext.Decoder, answers chan<- string) error {
	defer close(answers)
	for {
		var one struct {
			Answer string `json:"answer"`
		}
		switch err := json.UnmarshalDecode(in, &one, wire); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		select {
		case answers <- one.Answer:
		default:
		}
	}
}

// errEnded is of a deed whose daemon said no more.
var errEnded = errors.New("the daemon has ended meanwhile")

// A said is an Event as it is read.
type said struct {
	Step *Progress
	Warn *Failure
	Done *struct {
		Result jsontext.Value
		Failed *Failure
		Status int
	}
}

// call does a deed in the daemon of a home, which answers no questions.
func call(ctx context.Context, h home.Dir, path string, request, result any, heard func(said)) error {
	body, err := json.Marshal(request, wire)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://netsky"+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	answer, err := daemon.Do(h, r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode == http.StatusNotFound { // an older daemon
		return fmt.Errorf("daemon: %s: %w", path, daemon.ErrNotRunning)
	}
	for d := jsontext.NewDecoder(answer.Body); ; {
		var e said
		if err := json.UnmarshalDecode(d, &e, json.MatchCaseInsensitiveNames(true)); err != nil {
			return fmt.Errorf("%s: %w: %w", path, errEnded, err)
		}
		if e.Done == nil {
			heard(e)
			continue
		}
		if len(e.Done.Result) > 0 {
			err = json.Unmarshal(e.Done.Result, result)
		}
		if w := e.Done.Failed; w != nil && err == nil {
			err = failed(w, e.Done.Status)
		}
		return err
	}
}

// A flusher sends each line at once.
type flusher struct {
	io.Writer
	conn *http.ResponseController
}

// unheard is how long a line may take to be read. A deed may hold locks meanwhile.
const unheard = 5 * time.Second

func (w flusher) Write(p []byte) (int, error) {
	_ = w.conn.SetWriteDeadline(time.Now().Add(unheard))
	n, err := w.Writer.Write(p)
	if err == nil {
		err = w.conn.Flush()
	}
	return n, err
}

// now returns the fleet with netsky.toml as it is now.
func (f control) now(u UI) (*Fleet, error) {
	c, _, err := config.Load(f.Home)
	if err != nil {
		return nil, &plan.UsageError{Err: err}
	}
	return f.rebuilt(&c, f.Environ, u)
}

// onBehalf returns the fleet as it is now, for whoever is at the other end.
func (f control) onBehalf(ctx context.Context, u UI) (*Fleet, error) {
	g, err := f.now(u)
	if err == nil {
		g.Actor, err = f.peer(ctx)
	}
	return g, err
}

// peer returns who is at the other end of the control socket: the agent below whose keeper it runs, whatever its
// environment says, else the agent in that.
func (f control) peer(ctx context.Context) (agent.ID, error) {
	p, _ := daemon.PeerOf(ctx)
	above, err := proc.Ancestors(p.PID)
	number, _ := p.Env("AGENT_N")
	if _, is := daemon.PeerOf(ctx); !is || err != nil { // once more: what was read is of this process
		return "", errors.New("it is unknown which process asks, as that has ended: nothing was done")
	}
	ids, err := f.Launcher.Bus.Mailboxes()
	if err != nil {
		return "", err
	}
	for _, id := range ids {
		if k, err := f.Home.LoadKeeper(id); err == nil && k.Own.Named() && slices.Contains(above, k.Own) {
			return id, nil
		}
	}
	if number != "" {
		return agent.Parse("agent" + number)
	}
	return agent.Owner, nil
}

// A Description is what `netsky api` prints.
type Description struct {
	Version string             `json:"version"`
	Socket  string             `json:"socket"`
	Request string             `json:"request"`
	Deeds   []Described        `json:"deeds"`
	Event   *jsonschema.Schema `json:"event"`
}

// Described is one deed of a Description.
type Described struct {
	Name    string             `json:"name"`
	Right   string             `json:"right,omitempty"` // the verb whose right it is; "": everybody's
	About   string             `json:"about"`
	Who     []string           `json:"who"`
	Hosts   bool               `json:"hosts,omitempty"` // other hosts of the owner's may ask for it, too
	Request *jsonschema.Schema `json:"request"`
	Result  *jsonschema.Schema `json:"result"`
}

// Describe describes the control socket, from the types of the requests and results.
func Describe(h home.Dir, version string) Description {
	v := Description{
		Version: version, Socket: h.Path(home.DaemonSocket), Event: schemaOf(reflect.TypeFor[Event]()),
		Request: "POST /deeds/NAME, or /hosts/HOST/deeds/NAME on another host of the team; the body is the request as JSON, then {\"answer\": TEXT} for each question; the response is one event as JSON a line",
	}
	for _, d := range deeds() {
		v.Deeds = append(v.Deeds, Described{d.name, d.right, d.about, whoMay(d.right), slices.Contains(crossing, d.name), schemaOf(d.request), schemaOf(d.result)})
	}
	return v
}

func schemaOf(t reflect.Type) *jsonschema.Schema {
	text := func(format string) *jsonschema.Schema { return &jsonschema.Schema{Type: "string", Format: format} }
	s, err := jsonschema.ForType(t, &jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[time.Duration]():     {Type: "string", Description: "such as 1h30m"},
		reflect.TypeFor[time.Time]():         text("date-time"),
		reflect.TypeFor[store.Time]():        text("date-time"),
		reflect.TypeFor[envelope.Envelope](): {Type: "object", Description: "a message, as docs/messages.md describes its file"},
		reflect.TypeFor[error]():             text(""),
	}})
	if err != nil {
		panic(err) // no type of deeds' is without one: TestDeeds
	}
	return s
}
