package messagesim

import (
	"reflect"
	"unicode/utf16"
)

// The attributes that Messages.app uses most.
const (
	Part       = "__kIMMessagePartAttributeName"      // an int: which part of the message
	Attachment = "__kIMFileTransferGUIDAttributeName" // a string: the attachment at this place
	Direction  = "__kIMBaseWritingDirectionAttributeName"
	Link       = "__kIMLinkAttributeName" // a URL
	RichLink   = "__kIMLinkIsRichLinkAttributeName"
	Detected   = "__kIMDataDetectedAttributeName" // data: dates, addresses, numbers in the text
	Mention    = "__kIMMentionConfirmedMention"   // a string: the handle that is mentioned
	Bold       = "__kIMTextBoldAttributeName"
)

// Placeholder is the character at which an attachment is.
const Placeholder = "\ufffc"

// A Width is the form in which the length of a text is written.
type Width int

// The widths. All but Shortest are for what readers may get wrong.
const (
	Shortest Width = iota // the shortest that macOS chooses
	OneByte               // a byte as it is: below 128, or 146 to 255
	TwoBytes              // 0x81 and two bytes
	FourBytes
	EightBytes // 0x87 and eight bytes, which no length may have
)

// A Body is an attributed string, or a plain one.
type Body struct {
	Text    string
	Mutable bool
	Plain   bool // the string alone, without attributes
	Width   Width
	// Runs cover the text. None is one run without attributes, as macOS writes it.
	Runs []Run
	// ShareKeys writes a repeated key as a reference to the first. macOS does either.
	ShareKeys bool
}

// A Run is a part of the text with the same attributes.
type Run struct {
	Units      int // its length in UTF-16 units
	Attributes Attributes
}

// Attributes are the keys and values of a dictionary, in the order in which they are written. A
// value is an int, int64, bool or float64, a string, a URL, Data, or Attributes.
type Attributes []Attribute

// An Attribute is one key with its value.
type Attribute struct {
	Key   string
	Value any
}

// A URL is the value of a link.
type URL string

// Data is a value of bytes.
type Data []byte

// Units returns the length of a text in UTF-16 units, which runs are measured in.
func Units(text string) int { return len(utf16.Encode([]rune(text))) }

// Encode returns the archive. It panics for a value of another type than Attributes allow.
func (b Body) Encode() []byte {
	w := &writer{
		out:     []byte("\x04\x0bstreamtyped\x81\xe8\x03"),
		strings: map[string]int{},
		entries: map[any]int{},
	}
	w.types("@")
	if b.Plain {
		w.text(b)
		return w.out
	}
	if b.Mutable {
		w.object("NSMutableAttributedString", "NSAttributedString", "NSObject")
	} else {
		w.object("NSAttributedString", "NSObject")
	}
	w.types("@")
	w.text(b)
	w.runs(b)
	w.end()
	return w.out
}

func (w *writer) text(b Body) {
	if b.Mutable {
		w.object("NSMutableString", "NSString", "NSObject")
	} else {
		w.object("NSString", "NSObject")
	}
	w.types("+")
	w.length(len(b.Text), b.Width)
	w.out = append(w.out, b.Text...)
	w.end()
}

// runs writes each run's dictionary at its first use only.
func (w *writer) runs(b Body) {
	runs := b.Runs
	if runs == nil && b.Text != "" {
		runs = []Run{{Units: Units(b.Text)}}
	}
	var known []Attributes
	for _, run := range runs {
		number := 1
		for ; number <= len(known) && !same(known[number-1], run.Attributes); number++ {
		}
		w.types("iI")
		w.integer(int64(number))
		w.integer(int64(run.Units))
		if number <= len(known) {
			continue
		}
		known = append(known, run.Attributes)
		w.types("@")
		w.dictionary(run.Attributes, b.ShareKeys)
	}
}

func same(a, b Attributes) bool {
	return len(a) == 0 && len(b) == 0 || reflect.DeepEqual(a, b)
}

func (w *writer) dictionary(list Attributes, shareKeys bool) {
	w.object("NSDictionary", "NSObject")
	w.types("i")
	w.integer(int64(len(list)))
	for _, a := range list {
		w.types("@")
		key := keyName(a.Key)
		if !shareKeys || !w.refer(key) {
			w.entries[key] = w.used
			w.str(a.Key)
		}
		w.types("@")
		w.value(a.Value, shareKeys)
	}
	w.end()
}
