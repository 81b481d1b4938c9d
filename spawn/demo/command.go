package demo

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"netsky/agent"
)

const help = `/delegate ADDRESS TEXT  send TEXT to an agent as a brief, report its answer
/busy 3s                be busy for that long, then answer; an interrupt ends it
/dialog [QUESTION]      wait for a y or an n typed at this pane
/pingpong ADDRESS       exchange messages with another demo until a brake stops it
/crash [STATUS]         end with that exit status
/hang                   stop responding
/limit 20s [REASON]     let no demo answer for that long, as at a vendor's limit
/edit FILE TEXT         add TEXT as a line at the end of FILE, in its own git worktree
/commit [MESSAGE]       commit the files that it has edited
/help                   this list
anything else           is answered by repeating it`

const hangs = "/hang"

// split splits a text after its first word.
func split(text string) (word, rest string) {
	text = strings.TrimSpace(text)
	if i := strings.IndexAny(text, " \t\n"); i >= 0 {
		return text[:i], strings.TrimSpace(text[i:])
	}
	return text, ""
}

// command obeys a text that begins with a slash.
func (d *demo) command(ctx context.Context, q request, text string) (outcome, error) {
	name, rest := split(text)
	switch name {
	case "/delegate":
		return d.delegate(ctx, q, rest)
	case "/pingpong":
		return d.pingpong(ctx, q, rest)
	case "/busy":
		return d.busy(ctx, rest)
	case "/dialog":
		return d.dialog(ctx, rest)
	case "/crash":
		return crash(rest), nil
	case hangs:
		return outcome{silent: true, endless: true, after: d.hang}, nil
	case "/limit":
		return d.limit(q, rest), nil
	case "/edit":
		return editor{d}.edit(ctx, q, rest)
	case "/commit":
		return editor{d}.commit(ctx, q, rest)
	case "/help":
		return outcome{text: help}, nil
	}
	return outcome{failed: true, text: fmt.Sprintf("%s: unknown command; /help lists the commands", shorten(name, 40))}, nil
}

// longest is the longest /busy; a demo must not be a way to lose an agent.
const longest = time.Hour

func (d *demo) busy(ctx context.Context, arg string) (outcome, error) {
	span, err := time.ParseDuration(arg)
	if seconds, e := strconv.Atoi(arg); e == nil {
		span, err = time.Duration(seconds)*time.Second, nil
	}
	if err != nil || span < 0 || span > longest {
		return outcome{failed: true, text: fmt.Sprintf("%s: not a time from 0s to %s", strings.TrimSpace("/busy "+shorten(arg, 40)), longest)}, nil
	}
	d.be(ctx, agent.Busy, "/busy "+span.String())
	d.pane.note("busy for " + span.String())
	timer, began := time.NewTimer(span), time.Now()
	defer timer.Stop()
	select {
	case who := <-d.interrupts():
		return outcome{failed: true, text: fmt.Sprintf("%s (demo) was interrupted by %s after %s of being busy", d.Agent, who, time.Since(began).Round(100*time.Millisecond))}, nil
	case <-timer.C:
		return outcome{text: fmt.Sprintf("%s (demo) was busy for %s and is done", d.Agent, span)}, nil
	case <-ctx.Done():
		return outcome{}, ctx.Err()
	}
}

// dialog waits for one key, as the trust and permission dialogs of real agents do:
// nothing else gets through until someone has pressed it.
func (d *demo) dialog(ctx context.Context, question string) (outcome, error) {
	if question = shorten(question, 200); question == "" {
		question = "Continue?"
	}
	d.be(ctx, agent.Waiting, question)
	defer d.keys.single()()
	d.pane.question(question)
	for {
		for key, ok := d.keys.key(); ok; key, ok = d.keys.key() {
			switch key {
			case 'y', 'Y':
				return outcome{text: fmt.Sprintf("%q was answered in the pane of %s: yes", question, d.Agent)}, nil
			case 'n', 'N':
				return outcome{text: fmt.Sprintf("%q was answered in the pane of %s: no", question, d.Agent)}, nil
			}
		}
		select {
		case who := <-d.interrupts():
			return outcome{failed: true, text: fmt.Sprintf("%q was not answered: interrupted by %s", question, who)}, nil
		case chunk, open := <-d.keys.C:
			d.keys.add(chunk, open)
		case <-ctx.Done():
			return outcome{}, ctx.Err()
		}
	}
}

// crash ends the program after the message has been filed: otherwise it would crash
// again at each start.
func crash(arg string) outcome {
	status, err := 1, error(nil)
	if arg != "" {
		status, err = strconv.Atoi(arg)
	}
	if err != nil || status < 0 || status > 255 {
		return outcome{failed: true, text: fmt.Sprintf("/crash %s: not a status from 0 to 255", shorten(arg, 40))}
	}
	return outcome{
		text:  fmt.Sprintf("crashing with status %d", status),
		after: func(context.Context) error { return Crash{status} },
	}
}

// hang shows no sign of life, not even for a request to shut down, until ctx ends. The
// message that asked for it is filed before, and still owed an answer: the next start
// gives it, as Ended reports how it ended.
func (d *demo) hang(ctx context.Context) error {
	d.be(ctx, agent.Busy, "/hang")
	d.look(ctx) // between two looks the courier reads its events
	d.pane.note("hanging from now on")
	d.stop()
	<-ctx.Done()
	return ctx.Err()
}
