package pane

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/cost/breaker"
	"netsky/home"
	"netsky/internal/proc"
	"netsky/tmux"
)

const (
	pointTime   = time.Minute      // at least this between two lines about the same mail, and each time twice as long
	mostTold    = 6                // lines about mail of which it takes nothing
	personTime  = 30 * time.Second // since a person's last key
	beforeEnter = 700 * time.Millisecond
	nothing     = time.Minute // while no mail waits
)

// LookAgain is when to look again if the next change can't be predicted.
const LookAgain = 5 * time.Second

// A pointing is state/pointer/<agent>.json: what Point has done and seen under one start.
// Only Point writes it.
type pointing struct {
	Start  string `json:"start"`
	ToldMS int64  `json:"told_ms,omitempty"` // when the program was last nudged
	Told   int    `json:"told,omitempty"`    // of how many messages
	Oldest int64  `json:"oldest,omitempty"`  // of them, in nanoseconds
	Vain   int    `json:"vain,omitempty"`    // how often it was told while that one waited
	HeldMS int64  `json:"held_ms,omitempty"` // since when it can't be nudged
	Held   string `json:"held,omitempty"`    // why not
	// Calm is the input line at a time when nobody could have written in it.
	Calm *string `json:"calm,omitempty"`
}

func pointingFile(id agent.ID) string { return "state/pointer/" + string(id) + ".json" }

// pointing returns what is on file for that start, and nothing of another.
func (l *Panes) pointing(id agent.ID, start string) pointing {
	p, _ := home.Load[pointing](l.Home, pointingFile(id)) // unreadable: at worst it is nudged once more
	if p.Start != start {
		return pointing{Start: start}
	}
	return p
}

// Told says for status whether a silent agent was told of its mail under that start: facts
// with their time, which do not become stale.
func (l *Panes) Told(id agent.ID, start string) string {
	p := l.pointing(id, start)
	clock := func(ms int64) string { return time.UnixMilli(ms).Format("15:04:05") }
	switch {
	case p.HeldMS > p.ToldMS:
		return fmt.Sprintf("not told of its mail at %s: %s", clock(p.HeldMS), p.Held)
	case p.ToldMS != 0:
		return fmt.Sprintf("told of its mail at %s", clock(p.ToldMS))
	}
	return ""
}

// Ignored says for how long, and how often, a silent agent was told under that start of mail
// of which it has taken nothing; "" while it is told again.
func (l *Panes) Ignored(id agent.ID, start string) (why string, since time.Time) {
	p := l.pointing(id, start)
	since = time.UnixMilli(p.ToldMS)
	if p.Vain < mostTold || l.since(since) < pointTime {
		return "", since
	}
	return fmt.Sprintf("was told of its mail %d times, last at %s, and has taken none; it is told no more until some is taken (%s) or it is started again",
		p.Vain, since.Format("15:04:05"), lineEnd), since
}

// Pointed is the result of Point.
type Pointed struct {
	Told  int           // of how many messages the program was told just now
	Times int           // how often it was told of the oldest of them
	Last  bool          // it is told no more, unless it takes some
	Held  string        // why it was not told although mail waits
	New   bool          // Held has changed
	Again time.Duration // until then only the mailbox can change anything
}

// Point tells a silent agent that it has mail, by one line typed into its pane and Enter,
// only if that disturbs nothing, and not while a budget of the owner's is used up. It is
// told again of mail of which it takes nothing a minute later, then after twice as long each
// time, and after six times no more. The pane must have been quiet for 5 s, its program must
// receive what is typed, no person may have used it for 30 s or have left a draft, and it
// must not show what looks like a question. Without mail Point only records how the empty
// input line looks, to recognise a draft later.
//
// What is a draft in an unknown program? If nobody ever attached, there is none. After
// that the input line (the cursor's row, or the last with a prompt sign if the program
// hides the cursor) must be as it was before, or hold no letter and no digit.
//
// find returns the agent's pane under that start, if there is one; it is called last, as
// most calls return before.
func (l *Panes) Point(ctx context.Context, la agent.Launch, find func(context.Context) (tmux.Pane, bool, error)) (Pointed, error) {
	id := la.Agent
	n, oldest, err := l.waiting(id)
	if err != nil {
		return Pointed{Again: LookAgain}, err
	}
	p := l.pointing(id, la.Start)
	last := time.UnixMilli(p.ToldMS)
	if oldest.UnixNano() != p.Oldest { // it has taken some
		p.Vain = 0
	}
	if n > 0 && p.Vain >= mostTold {
		return Pointed{Again: nothing}, nil
	}
	// Once all that it was told of has been taken, any mail is new.
	wait := pointTime << max(p.Vain-1, 0)
	if left := wait - l.since(last); n > 0 && !oldest.After(last) && left > 0 && left <= wait {
		return Pointed{Again: left}, nil
	}
	if n == 0 && p.Calm != nil {
		return Pointed{Again: nothing}, nil
	}
	if why := l.barred(id); n > 0 && why != "" {
		return l.hold(id, p, n, why, LookAgain)
	}
	pane, ok, err := find(ctx)
	if err != nil || !ok {
		return Pointed{Again: LookAgain}, err // about to end, or not started yet
	}
	if left := Calm - l.since(pane.Activity); left > 0 && left <= Calm {
		return l.hold(id, p, n, "its pane is changing", left)
	}
	look, err := l.Tmux.Look(ctx, pane)
	if err != nil {
		return Pointed{Again: LookAgain}, err
	}
	why, again := l.hindrance(look, p)
	line := inputLine(look)
	if why == "" && look.Person.IsZero() && !unsent(line) {
		p.Calm = &line
	}
	switch {
	case n == 0 && p.Calm == nil:
		return Pointed{Again: max(again, LookAgain)}, nil
	case n == 0:
		return Pointed{Again: nothing}, l.Home.Save(pointingFile(id), p, false)
	case why != "":
		return l.hold(id, p, n, why, again)
	}
	if _, held := l.Home.LockHolder(home.ReceiverLock(id)); held {
		return Pointed{Again: LookAgain}, nil // it is being drained
	}
	// Recorded before it is typed: after a crash it must not be typed again.
	p.ToldMS, p.Told, p.HeldMS, p.Held = l.Bus.Now().UnixMilli(), n, 0, ""
	p.Oldest, p.Vain = oldest.UnixNano(), p.Vain+1
	if err := l.Home.Save(pointingFile(id), p, false); err != nil {
		return Pointed{Again: LookAgain}, err
	}
	text := l.pointer(la, n)
	if unsent(line) {
		text = ""
	}
	if err := l.typeLine(ctx, pane, look, text); err != nil {
		return Pointed{Again: pointTime}, err
	}
	return Pointed{Told: n, Times: p.Vain, Last: p.Vain == mostTold, Again: pointTime}, nil
}

// waiting counts what a silent agent has not taken, and returns since when the oldest has
// waited: including what a dead drain had claimed, but not what a drain would only file.
func (l *Panes) waiting(id agent.ID) (n int, oldest time.Time, err error) {
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

// barred says which of the owner's budgets keeps everything from the agent.
func (l *Panes) barred(id agent.ID) string {
	for _, name := range []string{breaker.AllBudget, breaker.Budget(id)} {
		if s, err := breaker.Of(l.Home, name).Load(); err == nil && s.Tripped() {
			return s.Fault.String()
		}
	}
	return ""
}

// hold records why mail has to wait, once for each reason.
func (l *Panes) hold(id agent.ID, p pointing, n int, why string, again time.Duration) (Pointed, error) {
	r := Pointed{Held: why, Again: again}
	if n == 0 {
		return Pointed{Again: again}, nil
	}
	if p.Held == why && p.HeldMS > p.ToldMS {
		return r, nil
	}
	r.New, p.Held, p.HeldMS = true, why, l.Bus.Now().UnixMilli()
	return r, l.Home.Save(pointingFile(id), p, false)
}

// pointer returns the line to type. An agent that has taken no mail yet does not know who
// it is, so the line says so.
func (l *Panes) pointer(la agent.Launch, n int) string {
	wait := "1 message waits"
	if n > 1 {
		wait = fmt.Sprintf("%d messages wait", n)
	}
	if !Greeted(l.Home, la.Agent, la.Start) {
		return fmt.Sprintf("netsky: you are %s, and %s for you. First read %s, then run: "+lineEnd, la.Agent, wait, la.PromptFile)
	}
	return "netsky: " + wait + " for you; run: " + lineEnd
}

const lineEnd = "netsky channel drain"

var errPersonCame = errors.New("a person came to the pane while the line was typed; Enter was not pressed")

// typeLine types the line, and Enter a moment later: many programs treat an Enter that
// arrives with a paste as part of it.
func (l *Panes) typeLine(ctx context.Context, pane tmux.Pane, before tmux.Look, line string) error {
	if err := l.Tmux.Paste(ctx, pane.ID, line); err != nil {
		return err
	}
	if proc.Sleep(ctx, beforeEnter) != nil { // the line is typed; without Enter it would stay a draft forever
		ctx = context.WithoutCancel(ctx)
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

// hindrance returns what a typed line would disturb, or "", and when to look again.
func (l *Panes) hindrance(look tmux.Look, p pointing) (why string, again time.Duration) {
	since := l.since(look.Person)
	switch {
	case look.Dead:
		return "its program has ended", LookAgain
	case look.InMode:
		return "its pane is in copy mode", LookAgain
	case l.since(look.Output) < Calm:
		return "its pane is changing", LookAgain
	case !look.Person.IsZero() && since < personTime:
		return "a person is using its pane", min(personTime-since+time.Second, personTime)
	case asks(look):
		return "its pane shows what may be a question", LookAgain
	}
	if look.Person.IsZero() {
		return "", 0
	}
	line := inputLine(look)
	if p.Calm != nil && sameLine(line, *p.Calm) || bare(line) || unsent(line) {
		return "", 0
	}
	return "there may be a draft in its pane", LookAgain
}

// inputLine returns the row in which a person would be writing.
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

// sameLine reports whether the input line is as it was: a person who attached may have
// made the window narrower, which cuts a hint in it and moves its frame.
func sameLine(line, calm string) bool {
	words := func(s string) string { return strings.Join(strings.Fields(strings.Trim(s, " │┃|")), " ") }
	now, before := words(line), words(calm)
	return now == before || 2*len(now) >= len(before) && strings.HasPrefix(before, now)
}

// bare reports whether the line holds nothing that a person could have meant.
func bare(line string) bool { return !letter().MatchString(line) }

// unsent reports whether the line ends as netsky's does: its Enter was missed.
func unsent(line string) bool {
	return strings.HasSuffix(strings.TrimRight(line, " │┃|"), lineEnd)
}

// asks reports whether the screen looks like a question that a line and an Enter would
// answer: options with one marked, a yes or no, a key to press, a secret. Other output can
// look like one too: then mail waits, which status shows, and nothing is answered.
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

// lazily compiles an expression on first use: few of netsky's processes look at a pane.
func lazily(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}

// greeting is state/own/<agent>.json: under which start the agent last took mail. The
// process that hands it the first mail writes the file.
type greeting struct {
	Start string `json:"start"`
}

func greetingFile(id agent.ID) string { return "state/own/" + string(id) + ".json" }

// Greeted reports whether a silent agent has taken mail under this start.
func Greeted(h home.Dir, id agent.ID, start string) bool {
	g, _ := home.Load[greeting](h, greetingFile(id)) // no file: not greeted
	return start != "" && g.Start == start
}

// Greet records that it has.
func Greet(h home.Dir, id agent.ID, start string) error {
	return h.Save(greetingFile(id), greeting{start}, false)
}
