package imessage

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"time"

	"netsky/imessage/chatdb"
	"netsky/internal/execx"
	"netsky/phone/chat"
)

// Options are what a Transport is made with.
type Options struct {
	DB *chatdb.DB
	// Refuse returns an error for a file that must not be sent, such as one in netsky's home. It
	// is called with an absolute path without links.
	Refuse func(path string) error

	// What follows has defaults.
	Env     []string      // osascript's, which is also where its PATH is from; os.Environ
	Timeout time.Duration // of one osascript; 30 s
	Verify  time.Duration // how long the message is looked for after it; 5 s
	// Orphan is how long an osascript that an earlier process started may go on; Timeout and 5 s.
	Orphan time.Duration
	Now    func() time.Time
}

const (
	defaultTimeout = 30 * time.Second
	defaultVerify  = 5 * time.Second
	orphanMore     = 5 * time.Second
)

var errClosed = errors.New("messages: closed")

// A Transport sends and reads on this Mac. It implements imessage.Transport.
type Transport struct {
	o       Options
	began   time.Time
	turn    chan struct{} // held by the one that uses osascript
	closed  chan struct{}
	once    sync.Once
	cleaned time.Time // when old copies were removed; guarded by turn

	mu     sync.Mutex // guards unsure
	unsure map[string]time.Time
}

// New returns a transport. Close closes the database too.
func New(o Options) *Transport {
	if o.Env == nil {
		o.Env = os.Environ()
	}
	o.Env = execx.Inherited(o.Env)
	if o.Timeout == 0 {
		o.Timeout = defaultTimeout
	}
	if o.Verify == 0 {
		o.Verify = defaultVerify
	}
	if o.Orphan == 0 {
		o.Orphan = o.Timeout + orphanMore
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Transport{o: o, began: o.Now(), turn: make(chan struct{}, 1), closed: make(chan struct{}), unsure: make(map[string]time.Time)}
}

// Name returns "messages".
func (t *Transport) Name() string { return "messages" }

// Next waits for what arrived after a cursor.
func (t *Transport) Next(ctx context.Context, cursor string) (chat.Batch, error) {
	return t.o.DB.Next(ctx, cursor)
}

// Mark returns what stands at the end of the database now.
func (t *Transport) Mark(ctx context.Context) (string, error) { return t.o.DB.Mark(ctx) }

// Unknown returns the handles that the database does not have.
func (t *Transport) Unknown(ctx context.Context, handles []string) ([]string, error) {
	return t.o.DB.Unknown(ctx, handles)
}

// History returns the last messages of a chat, as they are now.
func (t *Transport) History(ctx context.Context, c chat.Chat, limit int) ([]chat.Message, error) {
	return t.o.DB.History(ctx, c, limit)
}

// Open returns an attachment's content.
func (t *Transport) Open(ctx context.Context, a chat.Attachment, max int64) (io.ReadCloser, error) {
	return t.o.DB.Open(ctx, a.GUID, max)
}

// Close waits for a send in progress, and closes the database.
func (t *Transport) Close() error {
	t.once.Do(func() { close(t.closed) })
	t.turn <- struct{}{}
	defer func() { <-t.turn }()
	return t.o.DB.Close()
}

// take waits until nobody uses osascript; the caller must call what it returns.
func (t *Transport) take(ctx context.Context) (free func(), err error) {
	select {
	case <-t.closed:
		return nil, errClosed
	default:
	}
	select {
	case t.turn <- struct{}{}:
		return func() { <-t.turn }, nil
	case <-t.closed:
		return nil, errClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
