package imessage

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
	"netsky/agent/home"
	"netsky/bus/envelope"
	"netsky/imessage/chat"
	"netsky/store/phone"
)

const (
	mostFiles = 10       // of one message
	mostBytes = 16 << 20 // of one file
)

// files stores what came with a message in the agent's mailbox, and returns the names for the
// envelope. lost says what could not be stored, and why.
func (b *Bridge) files(ctx context.Context, h phone.Heard, to agent.ID, id string) (names, lost []string) {
	for i, a := range h.Files {
		said := envelope.Line(a.Name, 80)
		if said == "" {
			said = "a file"
		}
		switch {
		case i >= mostFiles:
			return names, append(lost, fmt.Sprintf("%d more files, of which %d are taken", len(h.Files)-mostFiles, mostFiles))
		case a.Missing != "":
			lost = append(lost, said+": "+a.Missing)
			continue
		case a.Bytes > mostBytes:
			lost = append(lost, fmt.Sprintf("%s: larger than %d MiB", said, mostBytes>>20))
			continue
		}
		name := id + "-" + strconv.Itoa(i+1) + suffix(a.Name)
		rel := home.Mailbox(to) + "/attach/" + name
		if b.o.Home.Mark(rel).Exists() { // before a crash
			names = append(names, "attach/"+name)
			continue
		}
		r, err := b.o.Transport.Open(ctx, chat.Attachment(a), mostBytes)
		if err == nil {
			var data []byte
			data, err = io.ReadAll(io.LimitReader(r, mostBytes+1))
			r.Close()
			switch {
			case err != nil:
			case len(data) > mostBytes:
				err = fmt.Errorf("larger than %d MiB", mostBytes>>20)
			default:
				err = b.o.Home.WriteFile(rel, data, true)
			}
		}
		if errors.Is(err, fs.ErrNotExist) {
			err = errors.New("its file is not there")
		}
		if err != nil {
			lost = append(lost, said+": "+err.Error())
			continue
		}
		names = append(names, "attach/"+name)
	}
	return names, lost
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
