package bluebubbles

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"netsky/internal/proc"
	"netsky/phone/chat"
)

const (
	// maxFile is how large a file is sent: what Messages takes.
	maxFile = 100 << 20
	// fileTime is how long sending a file may take; the server waits three minutes for Messages.
	fileTime = 10 * time.Minute
)

// openFile opens a file that can be sent. It is no link itself, so that what is sent is what was
// named, and a pipe is not waited for.
func (t *Transport) openFile(path string) (*os.File, int64, error) {
	if t.opts.Refuse != nil {
		if err := t.opts.Refuse(path); err != nil {
			return nil, 0, err
		}
	}
	fd, err := proc.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW)
	if err == unix.ELOOP {
		return nil, 0, fmt.Errorf("%s: is a symbolic link", path)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("%s: %w", path, err)
	}
	f := os.NewFile(uintptr(fd), path)
	info, err := f.Stat()
	switch {
	case err != nil:
	case !info.Mode().IsRegular():
		err = fmt.Errorf("%s: not a file", path)
	case info.Size() == 0:
		err = fmt.Errorf("%s: empty", path)
	case info.Size() > maxFile:
		err = fmt.Errorf("%s: %d bytes, more than %d", path, info.Size(), maxFile)
	}
	if err != nil {
		f.Close()
		return nil, 0, err
	}
	return f, info.Size(), nil
}

func (t *Transport) sendFile(ctx context.Context, out chat.Outgoing, method string, f io.Reader, size int64) (*row, bool, error) {
	name := filepath.Base(out.File)
	var head bytes.Buffer
	form := multipart.NewWriter(&head)
	for _, field := range [][2]string{
		{"chatGuid", out.Chat.GUID}, {"tempGuid", tempGUID(out)}, {"name", name}, {"method", method},
	} {
		if err := form.WriteField(field[0], field[1]); err != nil {
			return nil, false, err
		}
	}
	if _, err := form.CreateFormFile("attachment", name); err != nil {
		return nil, false, err
	}
	tail := "\r\n--" + form.Boundary() + "--\r\n"
	var sent *row
	reached, err := t.call(ctx, fileTime, request{
		method: "POST", path: "message/attachment", kind: form.FormDataContentType(),
		body:   io.MultiReader(&head, io.LimitReader(f, size), strings.NewReader(tail)),
		length: int64(head.Len()) + size + int64(len(tail)),
	}, &sent)
	return sent, reached, err
}

// Open implements imessage.Transport. The reader ends with an error after Options.Fetch, as a
// server may send a byte now and then for ever.
func (t *Transport) Open(ctx context.Context, a chat.Attachment, max int64) (io.ReadCloser, error) {
	if strings.Trim(a.GUID, ".") == "" {
		return nil, fmt.Errorf("attachment %q: not a guid", a.GUID)
	}
	ctx, cancel := context.WithTimeout(ctx, t.opts.Fetch)
	body, err := t.fetch(ctx, a.GUID, max)
	if err != nil {
		cancel()
		return nil, err
	}
	return &capped{body: body, left: max, hide: t.hide, end: cancel}, nil
}

func (t *Transport) fetch(ctx context.Context, guid string, max int64) (io.ReadCloser, error) {
	// The original, as it was sent; and none that the Mac would have to load first.
	resp, _, err := t.do(ctx, request{
		method: "GET", path: "attachment/" + url.PathEscape(guid) + "/download",
		query: url.Values{"original": {"true"}, "force": {"false"}},
	})
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return nil, t.degraded(fmt.Errorf("no response within %s", t.opts.Fetch))
	case err != nil:
		return nil, t.degraded(err)
	case resp.StatusCode != 200:
		defer resp.Body.Close()
		return nil, t.degraded(t.failure(resp, envelope{Message: "the server cannot hand out the attachment"}))
	case resp.ContentLength > max:
		resp.Body.Close()
		return nil, fmt.Errorf("attachment %s: %d bytes, more than %d", clip(guid), resp.ContentLength, max)
	}
	return resp.Body, nil
}

var errMore = errors.New("the attachment is longer than allowed")

// capped is a body that is an error, not shorter, if it exceeds its limit.
type capped struct {
	body io.ReadCloser
	left int64
	hide func(error) error
	end  context.CancelFunc
}

func (c *capped) Read(p []byte) (int, error) {
	if int64(len(p)) > c.left+1 {
		p = p[:c.left+1]
	}
	n, err := c.body.Read(p)
	if int64(n) > c.left {
		n, err = int(c.left), errMore
	}
	c.left -= int64(n)
	if err != nil && err != io.EOF {
		err = c.hide(err)
	}
	return n, err
}

func (c *capped) Close() error {
	err := c.body.Close()
	c.end()
	return err
}
