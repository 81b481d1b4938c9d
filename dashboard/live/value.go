package live

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"strings"

	"netsky/view"
)

// The keys of events. For an agent or a pane, its name is appended.
const (
	keyHello     = "hello"
	keyRecords   = "records"
	keyAgents    = "agents" // why they could not be listed
	keyAgent     = "agent:"
	keyApprovals = "approvals"
	keyPane      = "pane:"
)

func isPane(key string) bool { return strings.HasPrefix(key, keyPane) }

// A value is the state of a key. It is immutable once published.
type value interface {
	// encode returns the value as JSON for a browser that has had another value of the
	// key, or nil for none.
	encode(had value) []byte
	// base returns what must be kept of the value to encode the next.
	base() value
	// version identifies the value as [Known] does for the page that shows it; "" if no
	// page shows it.
	version() string
}

// A doc is a value that is sent whole.
type doc struct {
	data []byte
	name string // its version
}

func newDoc(data []byte) *doc { return &doc{data, versionOf(data)} }

func (d *doc) encode(value) []byte { return d.data }
func (d *doc) base() value         { return d }
func (d *doc) version() string     { return d.name }

// null is sent for a key that no longer has a value.
var null = newDoc([]byte("null"))

// versionOf returns a short hash: a page has one for each agent.
func versionOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:6])
}

// Known returns the versions of what a page shows: the script ignores events with one
// of those. records is from RecordsVersion. The result reads "agent:agent1=0123456789ab
// approvals=… records=…".
func Known(agents []view.Agent, approvals []Approval, records string) string {
	var b strings.Builder
	add := func(key string, v any) {
		if data, err := json.Marshal(v); err == nil {
			b.WriteString(key + "=" + versionOf(data) + " ")
		}
	}
	for _, a := range agents {
		add(keyAgent+string(a.ID), view.API{Agent: a})
	}
	add(keyApprovals, approvals)
	return b.String() + keyRecords + "=" + records
}

// An event is one key's state for one browser.
type event struct {
	id    int64
	key   string
	value value
	had   value // the value sent last
}

// append adds the event in the form that both SSE and websocket use.
func (e event) append(b []byte) []byte {
	b = append(b, `{"id":`...)
	b = strconv.AppendInt(b, e.id, 10)
	b = append(b, `,"key":"`...) // of letters, digits and a colon
	b = append(b, e.key...)
	if v := e.value.version(); v != "" {
		b = append(append(b, `","v":"`...), v...)
	}
	b = append(b, `","data":`...)
	b = append(b, e.value.encode(e.had)...)
	return append(b, '}')
}
