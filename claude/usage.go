// This file reads from Claude Code's files of its conversations what each request to the
// model used.
//
// Claude Code writes an answer's usage once for each block of the answer, under the message's id
// and that of the request; all those lines give the same key. Lines that a conversation repeats
// when it is forked into another file keep both ids; its sums begin with those of the first one. What subagents use is in files of their own
// beside the conversation's. Some requests are in no line, such as the one that makes a summary of
// a conversation; the sums that Claude Code writes when it ends or clears a conversation have
// them, with the cost in dollars.
//
// It opens no file and keeps nothing: a [UsageReader]'s state is for the caller to keep. Lines
// that it does not know, of an older or a newer Claude Code, are skipped.

package claude

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"netsky/cost"
	"netsky/internal/execx"
)

// UsageSource is the runtime's name in the records.
const UsageSource = "claude"

// UsageFiles returns the files of a conversation, its own last. env is the environment of a Claude Code
// that has it.
func UsageFiles(env []string, session string) []string {
	if session == "" || strings.ContainsAny(session, "/*?[\\") {
		return nil
	}
	projects := filepath.Join(usageConfigDir(env), "projects")
	entries, err := os.ReadDir(projects)
	if err != nil {
		return nil
	}
	var list []string
	for _, e := range entries {
		dir := filepath.Join(projects, e.Name(), session)
		file := dir + ".jsonl"
		if _, err := os.Lstat(file); err != nil {
			continue
		}
		// A pattern of our own never is a bad one; directories that are missing have no files.
		for _, below := range []string{"subagents/*.jsonl", "subagents/*/*.jsonl"} {
			subagents, _ := fs.Glob(os.DirFS(dir), below)
			for _, name := range subagents[:min(len(subagents), maxFiles)] {
				list = append(list, filepath.Join(dir, name))
			}
		}
		list = append(list, file)
	}
	return list
}

// maxFiles is how many files of subagents are read in one directory.
const maxFiles = 2000

// usageConfigDir returns the directory in which Claude Code keeps its files.
func usageConfigDir(env []string) string {
	return cmp.Or(execx.Value(env, "CLAUDE_CONFIG_DIR"), filepath.Join(execx.Value(env, "HOME"), ".claude"))
}

// state is what a Reader must know of the lines before.
type state struct {
	cost.Prompt
	MS     int64 `json:"ms,omitempty"`     // the latest time in a line
	Forked bool  `json:"forked,omitempty"` // it began as a copy of another conversation, whose sums it has not stated yet
	Stated bool  `json:"stated,omitempty"`
}

// A UsageReader takes the lines of one file in order.
type UsageReader struct{ cost.Reading[state] }

// OpenUsage returns a Reader of a file of the conversation that continues from a State; "" is the
// beginning.
func OpenUsage(thread, saved string) *UsageReader {
	return &UsageReader{cost.Open[state](thread, saved)}
}

// A line of a conversation's file, reduced to what is used.
type usageLine struct {
	Type    string    `json:"type"`
	Prompt  string    `json:"promptId"`
	Request string    `json:"requestId"`
	Session string    `json:"requestSessionId"` // of a copied line, the conversation it was in
	Time    time.Time `json:"timestamp"`
	Failure bool      `json:"isApiErrorMessage"`
	Summary bool      `json:"isCompactSummary"`
	Message struct {
		ID      string          `json:"id"`
		Model   string          `json:"model"`
		Content json.RawMessage `json:"content"`
		Usage   *struct {
			Input      int64 `json:"input_tokens"`
			CacheRead  int64 `json:"cache_read_input_tokens"`
			CacheWrite int64 `json:"cache_creation_input_tokens"`
			Output     int64 `json:"output_tokens"`
		} `json:"usage"`
	} `json:"message"`
}

// sums are a line of type cost-state.
type sums struct {
	Unknown bool `json:"hasUnknownModelCost"`
	Models  map[string]struct {
		Input      int64   `json:"inputTokens"`
		Output     int64   `json:"outputTokens"`
		CacheRead  int64   `json:"cacheReadInputTokens"`
		CacheWrite int64   `json:"cacheCreationInputTokens"`
		Dollars    float64 `json:"costUSD"`
	} `json:"modelUsage"`
}

var (
	usageAssistantMark = []byte(`"type":"assistant"`)
	usageUserMark      = []byte(`"type":"user"`)
	resultMark         = []byte(`"type":"tool_result"`)
	stateMark          = []byte(`"type":"cost-state"`)
)

// synthetic is the model's name on what Claude Code writes in its place.
const syntheticModel = "<synthetic>"

// Line takes the next line, without its end, and returns what it says.
func (r *UsageReader) Line(data []byte) (turns []cost.Turn, stated []cost.Statement) {
	// The marks only spare the reading of lines that have none: what an agent gives a tool may have any.
	said, heard := bytes.Contains(data, usageAssistantMark), bytes.Contains(data, usageUserMark) && !bytes.Contains(data, resultMark)
	if !said && !heard && !bytes.Contains(data, stateMark) {
		return nil, nil
	}
	var l usageLine
	if json.Unmarshal(data, &l) != nil {
		return nil, nil
	}
	if !l.Time.IsZero() {
		r.Now.MS = max(r.Now.MS, l.Time.UnixMilli())
	}
	switch {
	case l.Type == "cost-state":
		return nil, r.sums(data)
	case l.Type == "user" && l.Prompt != "" && !l.Summary:
		r.Now.Heard(l.Prompt, Text(l.Message.Content))
	case l.Type == "assistant":
		return r.said(l), nil
	}
	return nil, nil
}

// said handles a part of an answer.
func (r *UsageReader) said(l usageLine) []cost.Turn {
	u, m := l.Message.Usage, l.Message
	if u == nil || m.ID == "" || m.Model == syntheticModel || l.Failure {
		return nil
	}
	if l.Session != "" && l.Session != r.Thread && !r.Now.Stated {
		r.Now.Forked = true
	}
	return []cost.Turn{{
		Source: UsageSource, Key: cost.Cut(m.ID) + " " + cost.Cut(l.Request), Thread: r.Thread, Prompt: r.Now.ID, Message: r.Now.Message, Model: cost.Cut(m.Model),
		Usage: cost.Usage{Input: u.Input, Output: u.Output, CacheRead: u.CacheRead, CacheWrite: u.CacheWrite}, Time: l.Time,
	}}
}

// maxModels is how many models a conversation can have used.
const maxModels = 50

// sums handles what Claude Code says that the conversation has used since its beginning.
func (r *UsageReader) sums(data []byte) (stated []cost.Statement) {
	var l struct {
		usageLine
		sums
	}
	if json.Unmarshal(data, &l) != nil || l.Type != "cost-state" || len(l.Models) > maxModels {
		return nil
	}
	for model, u := range l.Models {
		s := cost.Statement{
			Source: UsageSource, Thread: r.Thread, Model: cost.Cut(model), Message: r.Now.Message, Time: time.UnixMilli(r.Now.MS),
			Usage: cost.Usage{Input: u.Input, Output: u.Output, CacheRead: u.CacheRead, CacheWrite: u.CacheWrite}, Base: r.Now.Forked, Unsure: l.Unknown || !(u.Dollars >= 0 && u.Dollars < 1e9),
		}
		if !s.Unsure {
			s.Nano = int64(u.Dollars*1e9 + 0.5)
		}
		stated = append(stated, s)
	}
	r.Now.Forked, r.Now.Stated = false, true
	slices.SortFunc(stated, func(a, b cost.Statement) int { return strings.Compare(a.Model, b.Model) })
	return stated
}
