package home

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"time"

	"netsky/agent"
	"netsky/internal/proc"
)

// ApprovalDir holds pending approvals: CODE.json, and CODE.answer once answered. The
// asking process removes both when the matter is settled, and leaves CODE.settled, which
// says how; what a dead process left is recognised by its Asker, and removed by the next
// Ask, as is what is too old to interest anybody.
const ApprovalDir = "state/approvals"

// Approvals are a home's requests for approval.
type Approvals Dir

// letters omits l, which looks like 1.
const letters = "abcdefghijkmnopqrstuvwxyz"

// Ask stores the question under a new code, for Answer to find, and removes those of
// processes that have died.
func (h Approvals) Ask(a agent.Approval) (agent.Approval, error) {
	_, dead, _ := h.list()
	for _, code := range dead {
		h.Settle(code) // if this fails, the next Ask does it
	}
	h.forgetOutcomes()
	a.Code, a.Asker = NewCode(approvalLetters), proc.Self()
	a.Bound()
	return a, Dir(h).Save(approvalFile(a.Code), a, false)
}

const approvalLetters = 5

// NewCode returns random letters for a person to type.
func NewCode(n int) string {
	b := make([]byte, n)
	rand.Read(b) // never fails: crypto/rand ends the program instead
	for i := range b {
		b[i] = letters[int(b[i])%len(letters)]
	}
	return string(b)
}

// Mailed records which envelope notified the owner of the question.
func (h Approvals) Mailed(a agent.Approval) error { return Dir(h).Save(approvalFile(a.Code), a, false) }

func approvalFile(code string) string { return ApprovalDir + "/" + code + ".json" }
func answerFile(code string) string   { return ApprovalDir + "/" + code + ".answer" }

// List lists pending questions, the oldest first, including those just answered. It
// changes nothing.
func (h Approvals) List() ([]agent.Approval, error) {
	list, _, err := h.list()
	return list, err
}

// list also returns the codes of those whose asker has died.
func (h Approvals) list() (list []agent.Approval, dead []string, err error) {
	codes, err := Records(Dir(h), ApprovalDir)
	if err != nil {
		return nil, nil, err
	}
	for _, code := range codes {
		if !codeLike(code) {
			continue
		}
		a, err := Load[agent.Approval](Dir(h), approvalFile(code))
		switch {
		case err != nil || a.Code != code: // just settled, or not ours
		case a.Asker.Alive():
			list = append(list, a)
		default:
			dead = append(dead, code)
		}
	}
	slices.SortFunc(list, func(x, y agent.Approval) int {
		return cmp.Or(cmp.Compare(x.AskedMS, y.AskedMS), strings.Compare(x.Code, y.Code))
	})
	return list, dead, nil
}

func codeLike(code string) bool {
	return len(code) == approvalLetters && strings.Trim(code, letters) == ""
}

// Answer answers the question with that code. Of several answers, also at the same moment,
// one takes effect. The error matches ErrNoApproval if the question is not pending; if it
// has an answer already, it is returned with the error. It matches ErrAtPane if netsky can't
// give that answer.
func (h Approvals) Answer(code string, answer agent.Answer) (agent.Approval, error) {
	list, err := h.List()
	if err != nil {
		return agent.Approval{}, err
	}
	i := slices.IndexFunc(list, func(a agent.Approval) bool { return a.Code == code })
	if i < 0 {
		return agent.Approval{}, agent.ErrNoApproval
	}
	if list[i].Only != "" || answer.Allow && list[i].Closed() != "" {
		return list[i], agent.ErrAtPane
	}
	data, err := json.Marshal(answer)
	if err != nil {
		return list[i], err
	}
	if err := Dir(h).create(answerFile(code), data); errors.Is(err, fs.ErrExist) {
		return list[i], agent.ErrNoApproval
	} else if err != nil {
		return list[i], err
	}
	// If its asker has settled it in between, nobody reads the answer, unless it was this one
	// that settled it: the asker's record says so.
	if !Dir(h).Mark(approvalFile(code)).Exists() {
		return list[i], errors.Join(agent.ErrNoApproval, h.Settle(code))
	}
	return list[i], nil
}

// Answered returns the answer, and whether it has been given.
func (h Approvals) Answered(code string) (answer agent.Answer, ok bool, err error) {
	if !codeLike(code) {
		return agent.Answer{}, false, fs.ErrNotExist
	}
	data, err := Dir(h).ReadFile(answerFile(code), 4096)
	if err != nil {
		return agent.Answer{}, false, err
	}
	var v struct {
		Allow  *bool
		By, ID string
	}
	if err := json.Unmarshal(data, &v); err != nil || v.Allow == nil {
		return agent.Answer{}, false, errors.New(Dir(h).Path(answerFile(code)) + ": not an answer")
	}
	return agent.Answer{Allow: *v.Allow, By: v.By, ID: v.ID}, true, nil
}

// Settled leaves how the question was settled, and removes it and its answer.
func (h Approvals) Settled(a agent.Approval, o agent.Outcome) error {
	a.Text, _ = a.Brief(maxOutcome)
	a.Fields, a.Missing, a.Reason = nil, 0, ""
	o.Agent, o.Start, o.Of = a.Agent, a.Start, a
	if o.MS == 0 {
		o.MS = time.Now().UnixMilli()
	}
	return errors.Join(Dir(h).Save(outcomeFile(a.Code), o, false), h.Settle(a.Code))
}

const maxOutcome = 1 << 10 // bytes of what was asked for

func outcomeFile(code string) string { return ApprovalDir + "/" + code + ".settled" }

// Outcome returns how the question with the code was settled a short time ago; ok is false
// if that is not known.
func (h Approvals) Outcome(code string) (o agent.Outcome, ok bool) {
	if !codeLike(code) {
		return o, false
	}
	o, err := Load[agent.Outcome](Dir(h), outcomeFile(code))
	return o, err == nil
}

// outcomesFor is how long it is kept how a question was settled.
const outcomesFor = 10 * time.Minute

// Outcomes returns how questions were settled a short time ago, by their codes.
func (h Approvals) Outcomes() map[string]agent.Outcome {
	dir, err := Dir(h).OpenDir(ApprovalDir, false)
	if err != nil {
		return nil // there are none
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	list := make(map[string]agent.Outcome)
	for _, name := range names {
		if code, ok := strings.CutSuffix(name, ".settled"); ok {
			if o, ok := h.Outcome(code); ok {
				list[code] = o
			}
		}
	}
	return list
}

func (h Approvals) forgetOutcomes() {
	for code, o := range h.Outcomes() {
		if time.Since(time.UnixMilli(o.MS)).Abs() > outcomesFor {
			_ = Dir(h).Remove(outcomeFile(code)) // if this fails, the next Ask does it
		}
	}
}

// JustSettled returns the agents of which a question was settled within that time: the
// program's own dialog may still be on the screen.
func (h Approvals) JustSettled(within time.Duration) (list []agent.ID) {
	for _, o := range h.Outcomes() {
		if time.Since(time.UnixMilli(o.MS)).Abs() < within && !slices.Contains(list, o.Agent) {
			list = append(list, o.Agent)
		}
	}
	return list
}

// Settle removes the question and its answer.
func (h Approvals) Settle(code string) error {
	return errors.Join(Dir(h).Remove(approvalFile(code)), Dir(h).Remove(answerFile(code)))
}
