package dashboard

import (
	"context"
	"errors"
	"net/http"

	"netsky/store"
)

// A findBody is a query and its results.
type findBody struct {
	Query  string
	Places []foundPlace
	List   listBody
}

// find redirects from a whole id or a file name to its page; any other text is searched
// for: a word may be the beginning of an id by accident.
func (p *pages) find(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), pageLimit)
	defer cancel()
	q := newQuery(r)
	text, page := q.text("q"), q.page()
	err := q.done()
	to := ""
	if err == nil && text != "" {
		to, err = p.pageOf(ctx, text)
	}
	if err == nil && to != "" {
		w.Header().Set("Location", to)
		w.WriteHeader(http.StatusSeeOther)
		return
	}
	sh := p.shell(ctx)
	sh.Update = r.Header.Get(updateHeader) != ""
	sh.Title, sh.Section = "Find", "find"
	var found store.List[store.Found]
	if errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrAmbiguous) {
		page.Limit = onPageOr(page.Limit)
		found, err = p.search(ctx, text, page)
	}
	if err != nil {
		p.wrong(w, r, sh, err)
		return
	}
	var places []foundPlace
	if page.Cursor == "" {
		places = p.places(ctx, sh, text)
	}
	sh.Body = findBody{text, places, q.list("/find", found.Items, len(found.Items), found.Cursor, field{Name: "q"})}
	p.render(w, r, http.StatusOK, "find", sh)
}

func (p *pages) search(ctx context.Context, text string, page store.Page) (l store.List[store.Found], err error) {
	db, err := p.records()
	if err != nil {
		return l, err
	}
	l, err = db.Find(ctx, text, page)
	if errors.Is(err, store.ErrSearch) {
		err = badf("%s", err.Error())
	}
	return l, err
}

// foundPage returns the page of a result.
func foundPage(f store.Found) string {
	switch f.Kind {
	case store.SubjectMessage:
		return href("messages", f.ID)
	case store.SubjectTask:
		return href("tasks", f.ID)
	}
	return href("notes", f.ID)
}
