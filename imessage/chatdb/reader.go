package chatdb

import (
	"bytes"
	"encoding/binary"
)

// The heads that are no value: what follows them is.
const (
	tagInt16  = 0x81
	tagInt32  = 0x82
	tagFloat  = 0x83
	tagNew    = 0x84 // a string, object or class that was not written before
	tagNil    = 0x85
	tagEnd    = 0x86 // of an object
	tagInt64  = 0x87
	firstTag  = 0x80
	lastTag   = 0x91
	firstRef  = 0x92 // the head that refers to entry 0 of a table
	refOffset = 256 - firstRef
)

// What the reader may do for each byte of a blob. A type string is followed anew at each use, so
// a blob can ask for more work than it has bytes; real ones need less than one step for each.
const (
	workPerByte = 16
	workBase    = 4096
)

// none is the number of an object that is nil.
const none = -1

// A kind says what an entry of the object table is.
type kind uint8

const (
	anObject kind = iota
	aClass
	aString
)

// An entry is one line of the object table. Objects, classes and C strings share it.
type entry struct {
	kind  kind
	class int32  // objects: the entry of their class
	name  []byte // classes
}

// A reader reads one archive. What it keeps are slices of the archive.
type reader struct {
	data    []byte
	at      int
	work    int
	depth   int
	strings [][]byte // shared strings: types, class names, C strings
	objects []entry
}

func (r *reader) byte() (byte, error) {
	if r.at >= len(r.data) {
		return 0, r.wrong("the archive ends early")
	}
	r.at++
	return r.data[r.at-1], nil
}

// take returns the next n bytes.
func (r *reader) take(n uint64) ([]byte, error) {
	if left := len(r.data) - r.at; n > uint64(left) {
		return nil, r.wrong("%d bytes were announced, %d are left", n, left)
	}
	r.at += int(n)
	return r.data[r.at-int(n) : r.at : r.at], nil
}

// spend counts a step of work.
func (r *reader) spend(n int) error {
	if r.work -= n; r.work < 0 {
		return r.wrong("types that are out of proportion to the values")
	}
	return nil
}

// enter counts a level of nesting; leave ends it.
func (r *reader) enter() error {
	if r.depth++; r.depth > MaxDepth {
		return r.wrong("more than %d levels", MaxDepth)
	}
	return nil
}

func (r *reader) leave() { r.depth-- }

// number reads an integer: the bytes of its value, and how many they are. A value that is its own
// head has one.
func (r *reader) number(bits int) (raw uint64, size int, err error) {
	head, err := r.byte()
	if err != nil {
		return 0, 0, err
	}
	switch {
	case head < firstTag, head > lastTag:
		return uint64(head), 1, nil
	case head == tagInt16:
		size = 2
	case head == tagInt32:
		size = 4
	case head == tagInt64 && bits == 64:
		size = 8
	default:
		return 0, 0, r.before("0x%02x where an integer was expected", head)
	}
	data, err := r.take(uint64(size))
	if err != nil {
		return 0, 0, err
	}
	var full [8]byte
	copy(full[:], data)
	return binary.LittleEndian.Uint64(full[:]), size, nil
}

// signed reads an integer of a type with that many bits.
func (r *reader) signed(bits int) (int64, error) {
	raw, size, err := r.number(bits)
	if err != nil {
		return 0, err
	}
	v := int64(raw<<(64-8*size)) >> (64 - 8*size)
	if v>>(bits-1) != 0 && v>>(bits-1) != -1 {
		return 0, r.before("integer of more than %d bits", bits)
	}
	return v, nil
}

// unsigned is signed for types without a sign, and for lengths.
func (r *reader) unsigned(bits int) (uint64, error) {
	raw, _, err := r.number(bits)
	if err != nil {
		return 0, err
	}
	if bits < 64 && raw>>bits != 0 {
		return 0, r.before("integer of more than %d bits", bits)
	}
	return raw, nil
}

// float skips a floating-point number of that many bytes; a whole one may be an integer.
func (r *reader) float(size uint64) error {
	if r.at < len(r.data) && r.data[r.at] == tagFloat {
		r.at++
		_, err := r.take(size)
		return err
	}
	_, err := r.signed(64)
	return err
}

// peek returns the next byte without reading it.
func (r *reader) peek() (byte, error) {
	b, err := r.byte()
	if err == nil {
		r.at--
	}
	return b, err
}

// reference reads the number of an entry in a table of that size.
func (r *reader) reference(size int) (int, error) {
	began := r.at
	n, err := r.signed(32)
	if err != nil {
		return 0, err
	}
	if n += refOffset; n < 0 || n >= int64(size) {
		r.at = began
		return 0, r.wrong("reference to entry %d of %d", n, size)
	}
	return int(n), nil
}

// refer reads a reference to an entry of that kind in the object table.
func (r *reader) refer(want kind) (int, error) {
	began := r.at
	n, err := r.reference(len(r.objects))
	if err == nil && r.objects[n].kind != want {
		r.at = began
		return 0, r.wrong("reference to entry %d, which is of another kind", n)
	}
	return n, err
}

// rawString reads a string that no table has: a length and bytes.
func (r *reader) rawString() (s []byte, isNil bool, err error) {
	head, err := r.peek()
	if err != nil {
		return nil, false, err
	}
	if head == tagNil {
		r.at++
		return nil, true, nil
	}
	n, err := r.unsigned(32)
	if err != nil {
		return nil, false, err
	}
	s, err = r.take(n)
	return s, false, err
}

// sharedString reads a string that the table has, or that enters it.
func (r *reader) sharedString() (s []byte, isNil bool, err error) {
	head, err := r.peek()
	if err != nil {
		return nil, false, err
	}
	switch head {
	case tagNil:
		r.at++
		return nil, true, nil
	case tagNew:
		r.at++
		s, isNil, err = r.rawString()
		if err != nil {
			return nil, false, err
		}
		if isNil {
			return nil, false, r.before("a new string that is nil")
		}
		if len(r.strings) >= MaxTable {
			return nil, false, r.wrong("more than %d strings", MaxTable)
		}
		r.strings = append(r.strings, s)
		return s, false, nil
	}
	n, err := r.reference(len(r.strings))
	if err != nil {
		return nil, false, err
	}
	return r.strings[n], false, nil
}

// add appends an entry to the object table.
func (r *reader) add(e entry) (int, error) {
	if len(r.objects) >= MaxTable {
		return 0, r.wrong("more than %d objects", MaxTable)
	}
	r.objects = append(r.objects, e)
	return len(r.objects) - 1, nil
}

// expectType reads the type string of a group, which has to be this one.
func (r *reader) expectType(want string) error {
	began := r.at
	got, isNil, err := r.sharedString()
	if err == nil && (isNil || !bytes.Equal(got, []byte(want))) {
		r.at = began
		return r.wrong("values of another type than %q", want)
	}
	return err
}

// atEnd reports whether the object ends here, and reads its end.
func (r *reader) atEnd() (bool, error) {
	head, err := r.peek()
	if err != nil || head != tagEnd {
		return false, err
	}
	r.at++
	return true, nil
}

func (r *reader) expectEnd() error {
	end, err := r.atEnd()
	if err == nil && !end {
		return r.wrong("0x%02x where an object was to end", r.data[r.at])
	}
	return err
}
