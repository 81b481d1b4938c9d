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

// A badRequest reports what is wrong with a request.
type badRequest string

func badf(format string, args ...any) error { return badRequest(fmt.Sprintf(format, args...)) }

func (e badRequest) Error() string { return string(e) }

// errNoRecords reports that the records can't be read.
var errNoRecords = errors.New("no records at the moment")

// fail refuses a request because of an error.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	if errors.Is(err, context.Canceled) {
		return // the client is gone
	}
	status := statusOf(err)
	if status >= 500 {
		s.o.Log.Warn("answer", "path", r.URL.Path, "error", err)
	}
	web.Refuse(w, r, status, err.Error())
}

func statusOf(err error) int {
	switch {
	case errors.As(err, new(badRequest)), errors.Is(err, store.ErrCursor):
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
