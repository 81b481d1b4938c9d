package wire

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"netsky/internal/proc"
)

// A File says what one host has put for another, and is told to it in a signed message.
type File struct {
	ID     string `json:"id"` // a token of a subject
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"` // in hex
}

// partSize is how much of a file is in one message, and partTime how long that may take.
const (
	partSize = 512 << 10
	partTime = 30 * time.Second
)

// ErrFile reports that a file is not, or no longer, there as its sender has told.
var ErrFile = errors.New("is not there as its sender has put it")

// PutFile puts what r has for a host, at most limit bytes, and returns what to tell it. It
// may be repeated.
func PutFile(ctx context.Context, js jetstream.JetStream, from, to, id string, r io.Reader, limit int64) (File, error) {
	f, sum, part := File{ID: id}, sha256.New(), make([]byte, partSize)
	r = io.TeeReader(io.LimitReader(r, limit+1), sum)
	for i := 0; ; i++ {
		n, err := io.ReadFull(r, part)
		last := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !last {
			return f, err
		}
		if f.Size += int64(n); f.Size > limit {
			return f, fmt.Errorf("the file is larger than %d bytes", limit)
		}
		if n > 0 {
			pctx, end := context.WithTimeout(ctx, partTime)
			_, err := js.Publish(pctx, FileSubject(from, to, id, strconv.Itoa(i)), part[:n], jetstream.WithExpectStream(FileStream(from)))
			if end(); err != nil {
				return f, err
			}
		}
		if last {
			f.SHA256 = hex.EncodeToString(sum.Sum(nil))
			return f, nil
		}
	}
}

// GetFile writes a file that a host has put for another to w, at most limit bytes. With an
// error, what it has written does not count; [ErrFile] means that a repetition doesn't help.
func GetFile(ctx context.Context, nc *nats.Conn, from, to string, f File, w io.Writer, limit int64) error {
	if f.Size < 0 || f.Size > limit {
		return fmt.Errorf("the file is %d bytes long; the limit is %d", f.Size, limit)
	}
	sum, left := sha256.New(), f.Size
	for i := 0; left > 0; i++ {
		m, err := getPart(ctx, nc, FileStream(from), FileSubject(from, to, f.ID, strconv.Itoa(i)))
		if err != nil {
			return err
		}
		n := int64(len(m.Data))
		if m.Header.Get("Status") != "" || n == 0 || n > left {
			return fmt.Errorf("file %s of %s: %w", f.ID, from, ErrFile)
		}
		if _, err := io.MultiWriter(w, sum).Write(m.Data); err != nil {
			return err
		}
		left -= n
	}
	if hex.EncodeToString(sum.Sum(nil)) != f.SHA256 {
		return fmt.Errorf("file %s of %s: %w", f.ID, from, ErrFile)
	}
	return nil
}

// A node of a cluster answers for a stream before it has all of it again.
const (
	catchUp = 20 * time.Second // for how long a part may be missing there
	askPart = time.Second
)

// getPart asks for a part of a file until it is there, or long enough.
func getPart(ctx context.Context, nc *nats.Conn, stream, subject string) (*nats.Msg, error) {
	for began := time.Now(); ; {
		pctx, end := context.WithTimeout(ctx, partTime) // a new connection brings no answer to what was asked on the one before
		m, err := nc.RequestWithContext(pctx, "$JS.API.DIRECT.GET."+stream+"."+subject, nil)
		end()
		if err != nil || m.Header.Get("Status") == "" || nc.ConnectedClusterName() == "" || time.Since(began) > catchUp {
			return m, err
		}
		if err := proc.Sleep(ctx, askPart); err != nil {
			return nil, err
		}
	}
}

// DropFile removes a file that a host has put for another.
func DropFile(ctx context.Context, js jetstream.JetStream, from, to, id string) error {
	s, err := js.Stream(ctx, FileStream(from))
	if err != nil {
		return err
	}
	return s.Purge(ctx, jetstream.WithPurgeSubject(FileSubject(from, to, id, "*")))
}
