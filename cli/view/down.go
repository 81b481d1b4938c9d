package view

import (
	"netsky/fleet"
	"netsky/spawn"
)

// A Down reports how a down goes.
type Down struct {
	Printer
	rows  []downRow
	notes []string
	why   map[string]int // how many were not ended, by reason
}

type downRow struct {
	What  string         `json:"what"`
	Step  spawn.DownStep `json:"step"`
	Error string         `json:"error,omitempty"`
}

// Step reports one step.
func (r *Down) Step(s fleet.Step) {
	switch {
	case s.Line != "":
		r.say(s.Line)
	case s.Down != nil:
		r.progress(*s.Down)
	}
}

// Above calls do, which may print lines.
func (r *Down) Above(do func()) { do() }

func (r *Down) say(text string) {
	if r.JSON {
		r.notes = append(r.notes, text)
		return
	}
	r.print("%s", text)
}

func (r *Down) progress(p spawn.DownProgress) {
	row := downRow{What: p.What, Step: p.Step}
	if p.Err != nil {
		row.Error = p.Err.Error()
	}
	r.rows = append(r.rows, row)
	if r.JSON {
		return
	}
	switch line := fleet.DownLine(p); {
	case p.Step == spawn.DownFailed:
		if r.why == nil {
			r.why = make(map[string]int)
		}
		if r.why[row.Error]++; r.why[row.Error] <= 3 { // the error at the end names all
			r.print("%s", line)
		}
	case p.Step == spawn.DownWarning:
		r.Warn("%s", line)
	case line != "":
		r.print("%s", line)
	}
}

// Finish prints the JSON object, if requested.
func (r *Down) Finish(ended int) error {
	if !r.JSON {
		return nil
	}
	return r.json(struct {
		Ended int       `json:"ended"`
		Steps []downRow `json:"steps"`
		Notes []string  `json:"notes"`
	}{ended, append([]downRow{}, r.rows...), append([]string{}, r.notes...)})
}
