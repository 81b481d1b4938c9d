package link

import (
	"errors"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
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

// An aside is what waits for a host for which the server keeps no more.
type aside struct {
	list  []parcel
	until time.Time // when they are tried again
	tried bool      // they are
}

// sort takes what is for such hosts out of a batch, and returns the rest, behind what is tried again.
func (o *outbound) sort(batch []parcel) (rest []parcel) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, a := range o.aside {
		if !a.tried && time.Now().After(a.until) {
			rest = append(rest, a.list...)
			a.list, a.tried = nil, true
		}
	}
	for _, p := range batch {
		if a := o.aside[p.To.Host()]; a != nil && !a.tried {
			a.list = append(a.list, p)
		} else {
			rest = append(rest, p)
		}
	}
	return rest
}

// setAside notes such a host, if that is what an error says.
func (o *outbound) setAside(err error) bool {
	full, is := errors.AsType[fullError](err)
	if is {
		o.mu.Lock()
		o.aside[full.host] = &aside{until: time.Now().Add(fullWait)}
		o.mu.Unlock()
		o.trouble("mail for "+full.host, err)
	}
	return is
}

// taken notes that the server keeps something for a host.
func (o *outbound) taken(host string) {
	o.mu.Lock()
	was := o.aside[host] != nil
	delete(o.aside, host)
	o.mu.Unlock()
	if was {
		o.trouble("mail for "+host, nil)
	}
}

// isAside reports whether what is for a host is not tried now.
func (o *outbound) isAside(host string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	a := o.aside[host]
	return a != nil && !a.tried
}

// retry returns a channel that is ready when a look at what is aside is due; nil: nothing is.
func (o *outbound) retry() <-chan time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.aside) == 0 {
		return nil
	}
	return time.After(lookEvery)
}
