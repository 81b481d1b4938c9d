package messagesim

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// A Sim is the process that keeps a database.
type Sim struct {
	Path    string // of chat.db, in Library/Messages of a directory of the test's
	Profile Profile

	tb  testing.TB
	mu  sync.Mutex // guards the connection to the process
	cmd *exec.Cmd
	in  *json.Encoder
	out *bufio.Scanner
	n   int
}

// Start starts the process, with an empty database. It ends with the test.
func Start(tb testing.TB, p Profile) *Sim {
	tb.Helper()
	dir, err := os.MkdirTemp("", "m")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { os.RemoveAll(dir) })
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		tb.Fatal(err)
	}
	s := &Sim{Path: filepath.Join(dir, "Library", "Messages", "chat.db"), Profile: p, tb: tb}
	if err := os.MkdirAll(filepath.Join(filepath.Dir(s.Path), "Attachments"), 0o700); err != nil {
		tb.Fatal(err)
	}
	s.start()
	s.call(request{Op: "make", Profile: p})
	return s
}

func (s *Sim) start() {
	s.tb.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), envRole+"=keep", envDB+"="+s.Path)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		s.tb.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		s.tb.Fatal(err)
	}
	s.cmd, s.in, s.out = cmd, json.NewEncoder(in), bufio.NewScanner(out)
	s.tb.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
}

func (s *Sim) call(req request) {
	s.tb.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.in.Encode(req); err != nil {
		s.tb.Fatal(err)
	}
	if !s.out.Scan() {
		s.tb.Fatalf("messagesim %s: the process has ended: %v", req.Op, s.out.Err())
	}
	var res response
	if err := json.Unmarshal(s.out.Bytes(), &res); err != nil {
		s.tb.Fatal(err)
	}
	if res.Err != "" {
		s.tb.Fatalf("messagesim %s: %s", req.Op, res.Err)
	}
}

// A Message is a row to insert, with what belongs to it.
type Message struct {
	GUID    string // made up if empty
	Chat    string // the chat's guid; "iMessage;-;+15550100" if empty
	From    string // the handle that wrote it; empty: our own account
	Text    string
	Body    []byte // the attributedBody
	Service string // iMessage if empty
	At      time.Time
	Columns map[string]any // further columns of table message
	Files   []File
	// Join is when the row gets its chat: 0 in the same transaction, otherwise so long after it
	// (a nanosecond is: right after). Never is never.
	Join time.Duration
}

// Never is for a join that does not happen.
const Never = time.Duration(-1)

// A File is an attachment.
type File struct {
	GUID, Name, MIME, Path string
	Bytes, State           int64
	Hidden                 bool
}

// DefaultChat is the chat of messages that name none.
const DefaultChat = "iMessage;-;+15550100"

// Insert inserts a message, and returns its guid.
func (s *Sim) Insert(m Message) string {
	s.tb.Helper()
	list, join := s.statements(&m)
	switch {
	case m.Join == 0:
		list = append(list, join)
	case m.Join > 0:
		defer s.call(request{Op: "later", After: m.Join, Statements: []statement{join}})
	}
	s.call(request{Op: "run", Statements: list})
	return m.GUID
}

// InsertAll inserts messages in one transaction.
func (s *Sim) InsertAll(messages ...Message) {
	s.tb.Helper()
	var all []statement
	for _, m := range messages {
		list, join := s.statements(&m)
		all = append(all, list...)
		if m.Join != Never {
			all = append(all, join)
		}
	}
	s.call(request{Op: "run", Statements: all})
}

// Hold begins a transaction that inserts messages, and leaves it open.
func (s *Sim) Hold(messages ...Message) {
	s.tb.Helper()
	var all []statement
	for _, m := range messages {
		list, join := s.statements(&m)
		all = append(append(all, list...), join)
	}
	s.call(request{Op: "hold", Statements: all})
}

// Set changes columns of the message with that guid, after a time.
func (s *Sim) Set(after time.Duration, guid string, columns map[string]any) {
	s.tb.Helper()
	names := slices.Sorted(maps.Keys(columns))
	var args []any
	for _, n := range names {
		args = append(args, argument(columns[n]))
	}
	st := statement{"UPDATE message SET " + strings.Join(names, " = ?, ") + " = ? WHERE guid = ?", append(args, guid)}
	if after == 0 {
		s.call(request{Op: "run", Statements: []statement{st}})
		return
	}
	s.call(request{Op: "later", After: after, Statements: []statement{st}})
}

// Exec runs a statement.
func (s *Sim) Exec(sql string, args ...any) {
	s.tb.Helper()
	for i, a := range args {
		args[i] = argument(a)
	}
	s.call(request{Op: "run", Statements: []statement{{sql, args}}})
}

// Join puts a message into a chat, which is made if there is none.
func (s *Sim) Join(guid, chat string) {
	s.tb.Helper()
	s.call(request{Op: "run", Statements: []statement{chatRow(chat), joinRow(guid, chat)}})
}

// NewLog ends the write-ahead log, removes it, and begins another in a new file.
func (s *Sim) NewLog() { s.tb.Helper(); s.call(request{Op: "newlog"}) }

// Replace puts a new, empty database in the place of this one.
func (s *Sim) Replace(p Profile) { s.tb.Helper(); s.call(request{Op: "make", Profile: p}) }

// Damage makes the table message unreadable; Mend makes it as it was.
func (s *Sim) Damage() { s.tb.Helper(); s.call(request{Op: "damage"}) }
func (s *Sim) Mend()   { s.tb.Helper(); s.call(request{Op: "mend"}) }

// Lock keeps everybody from opening the database for a time. It waits until nobody has it open.
func (s *Sim) Lock(t time.Duration) { s.tb.Helper(); s.call(request{Op: "lock", After: t}) }

// Kill ends the process with SIGKILL.
func (s *Sim) Kill() {
	s.cmd.Process.Kill()
	s.cmd.Wait()
}

// Restart starts the process again after Kill, with the database as it is.
func (s *Sim) Restart() {
	s.tb.Helper()
	s.start()
	s.call(request{Op: "open"})
}

// statements returns what inserts a message, and what puts it into its chat. What it lacks is
// filled in.
func (s *Sim) statements(m *Message) (list []statement, join statement) {
	s.n++
	if m.GUID == "" {
		m.GUID = fmt.Sprintf("G-%d-%d", s.n, time.Now().UnixNano())
	}
	if m.Chat == "" {
		m.Chat = DefaultChat
	}
	if m.Service == "" {
		m.Service = "iMessage"
	}
	if m.At.IsZero() {
		m.At = time.Now()
	}
	list = []statement{chatRow(m.Chat)}
	columns := map[string]any{"service": m.Service, "date": Date(m.At), "is_finished": 1, "is_from_me": 1}
	if m.Text != "" {
		columns["text"] = m.Text
	}
	if m.Body != nil {
		columns["attributedBody"] = m.Body
	}
	if len(m.Files) > 0 {
		columns["cache_has_attachments"] = 1
	}
	handle := "0"
	var args []any
	if m.From != "" {
		columns["is_from_me"] = 0
		list = append(list, statement{"INSERT OR IGNORE INTO handle (id, service) VALUES (?, ?)", []any{m.From, m.Service}})
		handle = "(SELECT ROWID FROM handle WHERE id = ? AND service = ?)"
		args = []any{m.From, m.Service}
	}
	maps.Copy(columns, m.Columns)
	names := slices.Sorted(maps.Keys(columns))
	args = append(args, m.GUID)
	for _, n := range names {
		args = append(args, argument(columns[n]))
	}
	list = append(list, statement{
		fmt.Sprintf("INSERT INTO message (handle_id, guid, %s) VALUES (%s, ?%s)", strings.Join(names, ", "), handle, strings.Repeat(", ?", len(names))), args,
	})
	for _, f := range m.Files {
		list = append(list, statement{
			"INSERT INTO attachment (guid, transfer_name, mime_type, filename, total_bytes, transfer_state, hide_attachment) VALUES (?, ?, ?, ?, ?, ?, ?)",
			[]any{f.GUID, f.Name, f.MIME, f.Path, f.Bytes, f.State, f.Hidden},
		}, statement{
			"INSERT INTO message_attachment_join SELECT m.ROWID, a.ROWID FROM message AS m, attachment AS a WHERE m.guid = ? AND a.guid = ?",
			[]any{m.GUID, f.GUID},
		})
	}
	return list, joinRow(m.GUID, m.Chat)
}

// chatRow makes a chat, with the style that its guid says.
func chatRow(guid string) statement {
	service, rest, _ := strings.Cut(guid, ";")
	separator, id, _ := strings.Cut(rest, ";")
	var style any
	if separator != "" {
		style = int(separator[0])
	}
	return statement{"INSERT OR IGNORE INTO chat (guid, style, chat_identifier, service_name) VALUES (?, ?, ?, ?)", []any{guid, style, id, service}}
}

func joinRow(message, chat string) statement {
	return statement{
		"INSERT INTO chat_message_join (chat_id, message_id, message_date) SELECT c.ROWID, m.ROWID, m.date FROM chat AS c, message AS m WHERE c.guid = ? AND m.guid = ?",
		[]any{chat, message},
	}
}

// argument makes a value fit for JSON: blobs are marked, and numbers keep all their digits.
func argument(v any) any {
	if b, ok := v.([]byte); ok {
		return map[string]string{"blob": base64.StdEncoding.EncodeToString(b)}
	}
	return v
}

// Date returns a time as Messages stores it.
func Date(t time.Time) int64 { return t.UnixNano() - 978307200*int64(time.Second) }
