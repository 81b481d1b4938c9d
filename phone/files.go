package phone

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"

	"netsky/agent"
	"netsky/bus/envelope"
	"netsky/home"
	"netsky/phone/chat"
	"netsky/phone/record"
)

const (
	mostFiles = 10       // of one message
	mostBytes = 16 << 20 // of one file
)

// files stores what came with a message in the agent's mailbox, and returns the names for the
// envelope. lost says what could not be stored, and why; notes what is to be known of the rest.
func (b *orders) files(ctx context.Context, h record.Heard, to agent.ID, id string) (names, lost, notes []string) {
	for i, a := range h.Files {
		said := envelope.Line(a.Name, 80)
		if said == "" {
			said = "a file"
		}
		switch {
		case i >= mostFiles:
			return names, append(lost, fmt.Sprintf("%d more files, of which %d are taken", len(h.Files)-mostFiles, mostFiles)), notes
		case a.Missing != "":
			lost = append(lost, said+": "+a.Missing)
			continue
		case a.Bytes > mostBytes:
			lost = append(lost, fmt.Sprintf("%s: larger than %d MiB", said, mostBytes>>20))
			continue
		}
		kept, note, err := b.keep(ctx, a, to, id+"-"+strconv.Itoa(i+1))
		if errors.Is(err, fs.ErrNotExist) {
			err = errors.New("its file is not there")
		}
		if err != nil {
			lost = append(lost, said+": "+err.Error())
			continue
		}
		if note != "" {
			notes = append(notes, said+": "+note)
		}
		names = append(names, "attach/"+kept)
	}
	return names, lost, notes
}

// keep stores one file in the agent's mailbox under a name without its end, and returns the whole
// name. note says what it may be of no use for.
func (b *orders) keep(ctx context.Context, a record.File, to agent.ID, name string) (kept, note string, err error) {
	end := suffix(a.Name)
	heic := end == ".heic" || end == ".heif" || a.MIME == "image/heic" || a.MIME == "image/heif"
	ends := []string{end}
	if heic {
		ends, note = []string{".jpg", end}, "passed on as it is, in HEIC, which many programs cannot read; nothing here could convert it"
	}
	rel := func(end string) string { return home.Mailbox(to) + "/attach/" + name + end }
	for _, e := range ends {
		if b.o.Home.Mark(rel(e)).Exists() { // before a crash
			if e != end {
				note = ""
			}
			return name + e, note, nil
		}
	}
	r, err := b.o.Transport.Open(ctx, chat.Attachment(a), mostBytes)
	if err != nil {
		return "", "", err
	}
	defer r.Close()
	data, err := io.ReadAll(io.LimitReader(r, mostBytes+1))
	if err == nil && len(data) > mostBytes {
		err = fmt.Errorf("larger than %d MiB", mostBytes>>20)
	}
	if err != nil {
		return "", "", err
	}
	if heic && b.o.Convert != nil {
		if jpeg, err := b.o.Convert(ctx, data); err == nil {
			data, end, note = jpeg, ".jpg", ""
		} else {
			b.o.Log.Warn("a picture is not converted", "error", err)
		}
	}
	return name + end, note, b.o.Home.WriteFile(rel(end), data, true)
}

// suffix returns the end of a file's name by which programs know its type, if it looks like
// one; nothing else of a name that somebody else chose becomes a file's.
func suffix(name string) string {
	ext := strings.ToLower(filepath.Ext(name))
	if len(ext) < 2 || len(ext) > 6 || strings.Trim(ext[1:], "abcdefghijklmnopqrstuvwxyz0123456789") != "" {
		return ""
	}
	return ext
}
