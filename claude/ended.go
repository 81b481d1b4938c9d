package claude

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strings"

	"netsky/agent"
)

// Ended returns how a turn ended if no hook has reported it: the turn of that number or,
// if the number is "", the one that took the envelope. An interrupted turn is an
// EventStopFailed with the Error "interrupted". ok is false unless the conversation's file
// shows the end; the ID is the turn's number even then, if the file has it.
func (s *Session) Ended(envelopeID, number string) (e agent.Event, ok bool) {
	return TurnEnd(s.transcript(), envelopeID, number)
}

// maxEnd is how much of a conversation's file, from its end, is read for the end of a
// turn, in bytes.
const maxEnd = 16 << 20

// TurnEnd looks for the end of a turn in a conversation's file, as [Session.Ended] does.
// Only the last words of a turn that Claude Code has finished count as its text. Without a
// number it never reports an interrupted turn: the envelope may have been given to another
// turn since.
func TurnEnd(transcript, envelopeID, number string) (e agent.Event, ok bool) {
	w := endWalk{number: number}
	if number == "" {
		w.envelope = envelopeID
	}
	if err := backwards(transcript, maxEnd, w.line); err != nil || !w.found {
		return e, false
	}
	e.ID = w.turn
	switch {
	case w.how == endedWell:
		e.Event, e.Text = agent.EventStop, body(w.text)
	case w.how == endedBadly:
		e.Event, e.Text, e.Error, e.Fault = agent.EventStopFailed, body(w.text), w.err, w.fault
	case w.how == brokenOff && number != "":
		e.Event, e.Error = agent.EventStopFailed, "interrupted"
	}
	return e, e.Event != ""
}

// A turnEnd is what the last meaningful line of a turn says.
type turnEnd int

const (
	noEnd      turnEnd = iota // none was found yet
	unfinished                // the model had more to say
	endedWell
	endedBadly
	brokenOff
)

// An endWalk goes back through a conversation, and keeps how the turn ended whose
// beginning it has not found yet.
type endWalk struct {
	number   string
	envelope string // its ID, if there is no number
	found    bool
	turn     string // the number of what was found

	how       turnEnd
	text, err string
	fault     *agent.Fault
	over      bool // Claude Code says so in a separate line
}

// synthetic is the model name on what Claude Code writes in the model's place, such as
// when it continues an interrupted conversation.
const synthetic = "<synthetic>"

// line takes the line before the last one; false ends the walk.
func (w *endWalk) line(data []byte) bool {
	given := w.envelope != "" && shows(data, w.envelope)
	if !given && !bytes.Contains(data, assistantMark) && !bytes.Contains(data, userMark) && !bytes.Contains(data, systemMark) {
		return true
	}
	var e entry
	if json.Unmarshal(data, &e) != nil || e.Sidechain {
		return true
	}
	switch e.Type {
	case "system":
		w.system(e)
	case "assistant":
		w.said(e)
	case "user":
		if bytes.Contains(data, toolResultMark) || !e.prompts() {
			w.heard(e)
			break
		}
		if given || w.number != "" && e.Number == w.number {
			w.found, w.turn = true, e.Number
			return false
		}
		*w = endWalk{number: w.number, envelope: w.envelope} // the beginning of a later turn
	}
	if given && (e.Type == "user" || e.Type == "attachment") {
		w.found, w.turn = true, e.Number
	}
	return !w.found
}

func (w *endWalk) system(e entry) {
	switch {
	case e.Subtype == "turn_duration": // what came after it was no part of the turn
		*w = endWalk{number: w.number, envelope: w.envelope, over: true}
	case e.Subtype == "stop_hook_summary" && w.how == noEnd:
		w.over = true
	}
}

// said handles a line in the model's place.
func (w *endWalk) said(e entry) {
	if w.how != noEnd {
		return
	}
	w.text = Text(e.Message.Content)
	switch stop := e.Message.Stop; {
	case e.Failure:
		w.how, w.err, w.fault = endedBadly, cmp.Or(line(e.What(), maxName), "unknown"), e.Fault(w.text)
	case e.Message.Model == synthetic:
		w.how = brokenOff
	case w.text != "" && (stop == "end_turn" || stop == "stop_sequence" || stop == "" && w.over):
		w.how = endedWell
	default:
		w.how = unfinished
	}
}

// heard handles a user's line that is not a prompt: a tool's result, or Claude Code's own
// words, some of which mean nothing to the model.
func (w *endWalk) heard(e entry) {
	text := Text(e.Message.Content)
	switch {
	case w.how != noEnd || e.Summary || e.Repeat:
	case strings.HasPrefix(text, "<local-command-") || strings.HasPrefix(text, "<command-name>"):
	case strings.HasPrefix(text, "[Request interrupted"):
		w.how = brokenOff
	default:
		w.how = unfinished
	}
}
