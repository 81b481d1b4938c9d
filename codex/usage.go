// This file reads from Codex's rollouts, its files of threads, what each request to the model
// used.
//
// Codex writes a record of each response's usage under the response's id, in the thread's file
// that made it; older releases write only running sums of the thread's, of which a repeated one
// counts once. What came from the cache is part of the input there, and what the model thought is
// part of the output; here the cached part is a field of its own, and no token counts twice.
// Threads that a thread began have files of their own, which name the first one's session.
//
// It keeps nothing: a [UsageReader]'s state is for the caller to keep. Lines that it does not
// know are skipped. Codex states no cost.

package codex

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"netsky/cost"
	"netsky/internal/execx"
)

// UsageSource is the runtime's name in the records.
const UsageSource = "codex"

// A UsageFinder finds the files of threads. It remembers to which session a file belongs, and of which threads it
// has looked through all days.
type UsageFinder struct {
	sessions map[string]string
	whole    map[string]bool
}

const (
	maxKnown = 10_000 // files that a Finder remembers, and threads
	maxDays  = 60     // that are looked through for what a thread began
)

// Files returns the files of a thread and of those that it began lately, its own last; the first time also
// those that it began before, as nobody may have looked meanwhile. env is the environment of a Codex that has
// it.
func (f *UsageFinder) Files(env []string, thread string, now time.Time) []string {
	began, ok := born(thread)
	if !ok {
		return nil
	}
	began, now = began.UTC(), now.UTC()
	root := filepath.Join(usageHome(env), "sessions")
	var others, own []string
	for _, day := range f.days(thread, began, now) {
		dir := filepath.Join(root, day) // local time there, so that a day beside it may be meant
		entries, err := os.ReadDir(dir)
		if err != nil {
			continue
		}
		for _, e := range entries[max(0, len(entries)-maxFiles):] {
			name := e.Name()
			file := filepath.Join(dir, name)
			switch {
			case !strings.HasPrefix(name, "rollout-") || !strings.HasSuffix(name, ".jsonl"):
			case strings.HasSuffix(name, "-"+thread+".jsonl"):
				own = append(own, file)
			case f.session(file) == thread:
				others = append(others, file)
			}
		}
	}
	return append(others, own...)
}

// days lists the days in whose directories the files of a thread may be.
func (f *UsageFinder) days(thread string, began, now time.Time) (list []string) {
	around := func(t time.Time, before int) {
		for n := -before; n <= 1; n++ {
			if day := t.AddDate(0, 0, n).Format(dayDir); !slices.Contains(list, day) {
				list = append(list, day)
			}
		}
	}
	around(began, 1)
	before := 1
	if !f.whole[thread] {
		if f.whole == nil || len(f.whole) > maxKnown {
			f.whole = make(map[string]bool)
		}
		f.whole[thread] = true
		before = max(1, min(int(now.Sub(began)/(24*time.Hour)), maxDays))
	}
	around(now, before)
	return list
}

const (
	dayDir   = "2006/01/02"
	maxFiles = 2000 // of a day, the last ones
)

// born returns when a thread was begun, which its id says.
func born(thread string) (t time.Time, ok bool) {
	if len(thread) != 36 || strings.ContainsAny(thread, "/*?[\\") {
		return t, false
	}
	ms, err := strconv.ParseInt(thread[:8]+thread[9:13], 16, 64)
	if _, bad := hex.DecodeString(strings.ReplaceAll(thread, "-", "")); bad != nil || err != nil {
		return t, false
	}
	return time.UnixMilli(ms), true
}

func usageHome(env []string) string {
	return cmp.Or(execx.Value(env, "CODEX_HOME"), filepath.Join(execx.Value(env, "HOME"), ".codex"))
}

func (f *UsageFinder) session(file string) string {
	if f.sessions == nil || len(f.sessions) > maxKnown {
		f.sessions = make(map[string]string)
	}
	id, known := f.sessions[file]
	if !known {
		if id = session(file); id != "" {
			f.sessions[file] = id
		}
	}
	return id
}

// session returns the session that a file of a thread belongs to, "" if it does not say. It is in
// the beginning of the first line, which goes on for long.
func session(file string) string {
	info, err := os.Lstat(file)
	if err != nil || !info.Mode().IsRegular() {
		return ""
	}
	f, err := os.Open(file)
	if err != nil {
		return ""
	}
	defer f.Close()
	head, _ := bufio.NewReader(io.LimitReader(f, 4096)).Peek(4096) // what there is
	_, rest, found := bytes.Cut(head, []byte(`"session_id":"`))
	id, _, ended := bytes.Cut(rest, []byte(`"`))
	if !found || !ended || !bytes.Contains(head, []byte(`"type":"session_meta"`)) {
		return ""
	}
	return string(id)
}

// state is what a Reader must know of the lines before.
type state struct {
	cost.Prompt        // a turn
	Model       string `json:"model,omitempty"`
	Listed      bool   `json:"listed,omitempty"` // the file has records of responses
	Sum         int64  `json:"sum,omitempty"`    // of all tokens, as of the last running sum
}

// A UsageReader takes the lines of one file in order.
type UsageReader struct{ cost.Reading[state] }

// OpenUsage returns a Reader of a file of the thread that continues from a State; "" is the beginning.
func OpenUsage(thread, saved string) *UsageReader {
	return &UsageReader{cost.Open[state](thread, saved)}
}

// tokens are a usage as Codex writes it.
type tokens struct {
	Input      int64 `json:"input_tokens"`
	Cached     int64 `json:"cached_input_tokens"`
	CacheWrite int64 `json:"cache_write_input_tokens"`
	Output     int64 `json:"output_tokens"`
	Total      int64 `json:"total_tokens"`
}

// usage takes the cached tokens out of the input they are part of.
func (t tokens) usage() cost.Usage {
	cached := min(max(t.Cached, 0), t.Input)
	written := min(max(t.CacheWrite, 0), t.Input-cached)
	return cost.Usage{Input: t.Input - cached - written, Output: t.Output, CacheRead: cached, CacheWrite: written}
}

// A line of a rollout, reduced to what is used.
type line struct {
	Time    time.Time `json:"timestamp"`
	Type    string    `json:"type"`
	Payload struct {
		Type     string  `json:"type"`
		Turn     string  `json:"turn_id"`
		Root     string  `json:"root_turn_id"`
		Response string  `json:"response_id"`
		Model    string  `json:"model"`
		Message  string  `json:"message"`
		Usage    *tokens `json:"usage"`
		Info     *struct {
			Total tokens `json:"total_token_usage"`
			Last  tokens `json:"last_token_usage"`
		} `json:"info"`
		Item *struct {
			Type    string `json:"type"`
			Content []struct {
				Text string `json:"text"`
			} `json:"content"`
		} `json:"item"`
	} `json:"payload"`
}

var marks = [][]byte{
	[]byte(`"type":"token_usage_record"`), []byte(`"type":"token_count"`), []byte(`"type":"turn_context"`),
	[]byte(`"type":"UserMessage"`), []byte(`"type":"user_message"`),
}

// Line takes the next line, without its end, and returns what it says. Codex states nothing.
func (r *UsageReader) Line(data []byte) (turns []cost.Turn, stated []cost.Statement) {
	if !slices.ContainsFunc(marks, func(m []byte) bool { return bytes.Contains(data, m) }) {
		return nil, nil
	}
	var l line
	if json.Unmarshal(data, &l) != nil {
		return nil, nil
	}
	p := l.Payload
	switch {
	case l.Type == "turn_context":
		r.Now.Model = cost.Cut(p.Model)
	case l.Type == "token_usage_record" && p.Usage != nil && p.Response != "":
		r.Now.Listed = true
		return r.turn(l, cost.Cut(p.Turn)+" "+cost.Cut(p.Response), *p.Usage), nil
	case l.Type == "event_msg" && p.Type == "token_count" && p.Info != nil:
		return r.sum(l), nil
	case l.Type == "event_msg" && p.Type == "user_message":
		r.Now.Heard(p.Turn, p.Message)
	case l.Type == "event_msg" && p.Item != nil && p.Item.Type == "UserMessage":
		for _, c := range p.Item.Content {
			r.Now.Heard(p.Turn, c.Text)
		}
	}
	return nil, nil
}

func (r *UsageReader) turn(l line, key string, t tokens) []cost.Turn {
	n := cost.Turn{Source: UsageSource, Key: key, Thread: r.Thread, Prompt: cost.Cut(l.Payload.Root), Model: r.Now.Model, Usage: t.usage(), Time: l.Time}
	if n.Prompt == "" {
		n.Prompt = cost.Cut(l.Payload.Turn)
	}
	if l.Payload.Turn == r.Now.ID || l.Payload.Turn == "" {
		n.Message = r.Now.Message
	}
	return []cost.Turn{n}
}

// sum handles the running sum of a file without records of responses. It is written again when
// anything beside it changes.
func (r *UsageReader) sum(l line) []cost.Turn {
	info := l.Payload.Info
	if r.Now.Listed || info.Total.Total == r.Now.Sum {
		return nil
	}
	r.Now.Sum = info.Total.Total
	return r.turn(l, r.Thread+" sum "+strconv.FormatInt(info.Total.Total, 10), info.Last)
}
