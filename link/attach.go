package link

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"strings"

	"github.com/nats-io/nats.go"

	"netsky/bus/envelope"
	"netsky/home"
	"netsky/link/wire"
)

// MaxFile is the size of the largest file that goes with a message, in bytes, and maxFiles that of all that do.
const (
	MaxFile  = 16 << 20
	maxFiles = 4 * MaxFile
)

var errFiles = fmt.Errorf("does not cross: with one message at most %d MiB of files do", maxFiles>>20)

// filesField is the extra field of an envelope on its way that says where its files are.
const filesField = "link_files"

// A carried file is one that goes with a message.
type carried struct {
	Name string    `json:"name"` // as the envelope has it: attach/photo.jpg
	Lost string    `json:"lost,omitzero"`
	File wire.File `json:"file,omitzero"`
}

// put puts the files of a message where its receiver finds them, and notes that in the
// envelope. One that can't be sent does not keep the message back: it is noted as lost.
func (o *outbound) put(ctx context.Context, e envelope.Envelope) (envelope.Envelope, error) {
	if len(e.Attachments) == 0 {
		return e, nil
	}
	list, room := make([]carried, len(e.Attachments)), int64(maxFiles)
	for i, name := range e.Attachments {
		list[i].Name = name
		data, err := o.attached(home.Mailbox(e.To), name)
		if room -= int64(len(data)); err == nil && room < 0 {
			err = errFiles
		}
		if err != nil {
			list[i].Lost = err.Error()
			continue
		}
		list[i].File, err = wire.PutFile(ctx, o.js, o.self.Name, e.To.Host(), fileID(e, name), bytes.NewReader(data), MaxFile)
		if stays := full(err); errors.Is(stays, errFull) {
			list[i].Lost = "the server keeps no more files of " + o.self.Name
		} else if errors.Is(err, nats.ErrMaxPayload) {
			list[i].Lost = "the server takes no part of a file: its max_payload is too small"
		} else if err != nil {
			return e, err
		}
	}
	data, err := json.Marshal(list)
	e.Extra = maps.Clone(e.Extra)
	if e.Extra == nil {
		e.Extra = make(map[string]json.RawMessage)
	}
	e.Extra[filesField] = data
	return e, err
}

// fileID names a file on its way: it goes with one message, so that what one has brought here is
// not stored again for any number of others.
func fileID(e envelope.Envelope, name string) string {
	return envelope.Digest(string(e.From), string(e.To), e.ID, name)
}

// attached reads a file beside a mailbox.
func (o *outbound) attached(box, name string) ([]byte, error) {
	if !plain(name) {
		return nil, errors.New("its name is not attach/NAME")
	}
	data, err := o.Home.ReadFile(box+"/"+name, MaxFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, errors.New("is not there")
	case err != nil:
		return nil, fmt.Errorf("can't be read, or is larger than %d MiB", MaxFile>>20)
	}
	return data, nil
}

// plain reports whether a name is that of a file in attach/.
func plain(name string) bool {
	rest, ok := strings.CutPrefix(name, "attach/")
	return ok && rest != "" && rest[0] != '.' && len(rest) <= 200 && !strings.ContainsAny(rest, "/\\\x00")
}

// get stores the files of a message that has arrived, under names that no other message's
// have, and names them in the envelope. It may be repeated.
func (b *inbound) get(ctx context.Context, e envelope.Envelope) (_ envelope.Envelope, made []string, err error) {
	raw, ok := e.Extra[filesField]
	e.Extra = maps.Clone(e.Extra)
	delete(e.Extra, filesField)
	var list []carried
	if ok && json.Unmarshal(raw, &list) != nil {
		list = nil
	}
	names, room := e.Attachments, int64(maxFiles)
	e.Attachments = nil
	for i, name := range names {
		if i >= len(list) || list[i].Name != name || !plain(name) {
			e.Text = noted(e.Text, name, "did not come with it")
			continue
		}
		if list[i].Lost != "" {
			e.Text = noted(e.Text, name, list[i].Lost)
			continue
		}
		err, id := wire.ErrFile, fileID(e, name)
		kept := "attach/" + envelope.Digest(b.from.Name, id)[:12] + "-" + path.Base(name)
		rel := home.Mailbox(e.To.Local()) + "/" + kept
		there := b.Home.Mark(rel).Exists() // before a crash: it is whole
		if room -= min(max(list[i].File.Size, 0), MaxFile+1); room < 0 {
			e.Text = noted(e.Text, name, errFiles.Error())
			continue
		}
		if list[i].File.ID == id {
			err = b.store(ctx, list[i].File, rel, there)
		}
		switch {
		case err == nil:
			e.Attachments = append(e.Attachments, kept)
			if !there {
				made = append(made, rel)
			}
		case errors.Is(err, wire.ErrFile):
			e.Text = noted(e.Text, name, "is no longer at the server, or not as it was sent")
		default:
			return e, made, err
		}
	}
	return e, made, nil
}

func (b *inbound) store(ctx context.Context, f wire.File, rel string, there bool) error {
	if f.Size < 0 || f.Size > MaxFile {
		return wire.ErrFile
	}
	if there {
		return nil
	}
	var data bytes.Buffer
	if err := wire.GetFile(ctx, b.nc, b.from.Name, b.self.Name, f, &data, MaxFile); err != nil {
		return err
	}
	return b.Home.WriteFile(rel, data.Bytes(), true)
}

// noted adds to a text that a file is missing.
func noted(text, name, why string) string {
	return strings.TrimSpace(text + "\n(" + envelope.SafeText(fmt.Sprintf("The file %s %s.", strings.TrimPrefix(name, "attach/"), why)) + ")")
}
