package dashboard

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"netsky/dashboard/access"
	"netsky/dashboard/live"
	"netsky/store"
)

// errNoRecords is returned when the records can't be read.
var errNoRecords = errors.New("the records are unavailable at the moment")

// fail answers a request with the status that fits the error.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	if errors.Is(err, context.Canceled) {
		return // the client is gone
	}
	status := statusOf(err)
	if status >= 500 {
		s.o.Log.Warn("answer", "path", r.URL.Path, "error", err)
	}
	access.Refuse(w, r, status, err.Error())
}

func statusOf(err error) int {
	switch {
	case errors.As(err, new(badRequest)), errors.Is(err, store.ErrCursor):
		return http.StatusBadRequest
	case errors.Is(err, store.ErrNotFound), errors.Is(err, live.ErrNoPane), errors.Is(err, errNoWork), errors.Is(err, errNoCost):
		return http.StatusNotFound
	case errors.Is(err, store.ErrAmbiguous):
		return http.StatusConflict
	case errors.Is(err, errNoRecords), errors.Is(err, context.DeadlineExceeded):
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}

// answer makes a handler from a function that reads something. Parameters that read
// does not ask for are refused.
func answer(s *Server, read func(context.Context, *query) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		q := newQuery(r)
		v, err := read(r.Context(), q)
		if wrong := q.done(); wrong != nil { // takes precedence over what a misread parameter led to
			err = wrong
		}
		if err != nil {
			s.fail(w, r, err)
			return
		}
		access.JSON(w, r, http.StatusOK, v)
	}
}

// records returns the database, or an error that matches errNoRecords.
func (s *Server) records() (Reader, error) {
	db, err := s.o.Records()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNoRecords, err)
	}
	return db, nil
}
