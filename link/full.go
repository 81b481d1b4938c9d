package link

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"netsky/bus"
)

// A fullError is returned once the server keeps no more for one host.
type fullError struct{ host string }

// fullWait is after how long it is tried again.
const fullWait = 5 * time.Second

func (e fullError) Error() string {
	return "the server keeps no more for " + e.host + " until that has taken some; mail for others continues"
}

// refused returns what a refusal by the server means for a parcel.
func (p parcel) refused(err error) error {
	if e, is := errors.AsType[*jetstream.APIError](err); is && e.ErrorCode == maxCode && strings.Contains(e.Description, "per subject") {
		return fullError{p.To.Host()}
	}
	return full(err)
}

// full says what a refusal by the stream's limits means.
func full(err error) error {
	var e *jetstream.APIError
	if errors.As(err, &e) && e.ErrorCode == maxCode && strings.Contains(e.Description, "exceeded") { // not a full disk
		return fmt.Errorf("%w until others have taken some: %s", errFull, e.Description)
	}
	return err
}

var errFull = errors.New("the server keeps no more of this host")

const maxCode jetstream.ErrorCode = 10077 // JSStreamStoreFailed, such as "maximum bytes exceeded"

// An aside is what waits for a host for which the server keeps no more.
type aside struct {
	behind []filedMail // that the server has lost and does not have again; in a parcel it is still here
	list   []parcel    // what comes after that
	until  time.Time   // when they are tried again
	tried  bool        // they are
}

// sort takes what is for such hosts out of a batch, and returns the rest, behind what is tried again.
func (o *outbound) sort(batch []parcel) (rest []parcel) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, a := range o.aside {
		if a.tried && len(a.behind) == 0 || time.Now().Before(a.until) {
			continue
		}
		a.tried = true
		if rest = append(rest, o.head(a)...); len(a.behind) == 0 {
			rest = append(rest, a.list...)
			a.list = nil
		}
	}
	for _, p := range batch {
		switch a := o.aside[p.To.Host()]; {
		case a == nil, a.tried && len(a.behind) == 0:
			rest = append(rest, p)
		case p.file.name == "":
			a.list = append(a.list, p)
		}
	}
	return rest
}

// head returns the first of what is behind, without what is gone.
func (o *outbound) head(a *aside) (list []parcel) {
	for i := 0; i < len(a.behind) && len(list) < window; {
		if p, ok := o.filedParcel(a.behind[i]); ok {
			list = append(list, p)
			i++
		} else {
			a.behind = slices.Delete(a.behind, i, i+1)
		}
	}
	return list
}

// setAside notes such a host, if that is what an error says.
func (o *outbound) setAside(err error) bool {
	full, is := errors.AsType[fullError](err)
	if is {
		o.mu.Lock()
		a := o.aside[full.host]
		if a == nil {
			a = new(aside)
			o.aside[full.host] = a
		}
		a.until, a.tried = time.Now().Add(fullWait), false
		o.mu.Unlock()
		o.trouble("mail for "+full.host, err)
	}
	return is
}

// taken notes that the server has taken a parcel, so that it keeps something for its host.
func (o *outbound) taken(p parcel) {
	host := p.To.Host()
	o.mu.Lock()
	a := o.aside[host]
	if a == nil {
		o.mu.Unlock()
		return
	}
	a.behind = a.behind[slices.Index(a.behind, p.file)+1:] // what is before it is gone
	a.until = time.Time{}
	done := len(a.behind) == 0
	switch {
	case !done:
	case len(a.list) > 0:
		a.tried = false
	default:
		delete(o.aside, host)
	}
	o.mu.Unlock()
	if done {
		o.trouble("mail for "+host, nil)
	}
}

// leave takes out of a resend what is for a host that takes no more, or for which something is behind already.
func (o *outbound) leave(full string, list []parcel) (rest []parcel) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, p := range list {
		host := p.To.Host()
		if a := o.aside[host]; a != nil && (host == full || len(a.behind) > 0) {
			a.behind = append(a.behind, p.file)
		} else {
			rest = append(rest, p)
		}
	}
	return rest
}

// behind reports whether something that the server has lost waits for a host to take some.
func (o *outbound) behind() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, a := range o.aside {
		if len(a.behind) > 0 {
			return true
		}
	}
	return false
}

// forget has nothing behind any more.
func (o *outbound) forget() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, a := range o.aside {
		a.behind, a.tried = nil, a.tried && len(a.list) == 0
	}
}

// isAside reports whether what is for a host is not tried now.
func (o *outbound) isAside(host string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	a := o.aside[host]
	return a != nil && (!a.tried || len(a.behind) > 0)
}

// retry returns a channel that is ready when a look at what is aside is due; nil: nothing is.
func (o *outbound) retry() <-chan time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	var due []time.Time
	for _, a := range o.aside {
		if !a.tried || len(a.behind) > 0 {
			due = append(due, a.until)
		}
	}
	if len(due) == 0 {
		return nil
	}
	return time.After(time.Until(slices.MinFunc(due, time.Time.Compare)))
}

// filedParcel returns what was published before, if it is still there and counts.
func (o *outbound) filedParcel(f filedMail) (parcel, bool) {
	e, err := o.Bus.Read(f.box, bus.Delivered, f.name)
	return parcel{Envelope: e.Envelope, file: f}, err == nil && e.Err == nil && e.Why == "" && !e.Envelope.Expired(o.Bus.Now())
}
