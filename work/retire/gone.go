package retire

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"netsky/agent"
	"netsky/internal/advice"
	"netsky/store"
	"netsky/work/git"
)

// A Retired is a commit that an agent's branch ended at.
type Retired struct {
	Ref     string     `json:"ref"`
	Agent   agent.ID   `json:"agent"`
	Commit  string     `json:"commit"`
	Subject string     `json:"subject"`
	Time    store.Time `json:"time"`    // when it was committed
	Repo    string     `json:"repo"`    // the git directory
	Command string     `json:"command"` // brings it back, as a branch
}

// maxGone is how many are listed of one repository, the newest.
const maxGone = 1000

// Gone lists what was retired in these repositories, given by their git directories, the newest first.
// A repository that can't be read is in the error.
func Gone(ctx context.Context, repos []string) (list []Retired, err error) {
	list = []Retired{}
	repos = slices.Clone(repos)
	slices.Sort(repos)
	for _, common := range slices.Compact(repos) {
		out, gerr := git.Dir{Path: common}.List(ctx, "for-each-ref", "--sort=-committerdate", "--count="+strconv.Itoa(maxGone),
			"--format=%(refname)%00%(objectname)%00%(committerdate:unix)%00%(contents:subject)", Refs)
		if gerr != nil {
			err = errors.Join(err, gerr)
			continue
		}
		for line := range strings.Lines(out) {
			parts := strings.SplitN(strings.TrimSuffix(line, "\n"), "\x00", 4)
			if len(parts) < 4 {
				continue
			}
			name := strings.TrimPrefix(parts[0], Refs)
			sec, _ := strconv.ParseInt(parts[2], 10, 64) // 0 if it is none: a tag
			r := Retired{Ref: parts[0], Commit: parts[1], Subject: strings.ToValidUTF8(parts[3], "\ufffd"), Time: store.Time(sec * 1000), Repo: common}
			who, _, _ := strings.Cut(name, "-")
			if id, perr := agent.ParseAddress(who); perr == nil {
				r.Agent = id
			}
			dir := common
			if filepath.Base(dir) == ".git" {
				dir = filepath.Dir(dir)
			}
			r.Command = "git -C " + advice.Word(dir) + " branch " + advice.Word("retired/"+name) + " " + advice.Word(parts[0])
			list = append(list, r)
		}
	}
	slices.SortStableFunc(list, func(a, b Retired) int { return int(min(max(b.Time-a.Time, -1), 1)) })
	return list, err
}
