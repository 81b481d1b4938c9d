package chatdb_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"netsky/imessage/chatdb"
	"netsky/internal/testworld"
)

// The beginning of an archive of "x", up to what its dictionary has. The string table has "@",
// NSAttributedString, NSObject, NSString, "+", "iI" and NSDictionary; the object table the
// root, its class, NSObject, the string, NSString, the dictionary, NSDictionary. So the next
// entry of each has number 7, and 0x99 refers to it.
const opening = "\x04\x0bstreamtyped\x81\xe8\x03\x84\x01@\x84\x84\x84\x12NSAttributedString\x00" +
	"\x84\x84\x08NSObject\x00\x85\x92\x84\x84\x84\x08NSString\x01\x94\x84\x01+\x01x\x86" +
	"\x84\x02iI\x01\x01\x92\x84\x84\x84\x0cNSDictionary\x00\x94"

// with returns the archive whose dictionary has these values.
func with(values string) []byte { return []byte(opening + values + "\x86\x86") }

// typed is a group of values of one new type.
func typed(types, values string) string {
	if len(types) > 127 {
		return "\x84\x81" + string([]byte{byte(len(types)), byte(len(types) >> 8)}) + types + values
	}
	return "\x84" + string(byte(len(types))) + types + values
}

func TestValues(t *testing.T) {
	t.Parallel()
	for _, values := range []string{
		"",
		typed("f", "\x83\x00\x00\x80\x3f") + typed("f", "\x0d") + typed("d", "\x83\x00\x00\x00\x00\x00\x80\x31\x40"),
		typed("d", "\x81\x00\x01"),
		typed("cCB", "\x86\x84\x01"),
		typed("silq", "\xff\x81\x00\x80\x82\x00\x00\x00\x80\x87\x01\x02\x03\x04\x05\x06\x07\x08"),
		typed("SILQ", "\x81\xff\xff\x82\xff\xff\xff\xff\xfe\x87\xff\xff\xff\xff\xff\xff\xff\xff"),
		typed("[3c]", "\x84\x85\x86") + typed("[0c]", "") + typed("[2i]", "\x01\x81\x00\x01"),
		typed("{_NSRect={_NSPoint=ff}{_NSSize=ff}}", "\x01\x02\x03\x04"),
		typed("{?=c[2{p=s}]}i", "\x86\x01\x02\x03"),
		typed("*", "\x84\x84\x01i") + "\x99\x99" + "\x99\x85", // a C string, again, and nil
		typed("%:", "\x84\x03sel\x9a"),
		typed("#", "\x84\x84\x03Sub\x00\x98") + "\x99\x99\x99\x85", // a class, again, and nil
		typed("+", "\x85") + "\x96\x02hi",
		"\x92\x92" + "\x92\x85" + "\x92\x95", // the root itself, nil, the string
		"\x81\x96\xff\x01x",                  // "+" by a reference of two bytes
		"\x92\x84\x96\x86",                   // an object of a known class without values
	} {
		testworld.Equal(t, testworld.Got(chatdb.Text(with(values)))(t), "x", "Text(% x)", values)
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("\x92\x84\x96", 70)
	for _, tt := range []struct{ name, values, want string }{
		{"truth", typed("B", "\x02"), "truth value 2"},
		{"reserved head", typed("i", "\x88"), "0x88 where an integer"},
		{"reserved head", typed("i", "\x80"), "0x80 where an integer"},
		{"eight bytes for four", typed("i", "\x87\x01\x00\x00\x00\x00\x00\x00\x00"), "0x87 where an integer"},
		{"float for an integer", typed("q", "\x83\x00\x00\x80\x3f"), "0x83 where an integer"},
		{"too wide", typed("s", "\x82\x00\x00\x01\x00"), "more than 16 bits"},
		{"too wide", typed("S", "\x82\x00\x00\x01\x00"), "more than 16 bits"},
		{"unknown type", typed("^i", "\x01"), `unknown type "^"`},
		{"unknown type", typed("!", ""), `unknown type "!"`},
		{"no type", typed("", ""), "without a type"},
		{"nil type", "\x85", "without a type"},
		{"new nil", "\x84\x85", "new string that is nil"},
		{"array without a length", typed("[c]", "x"), "without a length"},
		{"array without an element", typed("[3", "xxx"), "without a length or an element"},
		{"array without an end", typed("[3c", "xxx"), "without an end"},
		{"empty array", typed("[0i]", ""), "empty array"},
		{"array beyond the blob", typed("[4000c]", "x"), "4000 bytes were announced"},
		{"array beyond all", typed("[99999999999999999999c]", "x"), "array of more than"},
		{"array of nothing", typed("[4000000{x=}]", ""), "out of proportion"},
		{"array in arrays of nothing", typed("[999[999[999[0c]]]]", ""), "out of proportion"},
		{"structure without fields", typed("{x}", ""), "without a name and fields"},
		{"structure without an end", typed("{x=c", "x"), "without an end"},
		{"type beyond the table", "\xa0", "reference to entry 14 of 7"},
		{"type before the table", "\x81\x80\xff", "reference to entry -18"},
		{"class for an object", "\x92\x93", "another kind"},
		{"object for a class", "\x92\x84\x92\x86", "another kind"},
		{"object for a C string", typed("*", "\x92"), "another kind"},
		{"object without a class", "\x92\x84\x85\x86", "without a class"},
		{"class without a name", "\x92\x84\x84\x85\x00", "without a name"},
		{"class above itself", "\x92\x84\x84\x84\x01A\x00\x9a\x86", "above itself"},
		{"C string with NUL", typed("*", "\x84\x84\x02a\x00"), "no C string"},
		{"depth", deep, "more than 64 levels"},
		{"depth of types", typed(strings.Repeat("{a=", 70), ""), "more than 64 levels"},
		{"length beyond the blob", typed("+", "\x82\xff\xff\xff\xff"), "4294967295 bytes were announced"},
	} {
		_, err := chatdb.Text(with(tt.values))
		if !errors.Is(err, chatdb.ErrMalformed) || !strings.Contains(fmt.Sprint(err), tt.want) {
			t.Errorf("%s: Text(% x): %v, want %q", tt.name, tt.values, err, tt.want)
		}
	}
}

// An archive that is whole, but no message.
func TestRoots(t *testing.T) {
	t.Parallel()
	const head = "\x04\x0bstreamtyped\x81\xe8\x03"
	whole := string(body{Text: "x"}.Encode())
	for _, tt := range []struct{ name, blob, want string }{
		{"nothing", "", "no header"},
		{"big-endian", "\x04\x0btypedstream\x81\x03\xe8", "no header"},
		{"another version", "\x03" + whole[1:], "no header"},
		{"header alone", head, "ends early"},
		{"a number", head + "\x84\x01i\x05", `another type than "@"`},
		{"nil", head + "\x84\x01@\x85", "0x85 where a new object"},
		{"a font", head + "\x84\x01@\x84\x84\x84\x06NSFont\x1e\x85\x86", `class "NSFont"`},
		{"a string of nothing", head + "\x84\x01@\x84\x84\x84\x08NSString\x01\x85\x84\x01+\x85\x86", "no text"},
		{"a text that is no string", strings.Replace(whole, "\x08NSString", "\x08NSNumber", 1), `text of class "NSNumber"`},
		{"the root as its own text", strings.Replace(whole, "\x85\x92\x84", "\x85\x92\x92", 1), "0x92 where a new object"},
		{"attributes that are none", strings.Replace(whole, "\x0cNSDictionary", "\x0cNSCalculator", 1), "no dictionary"},
		{"a run of a later dictionary", strings.Replace(whole, "iI\x01", "iI\x02", 1), "dictionary 2, where 0 are known"},
		{"a run of no dictionary", strings.Replace(whole, "iI\x01", "iI\x00", 1), "dictionary 0"},
		{"two roots", whole + "\x92\x85", "2 bytes after the end"},
	} {
		got, err := chatdb.Text([]byte(tt.blob))
		if !errors.Is(err, chatdb.ErrMalformed) || !strings.Contains(fmt.Sprint(err), tt.want) {
			t.Errorf("%s: Text = %q, %v, want %q", tt.name, got, err, tt.want)
		}
	}
}

// What takes room or time is limited, and an error does not repeat the message.
func TestLimits(t *testing.T) {
	t.Parallel()
	secret := strings.Repeat("secret ", chatdb.MaxText/7+1)
	for _, tt := range []struct {
		name, want string
		blob       []byte
	}{
		{"text", "more than 1048576", body{Text: secret}.Encode()},
		{"wide text", "more than 1048576", []byte("\xff\xfe" + strings.Repeat("s\x00", chatdb.MaxText+1))},
		{"blob", "more than 4194304", make([]byte, chatdb.MaxBlob+1)},
		{"strings", "more than 100000 strings", with(strings.Repeat(typed("c", "x"), chatdb.MaxTable))},
		{"objects", "more than 100000 objects", with(strings.Repeat("\x92\x84\x96\x86", chatdb.MaxTable))},
		{"classes", "more than 100000 objects", with("\x92\x84" + strings.Repeat("\x84\x94\x00", chatdb.MaxTable))},
		{"work", "out of proportion", with(typed("{"+strings.Repeat("n", 1000)+"=c}", "x") + strings.Repeat("\x99x", 100_000))},
	} {
		_, err := chatdb.Text(tt.blob)
		if !errors.Is(err, chatdb.ErrMalformed) || !strings.Contains(fmt.Sprint(err), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
		testworld.Lacks(t, fmt.Sprint(err), "secret", "%s: the error repeats the text: %v", tt.name, err)
	}
	most := typed("c", "x") + strings.Repeat("\x99x", 500_000) // 1 MB of values
	testworld.Equal(t, testworld.Got(chatdb.Text(with(most)))(t), "x", "Text(many values)")
}
