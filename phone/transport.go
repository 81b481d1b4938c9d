package phone

import (
	"context"
	"io"

	"netsky/phone/chat"
)

// A Transport carries messages between the bridge and the owner's phone. Its methods may be
// called at the same time, except that Next is called by one caller only.
type Transport interface {
	// Name returns the transport's name, which its records carry: messages, bluebubbles, telegram.
	Name() string
	// Next waits until something arrived after the cursor, or about half a minute, and returns
	// it. An empty cursor is the first run: nothing from before it is returned, and the batch's
	// cursor says where it began; so it is where the cursor does not belong to what is there now,
	// which a note says. The error is a *chat.Degraded where the transport cannot read for now;
	// the caller waits and calls again with the same cursor.
	Next(ctx context.Context, cursor string) (chat.Batch, error)
	// Mark returns what stands at the transport's end now; Find looks behind it only.
	Mark(ctx context.Context) (string, error)
	// Send sends one message and reports what became of it. An error says that nothing was
	// tried. Once begun, a send is not broken off when ctx ends: its receipt says what it did.
	Send(ctx context.Context, out chat.Outgoing) (chat.Receipt, error)
	// Find looks for a message that may have been sent: after a crash, or where Send could not
	// tell. A receipt of state failed says that it was not sent: that it is certainly not there.
	// It returns chat.ErrCannotLook if the transport has no way to find out.
	Find(ctx context.Context, out chat.Outgoing) (chat.Receipt, error)
	// History returns the last messages of a chat, oldest first, or chat.ErrNoHistory.
	History(ctx context.Context, c chat.Chat, limit int) ([]chat.Message, error)
	// Open returns an attachment's content, of at most max bytes.
	Open(ctx context.Context, a chat.Attachment, max int64) (io.ReadCloser, error)
	// Check finds out what works and what does not, for `netsky imessage doctor`. It sends
	// nothing.
	Check(ctx context.Context) []chat.Fact
	// Close releases what the transport holds.
	Close() error
}

// A Clearer is a transport that can take the choices off a text which it has sent.
type Clearer interface {
	ClearChoices(ctx context.Context, c chat.Chat, guid string) error
}
