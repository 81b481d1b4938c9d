package dashboard

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/http"

	"netsky/agent"
	"netsky/dashboard/access"
	"netsky/store"
	"netsky/work"
	"netsky/work/diff"
	"netsky/work/record"
)

// A changesBody is what an agent has changed, with the owner's comments on it.
type changesBody struct {
	Off     bool
	Agent   agent.ID
	Tree    *Tree // nil: how its work is, is not known
	TreeAt  store.Time
	Change  work.Change
	At      store.Time // as of when the change is
	Why     string     // why it is not shown
	Only    string     // the one file that is shown; "" is all
	Files   []File
	Others  []record.Comment // on other files
	Added   int
	Removed int
	Ask     *Place // where a comment is being written
	Asked   bool   // a row has its form
	Key     string // of that comment
	Pending []record.Comment
	Batches []Batch
	Name    string // of what Files show; the script keeps what has the same name
	Keep    bool   // the browser has Files already
}

func (w *works) changesPage(ctx context.Context, sh *shell, q *query) (string, error) {
	sh.Section, sh.Sub = "work", true
	id, err := treeAgent(q.path("agent"))
	if err != nil {
		return "", err
	}
	b := changesBody{Off: w.Work == nil, Agent: id, Only: q.text("file"), Key: newDraft()}
	if at := q.text("at"); at != "" {
		place, ok := ParsePlace(at)
		if !ok {
			q.wrong("at", "not a line like a.go:12, or a.go:-12 for the line as it was")
		}
		b.Ask = &place
	}
	sh.Title, sh.Draft.To = "Changes of "+string(id), id
	if err := q.done(); err != nil || b.Off {
		sh.Body = b
		return "changes", err
	}
	list, at, states := w.States(ctx)
	b.TreeAt = store.At(at)
	for _, st := range list {
		if st.Agent == id {
			b.Tree = new(TreeOf(st))
		}
	}
	if b.Tree == nil { // what is wrong with others is said on the work page
		sh.failed(states)
	}
	if err := w.readChange(ctx, sh, &b); err != nil {
		return "", err
	}
	sh.Body = b
	return "changes", nil
}

// treeAgent parses the agent in the path of a page about its worktree.
func treeAgent(text string) (agent.ID, error) {
	id, err := pathAgent(text)
	if err == nil && !id.IsAgent() {
		err = fmt.Errorf("%s: %w", access.Quote(text), store.ErrNotFound)
	}
	return id, err
}

// readChange reads what the page shows of the change, and the comments on it.
func (w *works) readChange(ctx context.Context, sh *shell, b *changesBody) error {
	change, at, err := w.Change(ctx, b.Agent, b.Only)
	b.At = store.At(at)
	switch {
	case errors.Is(err, fs.ErrNotExist) && b.Tree == nil:
		return fmt.Errorf("%s has no worktree of its own: %w", b.Agent, store.ErrNotFound)
	case errors.Is(err, fs.ErrNotExist):
		b.Why = "Its directory was deleted. What was committed is on the branch " + b.Tree.Branch + "."
	case err != nil:
		b.Why = err.Error()
	}
	var sent []record.Comment
	b.Pending, sent, err = w.Comments(ctx, b.Agent)
	sh.failed(err)
	b.Batches = Batches(sent)
	b.Change = change
	b.name(sent)
	if b.Keep = sh.Update && sh.Have != "" && (sh.Have == b.Name || b.Ask != nil); b.Keep { // nothing moves while a comment is written
		b.Name = sh.Have
		return nil
	}
	b.Files = Lay(change.Files, append(sent, b.Pending...), b.Ask)
	b.Others = Elsewhere(b.Files, b.Pending)
	for _, f := range b.Files {
		b.Added, b.Removed = b.Added+f.Added, b.Removed+f.Removed
		b.Asked = b.Asked || f.Asks()
	}
	return nil
}

// name names what the page shows of the change.
func (b *changesBody) name(sent []record.Comment) {
	sum := sha256.New()
	fmt.Fprintln(sum, b.Change.Base, b.Change.Tree, b.Only, b.Why, b.Change.Left)
	if b.Ask != nil {
		fmt.Fprintln(sum, *b.Ask)
	}
	for _, k := range append(sent, b.Pending...) {
		fmt.Fprintln(sum, k.ID, k.State)
	}
	b.Name = hex.EncodeToString(sum.Sum(nil)[:12])
}

// Link returns the page's address with a comment's form at a line; 0 is none.
func (b changesBody) Link(at ...any) string {
	return withQuery(href("work", b.Agent), append(at, "file", b.Only)...)
}

// Kept is where the comment is that is being written, once it is kept.
func (b changesBody) Kept() string { return b.Link() + "#c-" + diff.Keyed(b.Key) }

// Commented is where a comment at the file and the side of a line is written.
func (b changesBody) Commented(f File, r Row) string {
	p := Place{File: f.Path, Line: r.New}
	if r.Kind == "-" {
		p = Place{File: f.Before(), Line: r.Old, Old: true}
	}
	return b.Link("at", p) // whose form takes the focus, which a fragment would keep from it
}

// commentForm is POST /work/{agent}/comment: it keeps a comment on a line. A form that is submitted
// twice keeps one.
func (w *works) commentForm(rw http.ResponseWriter, r *http.Request) {
	w.remark(rw, r, func(ctx context.Context, id agent.ID, f map[string]string) (string, error) {
		at, ok := ParsePlace(f["at"])
		switch {
		case !ok:
			return "", badf("at: %s is not a line like a.go:12", access.Quote(f["at"]))
		case f["key"] == "":
			return "", badf("key: missing")
		}
		err := w.Comment(ctx, f["key"], id, at.File, at.Line, at.Old, unixLines(f["text"]))
		return "#c-" + diff.Keyed(f["key"]), err
	}, "at", "key", "text", "file")
}

// dropForm is POST /work/{agent}/drop: it removes a comment that has not been sent.
func (w *works) dropForm(rw http.ResponseWriter, r *http.Request) {
	w.remark(rw, r, func(ctx context.Context, id agent.ID, f map[string]string) (string, error) {
		if f["comment"] == "" {
			return "", badf("comment: missing")
		}
		return "", w.Drop(ctx, id, f["comment"])
	}, "comment", "file")
}

// sendForm is POST /work/{agent}/send: it sends the agent all comments that have not been sent.
func (w *works) sendForm(rw http.ResponseWriter, r *http.Request) {
	w.remark(rw, r, func(ctx context.Context, id agent.ID, _ map[string]string) (string, error) {
		sent, err := w.Send(ctx, id)
		for _, s := range sent {
			w.log.Info("comments", "id", s.ID, "to", id, "count", len(s.Comments))
		}
		return "", err
	}, "file")
}

// remark does what a form about comments asks for, and redirects to the page that it was on.
func (w *works) remark(rw http.ResponseWriter, r *http.Request, do func(context.Context, agent.ID, map[string]string) (anchor string, err error), fields ...string) {
	id, err := treeAgent(r.PathValue("agent"))
	if err == nil && w.Work == nil {
		err = errNoWork
	}
	status := http.StatusNotFound
	var f map[string]string
	if err == nil {
		f, status, err = formOf(r, fields...)
	}
	if err == nil {
		var anchor string
		// Once it is begun, it does not depend on the browser.
		if anchor, err = do(context.WithoutCancel(r.Context()), id, f); err == nil {
			redirect(rw, withQuery(href("work", id), "file", f["file"])+anchor)
			return
		}
		switch status = statusOf(err); {
		case errors.As(err, new(diff.Refusal)), errors.Is(err, diff.ErrNoLine), errors.Is(err, fs.ErrNotExist):
			status = http.StatusConflict
		case status == http.StatusInternalServerError:
			w.log.Warn("comment", "error", err)
		}
	}
	access.Refuse(rw, r, status, err.Error())
}
