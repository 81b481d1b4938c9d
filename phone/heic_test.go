package phone_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"netsky/agent"
	"netsky/home"
	"netsky/phone"
	"netsky/phone/chat"
)

// A picture that few programs can read is converted, if something does that; else who sent it and the
// agent are told so.
func TestHEIC(t *testing.T) {
	w := newWorld(t, func(o *phone.Options) {
		o.Convert = func(_ context.Context, picture []byte) ([]byte, error) {
			if bytes.Contains(picture, []byte("IMG_3")) {
				return nil, errors.New("no program")
			}
			return []byte("JPEG"), nil
		}
	})
	w.wire.Put(chat.Message{Text: "converted", Attachments: []chat.Attachment{{GUID: "a", Name: "IMG_1.HEIC", Bytes: 3}, {GUID: "b", Name: "IMG_2.png", Bytes: 3}}})
	e := w.arrives(agent.Root, "converted")
	if len(e.Attachments) != 2 || !strings.HasSuffix(e.Attachments[0], "-1.jpg") || !strings.HasSuffix(e.Attachments[1], "-2.png") {
		t.Fatalf("files %q", e.Attachments)
	}
	if data, err := os.ReadFile(w.home.Path(home.Mailbox(agent.Root), e.Attachments[0])); err != nil || !bytes.Equal(data, []byte("JPEG")) {
		t.Errorf("%q, %v", data, err)
	}
	w.wire.Put(chat.Message{Text: "as it is", Attachments: []chat.Attachment{{GUID: "c", Name: "IMG_3.heic", Bytes: 4}}})
	const note = "IMG_3.heic: passed on as it is, in HEIC, which many programs cannot read; nothing here could convert it."
	if e := w.arrives(agent.Root, "as it is\n("+note+")"); len(e.Attachments) != 1 || !strings.HasSuffix(e.Attachments[0], ".heic") {
		t.Errorf("files %q", e.Attachments)
	}
	w.says(note)
}
