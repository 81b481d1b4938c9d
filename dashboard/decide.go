package dashboard

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"netsky/agent"
	"netsky/attention"
	"netsky/dashboard/access"
	"netsky/home"
)

// A Desk takes the owner's answers to agents' requests for approval.
type Desk interface {
	// Answer answers the request that the item is, once. The error matches agent.ErrNoApproval
	// if it is not pending, or was answered elsewhere first; that of another host says itself what was done.
	Answer(ctx context.Context, n attention.Need, allow bool) (agent.Approval, error)
	// How returns how a request that is no longer pending was settled, "" if that is not
	// known.
	How(ctx context.Context, code string) string
}

// decisions take the owner's answers to requests for approval, so many within a minute.
type decisions struct {
	Desk // nil: they are given elsewhere
	home home.Dir
	log  *slog.Logger
	limiter
}

// An Answered is the answer to POST /api/approval-answer.
type Answered struct {
	Code   string   `json:"code"`
	Agent  agent.ID `json:"agent"`
	Answer string   `json:"answer"`
	Text   string   `json:"text"` // what was allowed or denied
}

// api is POST /api/approval-answer. It answers the request with that code if the
// digest is that of what the request says now.
func (d *decisions) api(w http.ResponseWriter, r *http.Request) {
	data, status, err := jsonBody(r)
	var f map[string]string
	if err == nil {
		status = http.StatusBadRequest
		f, err = access.Fields(data, "code", "digest", "answer")
	}
	var done Answered
	if err == nil {
		done, status, err = d.decide(r.Context(), f)
	}
	if err != nil {
		access.Refuse(w, r, status, err.Error())
		return
	}
	access.JSON(w, r, http.StatusOK, done)
}

// form is POST /approval, the same by a form. It redirects to the page that the form
// was on.
func (d *decisions) form(w http.ResponseWriter, r *http.Request) {
	f, status, err := formOf(r, "code", "digest", "answer")
	if err == nil {
		_, status, err = d.decide(r.Context(), f)
	}
	if err != nil {
		access.Refuse(w, r, status, err.Error())
		return
	}
	redirect(w, cameFrom(r))
}

// decide gives the owner's answer, or returns the status of the refusal.
func (d *decisions) decide(ctx context.Context, f map[string]string) (a Answered, status int, err error) {
	code, allow := f["code"], f["answer"] == attention.Allow
	switch {
	case d.Desk == nil:
		return a, http.StatusForbidden, errors.New("nothing was answered: approvals are not answered here, as `answer` under [dashboard] in netsky.toml is false; `netsky approve CODE` does")
	case !allow && f["answer"] != attention.Deny:
		return a, http.StatusBadRequest, fmt.Errorf("answer: must be %q or %q", attention.Allow, attention.Deny)
	case code == "" || f["digest"] == "":
		return a, http.StatusBadRequest, errors.New("code, digest: both are needed")
	case !d.take():
		return a, http.StatusTooManyRequests, errors.New("nothing was answered: too many answers within a minute")
	}
	asked, _, err := attention.Approvals(d.home)
	hosts, herr := attention.Hosts(d.home, d.now())
	n, ok := attention.Find(attention.List(attention.Sources{Approvals: asked, Hosts: hosts}), code)
	ok = ok && n.Kind == attention.Approval
	switch err = errors.Join(err, herr); {
	case !ok && err != nil:
		return a, http.StatusServiceUnavailable, fmt.Errorf("nothing was answered: %w", err)
	case !ok:
		how := d.How(ctx, code)
		if how == "" {
			how = "it may have been answered or withdrawn"
		}
		return a, http.StatusConflict, fmt.Errorf("nothing was answered: %s is not pending: %s", access.Quote(code), how)
	case n.Digest != f["digest"]:
		return a, http.StatusConflict, fmt.Errorf("nothing was answered: %s is not what you were shown; now it says: %s (digest %s)", code, n.Line(), n.Digest)
	}
	// Once it is begun, it does not depend on the browser.
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), answerTime, fmt.Errorf("it has not ended within %v", answerTime))
	defer cancel()
	q, err := d.Answer(ctx, n, allow)
	switch {
	case err != nil && n.Host != "":
		d.log.Warn("approval", "code", code, "error", err)
		return a, http.StatusBadGateway, err
	case errors.Is(err, agent.ErrNoApproval), errors.Is(err, agent.ErrAtPane):
		return a, http.StatusConflict, err
	case errors.Is(err, agent.ErrUntaken):
		return a, http.StatusGatewayTimeout, err
	case err != nil:
		d.log.Warn("approval", "code", code, "error", err)
		return a, http.StatusInternalServerError, fmt.Errorf("possibly not answered: %w", err)
	}
	d.log.Info("approval", "code", code, "agent", q.Agent, "allow", allow)
	return Answered{Code: code, Agent: q.Agent, Answer: f["answer"], Text: q.Whole()}, http.StatusOK, nil
}

// answerTime is how long it may take until an answer has taken effect; the browser waits 30 s.
const answerTime = 25 * time.Second

// mostAnswers is how many answers are taken within a minute.
const mostAnswers = 60

// A limiter counts what happens within a minute.
type limiter struct {
	now func() time.Time

	mu    sync.Mutex // guards the fields below
	since time.Time
	n     int
}

// take reports whether one more is allowed.
func (l *limiter) take() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := l.now(); now.Sub(l.since).Abs() >= time.Minute {
		l.since, l.n = now, 0
	}
	l.n++
	return l.n <= mostAnswers
}
