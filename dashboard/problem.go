package dashboard

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"netsky/dashboard/live"
	"netsky/dashboard/web"
	"netsky/store"
)

// errBad is what the error of a wrong request matches.
var errBad = errors.New("wrong request")

func badf(format string, args ...any) error { return badError{fmt.Sprintf(format, args...)} }

type badError struct{ text string }

func (e badError) Error() string        { return e.text }
func (e badError) Is(target error) bool { return target == errBad }

// errNoRecords is what the error of records matches that can't be read.
var errNoRecords = errors.New("no records at the moment")

// fail answers with what an error is to the one who asked.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	if errors.Is(err, context.Canceled) {
		return // nobody is there to be told
	}
	status := statusOf(err)
	if status >= 500 {
		s.o.Log.Warn("answer", "path", r.URL.Path, "error", err)
	}
	web.Refuse(w, r, status, err.Error())
}

func statusOf(err error) int {
	switch {
	case errors.Is(err, errBad), errors.Is(err, store.ErrCursor):
		return http.StatusBadRequest
	case errors.Is(err, store.ErrNotFound), errors.Is(err, live.ErrNoPane):
		return http.StatusNotFound
	case errors.Is(err, store.ErrAmbiguous):
		return http.StatusConflict
	case errors.Is(err, errNoRecords), errors.Is(err, context.DeadlineExceeded):
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}
