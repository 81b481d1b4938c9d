package dashboard

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"netsky/agent"
	"netsky/bus/envelope"
)

// A draft is a message that has not been sent, as its form shows it. Its ID becomes the
// message's, so that a form submitted twice sends one message.
type draft struct {
	ID   string
	To   agent.ID
	Text string
	Why  string // why it was refused

	InReplyTo string // the message that it answers
}

func newDraft() string {
	var b [12]byte
	rand.Read(b[:]) // never fails: crypto/rand ends the program instead
	return "web-" + hex.EncodeToString(b[:])
}

// sayForm is POST /user-message, the form that a browser without the script submits. It
// redirects to the message's page. The guard requires the same of it as of any write.
func (p *pages) sayForm(w http.ResponseWriter, r *http.Request) {
	status, d, err := readDraft(r)
	if err == nil {
		var e envelope.Envelope
		if status, e, err = p.ownersMessage(r.Context(), said{d.ID, string(d.To), d.Text, d.InReplyTo}); err == nil {
			var id string
			id, err = p.post(r.Context(), e)
			if err == nil {
				redirect(w, href("messages", id))
				return
			}
			var detail string
			status, detail = notSent(e.To, err)
			err = errors.New(detail)
		}
	}
	if status == http.StatusInternalServerError {
		p.o.Log.Warn("say", "error", err)
	}
	sh := p.shell(r.Context())
	// After a 500 the message may have been sent, so the id is kept.
	if sh.Title, d.Why = "Not sent", err.Error(); status != http.StatusInternalServerError || d.ID == "" {
		d.ID = newDraft()
	}
	sh.Draft = d
	p.render(w, r, status, "say", sh)
}

// readDraft returns the draft in a form, or as much of it as could be read and the
// status of the refusal.
func readDraft(r *http.Request) (int, draft, error) {
	d := draft{To: agent.Root}
	f, status, err := formOf(r, "in_reply_to")
	if err != nil {
		return status, d, err
	}
	for _, name := range []string{"id", "to", "text"} {
		if len(r.PostForm[name]) != 1 {
			return http.StatusBadRequest, d, errors.New(name + ": must be given exactly once")
		}
	}
	// Browsers send line ends as CRLF.
	return 0, draft{
		ID: r.PostForm.Get("id"), To: agent.ID(r.PostForm.Get("to")), Text: unixLines(r.PostForm.Get("text")), InReplyTo: f["in_reply_to"],
	}, nil
}

// formOf parses a form and returns the optional fields in names.
func formOf(r *http.Request, names ...string) (map[string]string, int, error) {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "application/x-www-form-urlencoded" {
		return nil, http.StatusUnsupportedMediaType, errors.New("the body must be a form")
	}
	err = r.ParseForm()
	if tooLarge := new(http.MaxBytesError); errors.As(err, &tooLarge) {
		return nil, http.StatusRequestEntityTooLarge, errors.New("the message is too long: the form may have at most 65536 bytes")
	}
	if err != nil {
		return nil, http.StatusBadRequest, errors.New("the form is malformed")
	}
	found := map[string]string{}
	for _, name := range names {
		if len(r.PostForm[name]) > 1 {
			return nil, http.StatusBadRequest, errors.New(name + ": given more than once")
		}
		found[name] = r.PostForm.Get(name)
	}
	return found, 0, nil
}

// redirect leads the browser to a page.
func redirect(w http.ResponseWriter, to string) {
	w.Header().Set("Location", to)
	w.WriteHeader(http.StatusSeeOther)
}

// cameFrom returns the page of this server that a form was on.
func cameFrom(r *http.Request) string {
	u, err := url.Parse(r.Referer())
	if err != nil || u.Host != r.Host || !strings.HasPrefix(u.Path, "/") || strings.HasPrefix(u.Path, "//") {
		return "/"
	}
	return (&url.URL{Path: u.Path, RawQuery: u.RawQuery}).String()
}
