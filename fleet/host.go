// This file is deeds between the hosts of a team: what a host of the owner's may ask of this one, and how this
// one asks others.

package fleet

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"netsky/agent"
	"netsky/attention"
	"netsky/daemon"
	"netsky/internal/advice"
	"netsky/internal/proc"
	"netsky/store"
)

// crossing are the deeds that a host of the owner's may ask for, at another's too: what starts, ends and shows agents,
// answers them, and sees to their work. Mail crosses as mail; what lasts, as a schedule or another setting, and what
// tidies up is for a terminal of the host.
var crossing = []string{
	"start", "down", "restart", "interrupt", "peek", "decide",
	"task-start", "task-add", "task-edit", "note", "check", "land", "land-all", "undo", "retire", workDeed,
}

// looking are those of them that are not recorded, as they change nothing.
var looking = []string{"peek", "check", workDeed}

// An Other has another host do a deed, and writes to w what it says of that there.
type Other func(ctx context.Context, host, deed string, request []byte, w io.Writer) error

// Asked does a deed for the owner, who is at another host of the team, and writes its events to w. Questions are not
// answered, and an answer to an agent needs the digest of the words that the owner saw.
func (f Daemon) Asked(ctx context.Context, from, name string, request []byte, w io.Writer) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	nobody := make(chan string)
	close(nobody)
	c := &caller{ctx: ctx, cancel: cancel, answers: nobody, out: jsontext.NewEncoder(w)}
	v, err := func() (any, error) {
		list := deeds()
		i := slices.IndexFunc(list, func(d deed) bool { return d.name == name })
		if i < 0 || !slices.Contains(crossing, name) {
			return nil, advice.With(usagef("%.40q: is no deed that other hosts can ask for", name), "a verb does it there; `netsky --on HOST` runs one by ssh")
		}
		g, err := control(f).now(c)
		if err != nil {
			return nil, err
		}
		if !g.Config.Link.Deeds {
			return nil, usagef("%s: this host does nothing for others, as `deeds` under [link] in its netsky.toml is false", name)
		}
		g.Actor, g.host = agent.Owner, from
		if !slices.Contains(looking, name) {
			_ = f.Launcher.Journal.Record(context.WithoutCancel(ctx), store.AddLog{Part: "link", Text: fmt.Sprintf("%s: asked for by %s", strings.Join(append([]string{name}, about(request)...), " "), g.who())})
		}
		return list[i].do(ctx, g, request)
	}()
	c.done(v, err)
}

// elsewhere is POST /hosts/{host}/deeds/{name}: it has another host do a deed, and passes on the events.
func (f control) elsewhere(ask Other) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/x-ndjson")
		w.Header().Set("Connection", "close")
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		out := &lines{w: flusher{w, http.NewResponseController(w)}}
		c := &caller{ctx: ctx, cancel: cancel, out: jsontext.NewEncoder(out)}
		who, err := f.peer(ctx)
		if err == nil {
			err = mayAcross(who, r.PathValue("name"))
		}
		var body []byte
		if err == nil {
			body, err = io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
		}
		var request jsontext.Value
		if err == nil {
			if request, err = jsontext.NewDecoder(bytes.NewReader(body)).ReadValue(); err != nil { // answers behind it have no question
				err = unread(r.PathValue("name"), err)
			}
		}
		if err == nil {
			err = ask(ctx, r.PathValue("host"), r.PathValue("name"), request, out)
		}
		if err != nil {
			out.part = nil
			c.done(nil, err)
		}
	}
}

// about returns the agents that a request names.
func about(request jsontext.Value) (list []string) {
	var q struct {
		Agent  string   `json:"agent"`
		Agents []string `json:"agents"`
	}
	_ = json.Unmarshal(request, &q) // the deed says what is wrong with it
	for _, name := range append([]string{q.Agent}, q.Agents...) {
		if id, err := agent.Parse(name); err == nil && len(list) < 20 {
			list = append(list, string(id))
		}
	}
	return list
}

// lines passes on whole lines.
type lines struct {
	w    io.Writer
	part []byte // of a line
}

func (l *lines) Write(p []byte) (int, error) {
	l.part = append(l.part, p...)
	end := bytes.LastIndexByte(l.part, '\n') + 1
	if len(l.part)-end > maxEvent {
		return 0, fmt.Errorf("its answer has a line of more than %d bytes", maxEvent)
	}
	if _, err := l.w.Write(l.part[:end]); end > 0 && err != nil {
		return 0, err
	}
	l.part = append([]byte(nil), l.part[end:]...)
	return len(p), nil
}

// maxEvent is the longest event of another host's, in bytes.
const maxEvent = 4 << 20

// A Host is another host of the team, as this one's owner has it do something.
type Host struct {
	*Fleet
	Name string
}

// Do has the host do a deed, with its request and result as the control socket's. What it says meanwhile is reported.
func (f Host) Do(ctx context.Context, deed string, request, result any) error {
	return f.do(ctx, deed, request, result, io.Discard)
}

// do is Do for a deed that brings something, which is written to w.
func (f Host) do(ctx context.Context, deed string, request, result any, w io.Writer) error {
	if err := mayAcross(f.Actor, deed); err != nil {
		return err
	}
	if f.host != "" {
		return usagef("%s: %s is asked for by another host; a deed is not passed on to a third", f.Name, deed)
	}
	ctx, end := context.WithCancel(ctx)
	defer end()
	err := call(ctx, f.Home, "/hosts/"+f.Name+"/deeds/"+deed, request, result, func(e said) {
		switch {
		case e.Step != nil && len(e.Step.Data) > 0:
			if _, err := w.Write(e.Step.Data); err != nil {
				end()
			}
		case e.Warn != nil:
			f.UI.Warn(advice.With(fmt.Errorf("%s: %s", f.Name, e.Warn.Error), "%s", e.Warn.Advice))
		case e.Step != nil && e.Step.words():
			p := e.Step
			line := cmp.Or(p.Line, strings.TrimSpace(strings.Join([]string{string(p.Agent), p.Step, string(p.State), p.Note, p.Error}, " ")))
			f.say("%s: %s", f.Name, line)
		}
	})
	switch {
	case err == nil, strings.HasPrefix(err.Error(), f.Name+": "): // of the link
		return err
	case ctx.Err() != nil:
		return advice.With(fmt.Errorf("%s: %w; it is not known whether it was done", f.Name, context.Cause(ctx)), "`netsky --on %s status` shows how it is there", f.Name)
	case errors.Is(err, errEnded):
		return advice.With(fmt.Errorf("%s: the daemon here has ended meanwhile; it is not known whether it was done", f.Name), "`netsky --on %s status` shows how it is there", f.Name)
	case errors.Is(err, daemon.ErrNotRunning), errors.Is(err, daemon.ErrHung):
		return fmt.Errorf("%s: nothing was done: this host's %w", f.Name, err)
	}
	next := advice.Of(err)
	if err = fmt.Errorf("%s: %w", f.Name, err); next != "" {
		err = advice.With(err, "on %s: %s", f.Name, next)
	}
	return err
}

// words reports whether a step says something to a person.
func (p *Progress) words() bool { return p.Line != "" || p.Agent != "" || p.Error != "" }

// Answer answers an item of the host, by its code there and the digest of what the owner was shown.
func (f Host) Answer(ctx context.Context, code, digest string, deny bool) (v DecideResult, err error) {
	err = f.Do(ctx, "decide", DecideRequest{Code: code, Digest: digest, Deny: deny}, &v)
	if v.Request != nil {
		v.Request.Agent = v.Request.Agent.At(f.Name)
	}
	if d := v.Dialog; d != nil {
		for _, list := range [][]agent.ID{d.Given, d.Differs, d.Others} {
			for i, id := range list {
				list[i] = id.At(f.Name)
			}
		}
	}
	if err == nil && v == (DecideResult{}) {
		err = fmt.Errorf("%s: does not say what it answered", f.Name)
	}
	return v, err
}

// toldTime is how long a host may take to tell that an item is settled, after it has said so.
const toldTime = 10 * time.Second

// settled returns once the host does not list an item any more, so that a page does not show it again.
func (f Host) settled(ctx context.Context, code string) {
	for end := time.Now().Add(toldTime); time.Now().Before(end); {
		list, err := attention.Hosts(f.Home, time.Now())
		if _, ok := attention.Find(attention.List(attention.Sources{Hosts: list}), code); !ok || err != nil || proc.Sleep(ctx, 100*time.Millisecond) != nil {
			return
		}
	}
}

// elsewhere answers an item of another host, as it was when that told of it last, and records here what that has confirmed.
func (f Answers) elsewhere(ctx context.Context, r DecideRequest) (v DecideResult, err error) {
	n, ok := r.Shown, r.Shown.There != nil
	if !ok {
		n, ok = f.Need(ctx, r.Code)
	}
	switch {
	case !ok || n.There == nil:
		return v, advice.With(fmt.Errorf("%s: no such item; %s", r.Code, cmp.Or(f.Desk().How(ctx, r.Code), "it may have been settled")), "`netsky needs` lists what needs you")
	case r.Digest != "" && r.Digest != n.Digest:
		return v, advice.With(usagef("%s: nothing was answered: it is not what you were shown; now it says: %s", r.Code, n.Line()), "`netsky needs` shows it")
	case len(n.There.Options) == 0:
		return v, advice.With(usagef("%s: can only be answered on %s: %s", r.Code, n.Host, n.Line()), "`netsky --on %s needs %s` shows how", n.Host, n.There.Code)
	}
	v, err = Host{f.Fleet, n.Host}.Answer(ctx, n.There.Code, n.There.Digest, r.Deny)
	if err == nil {
		q := agent.Approval{Code: n.Code, Start: n.Digest[:min(len(n.Digest), 16)], Tool: n.What(), Text: n.Text}
		if len(n.Agents) > 0 {
			q.Agent = n.Agents[0]
		}
		f.Desk().Answered(ctx, q, agent.Answer{Allow: !r.Deny, By: r.By})
	}
	return v, err
}
