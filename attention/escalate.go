// This file reaches the owner outside of netsky: by a text to their phone, a command of
// theirs, a webhook, a notification on the desktop. It needs no agent, no daemon and no records.
//
// The configured ways are tried in turn until one has taken the alert, each up to three
// times. state/escalation.json holds the alerts that no way took; it is replaced as a
// whole under the lock "escalate", and the next success empties it. A crash while an alert
// is sent may lose it; what an alert is about stays where it was.

package attention

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"netsky/agent"
	"netsky/bus/envelope"
	"netsky/home"
	"netsky/internal/execx"
	"netsky/internal/proc"
)

// An Alert is what the owner is to learn.
type Alert struct {
	Subject string // one line
	Body    string
}

// Ways are the configured ways, in the order in which they are tried.
type Ways struct {
	Command []string // a program and its arguments; it gets NETSKY_SUBJECT and NETSKY_BODY
	Webhook string   // a URL, https or on this machine
	Desktop bool
	Env     []string // of the programs
	// Phone texts the owner, if it is set. It is tried first.
	Phone func(context.Context, Alert) error
}

// None reports whether no way is configured.
func (w Ways) None() bool {
	return len(w.Command) == 0 && w.Webhook == "" && !w.Desktop && w.Phone == nil
}

// ErrNone is returned if no way is configured.
var ErrNone = errors.New("no way to reach you is configured")

// ErrOnce is matched by the error of a way that must not be tried again with this alert: it
// may have arrived.
var ErrOnce = errors.New("not tried again")

const (
	tries     = 3
	eachLimit = 15 * time.Second
	maxText   = 4000 // bytes of a body
	maxFailed = 20   // alerts kept
)

var pauses = [tries]time.Duration{0, time.Second, 4 * time.Second}

// Send sends an alert. It returns the way that took it, or why none did; then the alert is
// stored, and reported by Failed until another one has been sent.
func (w Ways) Send(ctx context.Context, h home.Dir, a Alert) (by string, err error) {
	a.Subject = envelope.Line(a.Subject, 200)
	a.Body = envelope.Shorten(envelope.Plain(a.Body), maxText)
	if w.None() {
		return "", ErrNone
	}
	var errs []error
	for _, way := range w.list() {
		var err error
		for _, pause := range pauses {
			if err = proc.Sleep(ctx, pause); err != nil {
				break
			}
			limited, cancel := context.WithTimeout(ctx, eachLimit)
			err = way.send(limited, a)
			cancel()
			if err == nil {
				return way.name, w.clear(ctx, h)
			}
			if errors.Is(err, ErrOnce) {
				break
			}
		}
		errs = append(errs, fmt.Errorf("%s: %w", way.name, err))
	}
	err = errors.Join(errs...)
	return "", errors.Join(err, keepFailures(ctx, h, func(list []Failure) []Failure {
		f := Failure{MS: time.Now().UnixMilli(), Subject: a.Subject, Error: envelope.Line(err.Error(), 300)}
		list = append(list, f)
		return list[max(0, len(list)-maxFailed):]
	}))
}

// A way is one entry of Ways.
type way struct {
	name string
	send func(context.Context, Alert) error
}

func (w Ways) list() (list []way) {
	if w.Phone != nil {
		list = append(list, way{"the phone", w.Phone})
	}
	if len(w.Command) > 0 {
		list = append(list, way{"command " + filepath.Base(w.Command[0]), w.command})
	}
	if w.Webhook != "" {
		list = append(list, way{"webhook", w.webhook})
	}
	if w.Desktop {
		list = append(list, way{"desktop", w.desktop})
	}
	return list
}

func (w Ways) command(ctx context.Context, a Alert) error {
	file := w.Command[0]
	if !filepath.IsAbs(file) {
		if file = execx.Find(execx.Value(w.Env, "PATH"), file); file == "" {
			return fmt.Errorf("%s is not on the PATH", w.Command[0])
		}
	}
	env := append(execx.Inherited(w.Env), "NETSKY_SUBJECT="+a.Subject, "NETSKY_BODY="+a.Body)
	_, err := execx.Question{Program: file, Args: w.Command[1:], Env: env, Wait: eachLimit}.Ask(ctx)
	return err
}

func (w Ways) desktop(ctx context.Context, a Alert) error {
	name, args := "notify-send", []string{"--app-name=netsky", "--urgency=critical", "--", a.Subject, a.Body}
	if runtime.GOOS == "darwin" {
		name, args = "osascript", []string{"-e", "on run argv", "-e", "display notification (item 2 of argv) with title (item 1 of argv)", "-e", "end run", a.Subject, a.Body}
	}
	file := execx.Find(execx.Value(w.Env, "PATH"), name)
	if file == "" {
		return fmt.Errorf("%s is not on the PATH", name)
	}
	_, err := execx.Question{Program: file, Args: args, Env: execx.Inherited(w.Env), Wait: eachLimit}.Ask(ctx)
	return err
}

// CheckURL reports whether a webhook's URL may be used: https, or http on this machine.
func CheckURL(s string) error {
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Host == "":
		return errors.New("is not a URL")
	case u.Scheme == "https":
		return nil
	case u.Scheme != "http":
		return errors.New("must begin with https://")
	}
	if ip := net.ParseIP(u.Hostname()); u.Hostname() == "localhost" || ip != nil && ip.IsLoopback() {
		return nil
	}
	return errors.New("must begin with https://: only this machine is reached without encryption")
}

// webhook posts the alert as JSON. It follows no redirect.
func (w Ways) webhook(ctx context.Context, a Alert) error {
	if err := CheckURL(w.Webhook); err != nil {
		return err
	}
	machine, _ := os.Hostname()
	body, err := json.Marshal(map[string]string{"subject": a.Subject, "body": a.Body, "machine": machine, "text": a.Subject + "\n" + a.Body})
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.Webhook, bytes.NewReader(body))
	if err != nil {
		return errors.New("is not a URL")
	}
	req.Header.Set("Content-Type", "application/json")
	wire := http.DefaultTransport.(*http.Transport).Clone()
	wire.DialContext = execx.DialContext(new(net.Dialer))
	client := http.Client{Transport: wire, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	defer client.CloseIdleConnections()
	r, err := client.Do(req)
	if err != nil {
		var full *url.Error
		if errors.As(err, &full) {
			err = full.Err // the address may be a secret
		}
		return err
	}
	defer r.Body.Close()
	io.Copy(io.Discard, io.LimitReader(r.Body, 64<<10))
	if r.StatusCode/100 != 2 {
		return fmt.Errorf("answered %s", r.Status)
	}
	return nil
}

// A Failure is an alert that no way took.
type Failure struct {
	MS      int64  `json:"ms"`
	Subject string `json:"subject"`
	Error   string `json:"error"`
}

// String describes it in a line.
func (f Failure) String() string {
	return fmt.Sprintf("you could not be reached at %s about %q: %s", agent.Clock(time.UnixMilli(f.MS), time.Now()), f.Subject, strings.ReplaceAll(f.Error, "\n", "; "))
}

const file = "state/escalation.json"

// Failed returns the alerts that no way took since the last one that was sent, the oldest
// first.
func Failed(h home.Dir) ([]Failure, error) {
	list, err := home.Load[[]Failure](h, file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return list, err
}

// Clear forgets them: the owner has seen them. It reports how many there were.
func Clear(ctx context.Context, h home.Dir) (n int, err error) {
	err = keepFailures(ctx, h, func(list []Failure) []Failure { n = len(list); return nil })
	return n, err
}

func (Ways) clear(ctx context.Context, h home.Dir) error {
	_, err := Clear(context.WithoutCancel(ctx), h)
	return err
}

// keepFailures changes the list of failures under its lock.
func keepFailures(ctx context.Context, h home.Dir, change func([]Failure) []Failure) (err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), eachLimit)
	defer cancel()
	l, err := h.WaitLock(ctx, home.EscalateLock, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Unlock()) }()
	list, _ := Failed(h) // a damaged one is replaced
	if list = change(list); len(list) > 0 {
		return h.Save(file, list, true)
	}
	if err := h.Remove(file); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
