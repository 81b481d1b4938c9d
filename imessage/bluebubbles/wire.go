package bluebubbles

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
)

// A row is a message as the server has it. What the server may leave out is a pointer, or is as
// good empty.
type row struct {
	ID         int64        `json:"originalROWID"`
	GUID       string       `json:"guid"`
	Text       *string      `json:"text"`
	Handle     *handle      `json:"handle"`
	Chats      []chatRow    `json:"chats"`
	Files      []attachment `json:"attachments"`
	Error      int64        `json:"error"`
	Created    *int64       `json:"dateCreated"` // ms of Unix time
	Retracted  *int64       `json:"dateRetracted"`
	FromMe     bool         `json:"isFromMe"`
	Item       int64        `json:"itemType"`
	Target     *string      `json:"associatedMessageGuid"`
	Assoc      assoc        `json:"associatedMessageType"`
	Thread     *string      `json:"threadOriginatorGuid"`
	Corrupt    *bool        `json:"isCorrupt"`
	Subject    *string      `json:"subject"`
	Automatic  flag         `json:"isAutoReply"` // a phone wrote it by itself
	Balloon    *string      `json:"balloonBundleId"`
	ReplyTo    *string      `json:"replyToGuid"` // the message before it
	unreadable error        // why a field could not be read
}

type handle struct {
	Address string  `json:"address"`
	Service *string `json:"service"`
}

type chatRow struct {
	GUID       string `json:"guid"`
	Style      *int64 `json:"style"`
	Identifier string `json:"chatIdentifier"`
}

type attachment struct {
	GUID   string  `json:"guid"`
	Name   *string `json:"transferName"`
	MIME   *string `json:"mimeType"`
	Bytes  *int64  `json:"totalBytes"`
	Hidden bool    `json:"hideAttachment"`
}

// A flag is set if the server says so in any way; it says some as numbers.
type flag bool

func (f *flag) UnmarshalJSON(data []byte) error {
	*f = string(data) == "true" || string(data) == "1"
	return nil
}

// An assoc is an associated_message_type. The server writes some by name and the others as a
// number in quotes; earlier ones wrote a number.
type assoc int64

// The names that the server has; a minus in front of one is its removal.
var reactions = map[string]assoc{
	"love": 2000, "like": 2001, "dislike": 2002, "laugh": 2003, "emphasize": 2004, "question": 2005,
}

func (a *assoc) UnmarshalJSON(data []byte) error {
	*a = 0
	if bytes.Equal(data, []byte("null")) {
		return nil
	}
	var s string
	if err := json.Unmarshal(data, &s); err != nil {
		return json.Unmarshal(data, (*int64)(a))
	}
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		*a = assoc(n)
		return nil
	}
	name, removed := s, false
	if len(s) > 1 && s[0] == '-' {
		name, removed = s[1:], true
	}
	n, known := reactions[name]
	switch {
	case s == "":
	case !known:
		*a = unknownAssoc
	case removed:
		*a = n + 1000
	default:
		*a = n
	}
	return nil
}

// unknownAssoc is a type that we do not know: whatever it is, it is no message.
const unknownAssoc assoc = -1

// info is what the server says about itself.
type info struct {
	Computer *string `json:"computer_id"` // its user and host
	System   string  `json:"os_version"`
	Version  string  `json:"server_version"`
	Private  bool    `json:"private_api"`
	Helper   bool    `json:"helper_connected"`
	Account  *string `json:"detected_imessage"`
}

// rows decodes a list of messages. One whose fields are not what they should be is returned with
// the reason, as long as it has a number and a guid; without them the server is not understood.
func rows(list []json.RawMessage) ([]row, error) {
	all := make([]row, 0, len(list))
	for _, data := range list {
		var r row
		if err := json.Unmarshal(data, &r); err != nil {
			var least struct {
				ID   int64  `json:"originalROWID"`
				GUID string `json:"guid"`
			}
			if json.Unmarshal(data, &least) != nil {
				return nil, fmt.Errorf("a message is not the API's: %w", err)
			}
			r = row{ID: least.ID, GUID: least.GUID, unreadable: err}
		}
		if r.ID <= 0 || r.GUID == "" {
			return nil, fmt.Errorf("a message without a number or a guid")
		}
		all = append(all, r)
	}
	return all, nil
}

// joined is how many rows of the database the message takes in a query with chats and
// attachments: earlier servers count those for the limit.
func (r *row) joined() int { return max(1, len(r.Files)) * max(1, len(r.Chats)) }
