package agent

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
)

// ApprovalDir holds what waits for the owner's yes: CODE.json, and CODE.answer
// once it is given. Whoever asked removes both when the matter is settled; what
// a dead process left is seen by its Asker and cleared by Approvals.
const ApprovalDir = "state/approvals"

// An Approval is a question of an agent's whether it may do something.
type Approval struct {
	Code    string  `json:"code"` // five letters
	Agent   ID      `json:"agent"`
	Start   string  `json:"start"`
	Tool    string  `json:"tool"`
	Text    string  `json:"text"` // the command, or what it is about
	Reason  string  `json:"reason,omitempty"`
	Dir     string  `json:"dir,omitempty"`
	AskedMS int64   `json:"asked_ms"`
	Asker   Process `json:"asker"`             // who waits for the answer
	Message string  `json:"message,omitempty"` // id of the message in whose turn it is asked, if that is known
	Mail    string  `json:"mail,omitempty"`    // file name of the envelope that told the owner, in the owner's mailbox
}

// MailID is the id of the envelope that tells the owner of it.
func (a Approval) MailID() string { return "approval-" + a.Code + "-" + a.Start }

// An Answer is what the owner said to an Approval, and by which surface.
type Answer struct {
	Allow bool   `json:"allow"`
	By    string `json:"by,omitempty"` // "netsky approve"
}

// ErrNoApproval is what the error of an answer matches that nobody waits for.
var ErrNoApproval = errors.New("no such approval waits")

// letters leaves out l, which reads as 1.
const letters = "abcdefghijkmnopqrstuvwxyz"

// Ask puts the question down under a fresh code, for Answer to find.
func (h Home) Ask(a Approval) (Approval, error) {
	var b [5]byte
	rand.Read(b[:]) // never fails: crypto/rand ends the program instead
	for i := range b {
		b[i] = letters[int(b[i])%len(letters)]
	}
	a.Code, a.Asker = string(b[:]), Self()
	return a, h.save(approvalFile(a.Code), a, false)
}

// Mailed notes which envelope told the owner of the question.
func (h Home) Mailed(a Approval) error { return h.save(approvalFile(a.Code), a, false) }

func approvalFile(code string) string { return ApprovalDir + "/" + code + ".json" }
func answerFile(code string) string   { return ApprovalDir + "/" + code + ".answer" }

// Approvals lists what waits for an answer, the oldest first.
func (h Home) Approvals() ([]Approval, error) {
	dir, err := h.OpenDir(ApprovalDir, false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	var list []Approval
	for _, name := range names {
		code, ok := strings.CutSuffix(name, ".json")
		if !ok || !codeLike(code) {
			continue
		}
		a, err := load[Approval](h, approvalFile(code))
		if err != nil || a.Code != code {
			continue
		}
		if !a.Asker.Alive() {
			if err := h.Settle(code); err != nil && !errors.Is(err, os.ErrPermission) {
				return nil, err
			}
			continue
		}
		list = append(list, a)
	}
	slices.SortFunc(list, func(x, y Approval) int { return int(x.AskedMS - y.AskedMS) })
	return list, nil
}

func codeLike(code string) bool {
	return len(code) == 5 && strings.Trim(code, letters) == ""
}

// Answer answers what waits under the code, once. The error matches
// ErrNoApproval if nothing does.
func (h Home) Answer(code string, answer Answer) (Approval, error) {
	list, err := h.Approvals()
	if err != nil {
		return Approval{}, err
	}
	i := slices.IndexFunc(list, func(a Approval) bool { return a.Code == code })
	if i < 0 {
		return Approval{}, ErrNoApproval
	}
	if _, _, err := h.Answered(code); err == nil {
		return list[i], ErrNoApproval // it has its answer
	}
	return list[i], h.save(answerFile(code), answer, false)
}

// Answered is the answer, if it has been given; ok says whether it has.
func (h Home) Answered(code string) (answer Answer, ok bool, err error) {
	data, err := h.ReadFile(answerFile(code), 4096)
	if err != nil {
		return Answer{}, false, err
	}
	var v struct {
		Allow *bool
		By    string
	}
	if err := json.Unmarshal(data, &v); err != nil || v.Allow == nil {
		return Answer{}, false, errors.New(h.Path(answerFile(code)) + ": no answer in it")
	}
	return Answer{*v.Allow, v.By}, true, nil
}

// Settle takes the question and its answer away.
func (h Home) Settle(code string) error {
	return errors.Join(h.Remove(approvalFile(code)), h.Remove(answerFile(code)))
}
