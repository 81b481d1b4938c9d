package telegram

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	"netsky/phone/chat"
)

const (
	maxFetch   = 20 << 20 // bytes of a file that a bot can fetch
	fetchLimit = 3 * time.Minute
)

// Open fetches an attachment. Reading past max bytes fails: nothing is cut short.
func (t *Transport) Open(ctx context.Context, a chat.Attachment, max int64) (io.ReadCloser, error) {
	if a.Missing != "" {
		return nil, fmt.Errorf("telegram: %s", a.Missing)
	}
	max = min(max, maxFetch)
	if a.Bytes > max {
		return nil, fmt.Errorf("telegram: the file has %d bytes; at most %d are taken", a.Bytes, max)
	}
	tok, err := t.token()
	if err != nil {
		return nil, degrade(err)
	}
	var file struct {
		Path string `json:"file_path"`
		Size int64  `json:"file_size"`
	}
	if err := t.call(ctx, tok, "getFile", map[string]any{"file_id": a.GUID}, &file); err != nil {
		return nil, t.fetchError(err)
	}
	if file.Size > max {
		return nil, fmt.Errorf("telegram: the file has %d bytes; at most %d are taken", file.Size, max)
	}
	where, err := relative(file.Path)
	if err != nil {
		return nil, err
	}
	return t.fetch(ctx, tok, where, max)
}

// relative returns the path of a file on the server for use in an address.
func relative(p string) (string, error) {
	if path.IsAbs(p) {
		return "", errors.New("telegram: the Bot API server runs in its local mode and hands out no files")
	}
	if p == "" || p != path.Clean(p) || p == ".." || strings.HasPrefix(p, "../") {
		return "", errors.New("telegram: the Bot API does not say where the file is")
	}
	parts := strings.Split(p, "/")
	for i, part := range parts {
		parts[i] = url.PathEscape(part)
	}
	return strings.Join(parts, "/"), nil
}

func (t *Transport) fetch(ctx context.Context, tok token, where string, max int64) (io.ReadCloser, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchLimit)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, t.api+"/file/bot"+tok.secret+"/"+where, nil)
	if err != nil {
		cancel()
		return nil, errors.New("telegram: the address of the file is malformed")
	}
	r, err := t.http.Do(req)
	if err != nil {
		err := t.fetchError(t.lost("file", tok, err))
		cancel()
		return nil, err
	}
	if r.StatusCode != http.StatusOK {
		r.Body.Close()
		cancel()
		return nil, t.fetchError(&failure{method: "file", code: r.StatusCode, text: http.StatusText(r.StatusCode)})
	}
	return &download{t: t, tok: tok, body: r.Body, left: max, cancel: cancel}, nil
}

func (t *Transport) fetchError(err error) error { return fmt.Errorf("telegram: %w", err) }

// A download is a file on its way.
type download struct {
	t      *Transport
	tok    token
	body   io.ReadCloser
	left   int64
	cancel context.CancelFunc
}

func (d *download) Read(p []byte) (int, error) {
	if int64(len(p)) > d.left+1 {
		p = p[:d.left+1]
	}
	n, err := d.body.Read(p)
	if int64(n) > d.left {
		return int(d.left), errors.New("telegram: the file is larger than what is taken")
	}
	d.left -= int64(n)
	if err != nil && err != io.EOF {
		err = d.t.fetchError(d.t.lost("file", d.tok, err))
	}
	return n, err
}

func (d *download) Close() error {
	err := d.body.Close()
	d.cancel()
	return err
}
