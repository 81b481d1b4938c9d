package claude

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"netsky/agent"
)

// A Retry is Claude Code's own try to reach the vendor once more.
type Retry struct {
	Fault       agent.Fault
	Attempt, Of int // 0 if they are not known
}

// String describes the retry in a line that stays the same during it.
func (r Retry) String() string {
	what := "retrying"
	switch {
	case r.Attempt > 0 && r.Of > 0:
		what = fmt.Sprintf("retrying, attempt %d of %d", r.Attempt, r.Of)
	case r.Attempt > 0:
		what = fmt.Sprintf("retrying, attempt %d", r.Attempt)
	}
	return what + ": " + r.Fault.Reason.Text()
}

const (
	again   = "retrying in "
	stalled = "Waiting for API response"
)

var attempts = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\battempt (\d{1,4})/(\d{1,4})`) })

// Retrying reads what Claude Code shows above its composer while it tries again:
//
//	✻ 529 Overloaded · retrying in 2s · attempt 5/10
//	✻ API error · retrying in 1s · attempt 1/10
//	✻ Connection refused — … (ECONNREFUSED) · retrying in 1s · attempt 1/10
//	✻ Waiting for API response · will retry in 4m 15s · check your network
//
// Such a line begins in the first column, where a model can't write. Release 2.1.329 does
// not record its retries: the screen is all there is.
func Retrying(screen string) (r Retry, ok bool) {
	lines := strings.Split(screen, "\n")
	for i := len(lines) - 1; i >= 0; i-- {
		if lines[i] == "" || strings.HasPrefix(lines[i], " ") || !strings.Contains(lines[i], again) && !strings.Contains(lines[i], stalled) {
			continue
		}
		_, text, found := strings.Cut(strings.TrimSpace(lines[i]), " ")
		if !found {
			continue
		}
		what, _, _ := strings.Cut(text, " · ")
		if m := attempts().FindStringSubmatch(text); m != nil {
			r.Attempt, _ = strconv.Atoi(m[1])
			r.Of, _ = strconv.Atoi(m[2])
		}
		r.Fault = agent.Fault{Reason: retried(what), Text: faultWords(what)}
		return r, true
	}
	return r, false
}

// byStatus returns the reason of a response that is tried again, "" without a response.
func byStatus(status int) agent.Reason {
	switch {
	case status == 401 || status == 403:
		return agent.Login
	case status == 429:
		return agent.RateLimit
	case status >= 400:
		return agent.Overloaded
	}
	return ""
}

// retried returns the reason of a retry with these words: they begin with the HTTP status,
// name a limit, or say how the connection failed. "API error" stands for any response.
func retried(what string) agent.Reason {
	number, _, _ := strings.Cut(what, " ")
	if status, err := strconv.Atoi(number); err == nil {
		if reason := byStatus(status); reason != "" {
			return reason
		}
	}
	switch {
	case strings.Contains(what, "limit reached"):
		return agent.UsageLimit
	case what == "API error", strings.Contains(what, "verloaded"):
		return agent.Overloaded
	}
	return agent.Network
}
