package spawn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"

	"netsky/agent"
	"netsky/agent/home"
	"netsky/bus"
	"netsky/tmux"
)

const (
	pointTime   = time.Minute      // at most one line in that time about the same mail
	personTime  = 30 * time.Second // since a person's last key
	beforeEnter = 700 * time.Millisecond
	lookAgain   = 5 * time.Second // when it can't be said when something will change
	nothing     = time.Minute     // when no mail waits
)

// A pointing is state/pointer/<agent>.json: what Point has done and seen under
// one start. Only Point writes it.
type pointing struct {
	Start  string `json:"start"`
	ToldMS int64  `json:"told_ms,omitempty"` // when the program was last told
	Told   int    `json:"told,omitempty"`    // of so many messages
	HeldMS int64  `json:"held_ms,omitempty"` // since when it can't be
	Held   string `json:"held,omitempty"`    // why not
	// Calm is the input line as it was when nobody could have written in it.
	Calm *string `json:"calm,omitempty"`
}

func pointingFile(id agent.ID) string { return "state/pointer/" + string(id) + ".json" }

// pointing is what is on file of that start; of another it says nothing.
func (l *Launcher) pointing(id agent.ID, start string) pointing {
	p, _ := load[pointing](l.Home, pointingFile(id)) // unreadable: at worst it is told once more
	if p.Start != start {
		return pointing{Start: start}
	}
	return p
}

// words tells it for status: facts with their time, which don't grow old.
func (p pointing) words() string {
	clock := func(ms int64) string { return time.UnixMilli(ms).Format("15:04:05") }
	switch {
	case p.HeldMS > p.ToldMS:
		return fmt.Sprintf("not told of its mail at %s: %s", clock(p.HeldMS), p.Held)
	case p.ToldMS != 0:
		return fmt.Sprintf("told of its mail at %s", clock(p.ToldMS))
	}
	return ""
}

// Pointed is what a Point did.
type Pointed struct {
	Told  int           // of so many messages the program was told just now
	Held  string        // why it was not, though mail waits
	New   bool          // Held is another reason than before
	Again time.Duration // before that nothing can have changed but the mailbox
}

// Point tells a silent agent whose mail waits so, by one line typed into its
// pane and Enter: at most once a minute while any of the mail lies there that it
// was told of, and only if nothing is disturbed. The
// pane must have been quiet for 5 s, its program must get what is typed, no
// person may have been at it for 30 s or have left a draft, and it must not show
// what looks like a question. With no mail it only notes how the empty input
// line looks, so that a draft can be told later.
//
// What is a draft in a program of which nothing is known? Nobody who never
// attached has left one. After that the input line (the cursor's row, or the
// last with a prompt sign if the program hides the cursor) must be as it was
// before, or hold no letter and no digit.
func (l *Launcher) Point(ctx context.Context, id agent.ID) (Pointed, error) {
	la, err := l.SilentLaunch(id)
	if err != nil {
		return Pointed{Again: lookAgain}, err
	}
	n, oldest, err := l.waiting(id)
	if err != nil {
		return Pointed{Again: lookAgain}, err
	}
	p := l.pointing(id, la.Start)
	every := cmp.Or(l.times.point, pointTime)
	last := time.UnixMilli(p.ToldMS)
	// While nothing is left of what it was told of, there is something new to tell.
	if left := time.Until(last.Add(every)); n > 0 && !oldest.After(last) && left > 0 && left <= every {
		return Pointed{Again: left}, nil
	}
	if n == 0 && p.Calm != nil {
		return Pointed{Again: nothing}, nil
	}
	v, err := l.view(ctx)
	if err != nil {
		return Pointed{Again: lookAgain}, err
	}
	s, ok := v.agents[id]
	if !ok || s.start != la.Start {
		return Pointed{Again: lookAgain}, nil // going, or not there yet
	}
	if left := l.quietFor() - time.Since(s.Activity); left > 0 && left <= l.quietFor() {
		return l.hold(id, p, n, "its pane changes", left)
	}
	look, err := l.Tmux.Look(ctx, s.Pane)
	if err != nil {
		return Pointed{Again: lookAgain}, err
	}
	why, again := l.hindrance(look, p)
	line := inputLine(look)
	if why == "" && look.Person.IsZero() && !unsent(line) {
		p.Calm = &line
	}
	switch {
	case n == 0 && p.Calm == nil:
		return Pointed{Again: max(again, lookAgain)}, nil
	case n == 0:
		return Pointed{Again: nothing}, save(l.Home, pointingFile(id), p)
	case why != "":
		return l.hold(id, p, n, why, again)
	}
	if _, held := l.Home.LockHolder(home.ReceiverLock(id)); held {
		return Pointed{Again: lookAgain}, nil // it is being drained
	}
	// Before it is typed: a crash after it must not have it typed twice.
	p.ToldMS, p.Told, p.HeldMS, p.Held = time.Now().UnixMilli(), n, 0, ""
	if err := save(l.Home, pointingFile(id), p); err != nil {
		return Pointed{Again: lookAgain}, err
	}
	text := l.pointer(la, n)
	if unsent(line) {
		text = ""
	}
	if err := l.typeLine(ctx, s.Pane, look, text); err != nil {
		return Pointed{Again: every}, err
	}
	return Pointed{Told: n, Again: every}, nil
}

// waiting counts what a silent agent has not taken, and says since when the oldest
// of it lies there: also what a drain had claimed that died, and not what a drain
// would only file.
func (l *Launcher) waiting(id agent.ID) (n int, oldest time.Time, err error) {
	for _, place := range bus.Pending() {
		list, err := l.Bus.List(id, place, 0)
		if err != nil {
			return 0, oldest, err
		}
		for _, e := range list {
			if e.Err == nil && !e.Envelope.Kind.Control() {
				if n++; n == 1 || e.Time.Before(oldest) {
					oldest = e.Time
				}
			}
		}
	}
	return n, oldest, nil
}

// hold puts down why mail waits on, once for each reason.
func (l *Launcher) hold(id agent.ID, p pointing, n int, why string, again time.Duration) (Pointed, error) {
	r := Pointed{Held: why, Again: again}
	if n == 0 {
		return Pointed{Again: again}, nil
	}
	if p.Held == why && p.HeldMS > p.ToldMS {
		return r, nil
	}
	r.New, p.Held, p.HeldMS = true, why, time.Now().UnixMilli()
	return r, save(l.Home, pointingFile(id), p)
}

// pointer is the line. An agent that has taken no mail yet has been told nothing
// of who it is.
func (l *Launcher) pointer(la agent.Launch, n int) string {
	wait := "1 message waits"
	if n > 1 {
		wait = fmt.Sprintf("%d messages wait", n)
	}
	if !l.Greeted(la.Agent, la.Start) {
		return fmt.Sprintf("netsky: you are %s, and %s for you. First read %s, then run: "+lineEnd, la.Agent, wait, la.PromptFile)
	}
	return "netsky: " + wait + " for you; run: " + lineEnd
}

const lineEnd = "netsky channel drain"

var errPersonCame = errors.New("a person came to the pane while the line was typed; Enter was left to them")

// typeLine types the line, and Enter a moment later: many programs take an Enter
// that comes with a paste for a part of it.
func (l *Launcher) typeLine(ctx context.Context, pane tmux.Pane, before tmux.Look, line string) error {
	if err := l.Tmux.Paste(ctx, pane.ID, line); err != nil {
		return err
	}
	select {
	case <-ctx.Done(): // the line is there; without its end it would be a draft for ever
		ctx = context.WithoutCancel(ctx)
	case <-time.After(beforeEnter):
	}
	now, err := l.Tmux.Look(ctx, pane)
	if err != nil {
		return err
	}
	if !now.Person.Equal(before.Person) {
		return errPersonCame
	}
	return l.Tmux.Keys(ctx, pane.ID, "Enter")
}

// hindrance is what a typed line would disturb, or "", and when to look again.
func (l *Launcher) hindrance(look tmux.Look, p pointing) (why string, again time.Duration) {
	gone := cmp.Or(l.times.person, personTime)
	since := time.Since(look.Person)
	switch {
	case look.Dead:
		return "its program has ended", lookAgain
	case look.InMode:
		return "its pane is in copy mode", lookAgain
	case time.Since(look.Output) < l.quietFor():
		return "its pane changes", lookAgain
	case !look.Person.IsZero() && since < gone:
		return "a person is at its pane", min(gone-since+time.Second, gone)
	case asks(look):
		return "its pane shows what may be a question", lookAgain
	}
	if look.Person.IsZero() {
		return "", 0
	}
	line := inputLine(look)
	if p.Calm != nil && sameLine(line, *p.Calm) || bare(line) || unsent(line) {
		return "", 0
	}
	return "there may be a draft in its pane", lookAgain
}

// inputLine is the row in which a person would be writing.
func inputLine(look tmux.Look) string {
	if look.Cursor {
		return look.CursorRow()
	}
	for i := len(look.Screen) - 1; i >= 0; i-- {
		if promptSign().MatchString(look.Screen[i]) {
			return look.Screen[i]
		}
	}
	return look.CursorRow()
}

var (
	promptSign = lazily(`^[\s│┃|]*[>❯›»$%#](\s|$)`)
	letter     = lazily(`[\pL\pN]`)
	option     = lazily(`^[\s│┃|]*\(?\d+[.)]\s`)
	chosen     = lazily(`^[\s│┃|]*[❯›●◉▶→>»*]\s*\(?\d+[.)]\s`)
	yesNo      = lazily(`(?i)[[(]\s*y(es)?\s*/\s*n(o)?\s*[\])]`)
	anyKey     = lazily(`(?i)\b(press|hit|use) (enter|return|any key)\b|\benter to (select|confirm|continue|submit)\b`)
	secret     = lazily(`(?i)\b(password|passphrase|passcode|api key|token|secret|code)\b[^\pL]*$`)
)

// sameLine reports whether the input line is as it was: whoever attached may have
// made the window narrower, which cuts a hint in it and moves its frame.
func sameLine(line, calm string) bool {
	words := func(s string) string { return strings.Join(strings.Fields(strings.Trim(s, " │┃|")), " ") }
	now, before := words(line), words(calm)
	return now == before || 2*len(now) >= len(before) && strings.HasPrefix(before, now)
}

// bare reports whether the line holds nothing that a person could have meant.
func bare(line string) bool { return !letter().MatchString(line) }

// unsent reports whether the line ends as ours do: an Enter was missed.
func unsent(line string) bool {
	return strings.HasSuffix(strings.TrimRight(line, " │┃|"), lineEnd)
}

// asks reports whether the screen looks like a question that a line and an Enter
// would answer: options with one marked, a yes or no, a key to be pressed, a
// secret. What a program has printed can look so too: then mail waits, which
// status tells, and nothing is answered.
func asks(look tmux.Look) bool {
	var rows []string
	for _, r := range look.Screen {
		if strings.TrimSpace(r) != "" {
			rows = append(rows, r)
		}
	}
	for i, r := range rows {
		if chosen().MatchString(r) && (i > 0 && option().MatchString(rows[i-1]) || i+1 < len(rows) && option().MatchString(rows[i+1])) {
			return true
		}
	}
	for _, r := range rows[max(len(rows)-5, 0):] {
		if yesNo().MatchString(r) || anyKey().MatchString(r) {
			return true
		}
	}
	return secret().MatchString(look.CursorRow())
}

// lazily compiles an expression when it is first used: few of netsky's processes
// look at a pane, and all of them start.
func lazily(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}
