package messagesim

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
)

// What the entries of the object table are found by. Numbers are found by their values.
type (
	className string
	typeName  string // a C string
	keyName   string
)

type writer struct {
	out     []byte
	strings map[string]int // the table of strings
	entries map[any]int    // the table of objects, as far as it is referred to
	used    int            // its length
}

// integer writes a number in the shortest form whose head is no tag.
func (w *writer) integer(v int64) {
	switch {
	case v >= -110 && v <= math.MaxInt8:
		w.out = append(w.out, byte(v))
	case v >= math.MinInt16 && v <= math.MaxInt16:
		w.out = binary.LittleEndian.AppendUint16(append(w.out, 0x81), uint16(v))
	case v >= math.MinInt32 && v <= math.MaxInt32:
		w.out = binary.LittleEndian.AppendUint32(append(w.out, 0x82), uint32(v))
	default:
		w.out = binary.LittleEndian.AppendUint64(append(w.out, 0x87), uint64(v))
	}
}

func (w *writer) length(n int, form Width) {
	switch form {
	case Shortest:
		w.integer(int64(n))
	case OneByte:
		w.out = append(w.out, byte(n))
	case TwoBytes:
		w.out = binary.LittleEndian.AppendUint16(append(w.out, 0x81), uint16(n))
	case FourBytes:
		w.out = binary.LittleEndian.AppendUint32(append(w.out, 0x82), uint32(n))
	case EightBytes:
		w.out = binary.LittleEndian.AppendUint64(append(w.out, 0x87), uint64(n))
	}
}

// reference writes the number of a table's entry.
func (w *writer) reference(n int) { w.integer(int64(n) - 110) }

// shared writes a string, as a reference from its second use on.
func (w *writer) shared(s string) {
	if n, known := w.strings[s]; known {
		w.reference(n)
		return
	}
	w.strings[s] = len(w.strings)
	w.out = append(w.out, 0x84)
	w.integer(int64(len(s)))
	w.out = append(w.out, s...)
}

// types announces the values that follow.
func (w *writer) types(s string) { w.shared(s) }

// refer writes a reference to the entry of that name, if there is one.
func (w *writer) refer(name any) bool {
	n, known := w.entries[name]
	if known {
		w.reference(n)
	}
	return known
}

// object begins an object of a class with those above it.
func (w *writer) object(classes ...string) {
	w.out = append(w.out, 0x84)
	w.used++
	for _, name := range classes {
		if w.refer(className(name)) {
			return
		}
		w.entries[className(name)] = w.used
		w.used++
		w.out = append(w.out, 0x84)
		w.shared(name)
		version := int64(0)
		if name == "NSString" || name == "NSMutableString" {
			version = 1
		}
		w.integer(version)
	}
	w.out = append(w.out, 0x85)
}

func (w *writer) end() { w.out = append(w.out, 0x86) }

func (w *writer) str(s string) {
	w.object("NSString", "NSObject")
	w.types("+")
	w.integer(int64(len(s)))
	w.out = append(w.out, s...)
	w.end()
}

func (w *writer) value(v any, shareKeys bool) {
	switch v := v.(type) {
	case string:
		w.str(v)
	case URL:
		w.object("NSURL", "NSObject")
		w.types("c")
		w.out = append(w.out, 0) // no base
		w.types("@")
		w.str(string(v))
		w.end()
	case Data:
		w.object("NSData", "NSObject")
		w.types("i")
		w.integer(int64(len(v)))
		w.types("[" + strconv.Itoa(len(v)) + "c]")
		w.out = append(w.out, v...)
		w.end()
	case Attributes:
		w.dictionary(v, shareKeys)
	case int, int64, bool, float64:
		w.number(v)
	default:
		panic(fmt.Sprintf("typedstreamtest: no attribute is a %T", v))
	}
}

// number writes a number once: macOS has one object for each value.
func (w *writer) number(v any) {
	if w.refer(v) {
		return
	}
	w.entries[v] = w.used
	w.object("NSNumber", "NSValue", "NSObject")
	w.types("*")
	switch v := v.(type) {
	case int:
		w.typed("i")
		w.integer(int64(v))
	case int64:
		w.typed("q")
		w.integer(v)
	case bool:
		w.typed("c")
		w.out = append(w.out, map[bool]byte{true: 1}[v])
	case float64:
		w.typed("d")
		if whole := int64(v); float64(whole) == v && whole == int64(int32(whole)) {
			w.integer(whole)
			break
		}
		w.out = binary.LittleEndian.AppendUint64(append(w.out, 0x83), math.Float64bits(v))
	}
	w.end()
}

// typed writes the type of a number as a value of its own, and then announces it.
func (w *writer) typed(s string) {
	if !w.refer(typeName(s)) {
		w.out = append(w.out, 0x84)
		w.shared(s)
		w.entries[typeName(s)] = w.used
		w.used++
	}
	w.types(s)
}
