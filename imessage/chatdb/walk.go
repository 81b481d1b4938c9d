package chatdb

import "bytes"

// object reads an object that nothing is asked of, and returns its entry or none.
func (r *reader) object() (int, error) {
	head, err := r.peek()
	if err != nil {
		return none, err
	}
	switch head {
	case tagNil:
		r.at++
		return none, nil
	case tagNew:
	default:
		return r.refer(anObject)
	}
	if err := r.enter(); err != nil {
		return none, err
	}
	defer r.leave()
	r.at++
	o := len(r.objects)
	if _, err := r.newObject(); err != nil {
		return none, err
	}
	for {
		if end, err := r.atEnd(); err != nil || end {
			return o, err
		}
		if err := r.group(); err != nil {
			return none, err
		}
	}
}

// newObject enters a new object into the table, ahead of its class, which it reads and returns.
func (r *reader) newObject() (class int, err error) {
	o, err := r.add(entry{kind: anObject, class: none})
	if err != nil {
		return none, err
	}
	class, err = r.class()
	if err != nil {
		return none, err
	}
	if class == none {
		return none, r.before("object without a class")
	}
	r.objects[o].class = int32(class)
	return class, nil
}

// class reads a class with those above it, up to one that has none above it or that was written
// before.
func (r *reader) class() (int, error) {
	first := none
	for {
		head, err := r.peek()
		if err != nil {
			return none, err
		}
		switch head {
		case tagNil:
			r.at++
			return first, nil
		case tagNew:
			r.at++
			c, err := r.newClass()
			if err != nil {
				return none, err
			}
			if first == none {
				first = c
			}
			continue
		}
		c, err := r.refer(aClass)
		if err != nil {
			return none, err
		}
		if first == none {
			return c, nil
		}
		if c >= first {
			return none, r.before("class that is above itself")
		}
		return first, nil
	}
}

// newClass reads a class's name and version.
func (r *reader) newClass() (int, error) {
	name, isNil, err := r.sharedString()
	if err != nil {
		return none, err
	}
	if isNil || len(name) == 0 {
		return none, r.before("class without a name")
	}
	if _, err := r.signed(32); err != nil {
		return none, err
	}
	return r.add(entry{kind: aClass, class: none, name: name})
}

// group reads a type string and the values that it announces.
func (r *reader) group() error {
	types, isNil, err := r.sharedString()
	if err != nil {
		return err
	}
	if isNil || len(types) == 0 {
		return r.before("values without a type")
	}
	for i := 0; i < len(types); {
		if i, err = r.value(types, i); err != nil {
			return err
		}
	}
	return nil
}

// value reads the value whose type is at types[i] and returns where the next type is.
func (r *reader) value(types []byte, i int) (next int, err error) {
	if err := r.spend(1); err != nil {
		return 0, err
	}
	if i >= len(types) {
		return 0, r.wrong("a type string that ends early")
	}
	switch t := types[i]; t {
	case '[':
		return r.array(types, i+1)
	case '{':
		return r.structure(types, i+1)
	case '@':
		_, err = r.object()
	case '#':
		_, err = r.class()
	case '*':
		err = r.cString()
	case '%', ':':
		_, _, err = r.sharedString()
	case '+':
		_, _, err = r.rawString()
	case 'f':
		err = r.float(4)
	case 'd':
		err = r.float(8)
	default:
		err = r.integer(t)
	}
	return i + 1, err
}

// integer reads a value of an integer type. Those of one byte are written as they are.
func (r *reader) integer(t byte) (err error) {
	switch t {
	case 'c', 'C':
		_, err = r.byte()
	case 'B':
		var b byte
		if b, err = r.byte(); err == nil && b > 1 {
			return r.before("truth value %d", b)
		}
	case 's':
		_, err = r.signed(16)
	case 'i':
		_, err = r.signed(32)
	case 'l', 'q':
		_, err = r.signed(64)
	case 'S':
		_, err = r.unsigned(16)
	case 'I':
		_, err = r.unsigned(32)
	case 'L', 'Q':
		_, err = r.unsigned(64)
	default:
		return r.wrong("values of the unknown type %q", string(rune(t)))
	}
	return err
}

// cString reads a C string, which has an entry in the object table.
func (r *reader) cString() error {
	head, err := r.peek()
	if err != nil {
		return err
	}
	switch head {
	case tagNil:
		r.at++
		return nil
	case tagNew:
	default:
		_, err := r.refer(aString)
		return err
	}
	r.at++
	s, isNil, err := r.sharedString()
	if err != nil {
		return err
	}
	if isNil || bytes.IndexByte(s, 0) >= 0 {
		return r.before("no C string where one was announced")
	}
	_, err = r.add(entry{kind: aString, class: none})
	return err
}

// array reads the values of "[12c]", from behind its bracket.
func (r *reader) array(types []byte, i int) (next int, err error) {
	if err := r.enter(); err != nil {
		return 0, err
	}
	defer r.leave()
	n, digits := 0, 0
	for ; i < len(types) && types[i] >= '0' && types[i] <= '9'; i++ {
		if n = n*10 + int(types[i]-'0'); n > MaxBlob {
			return 0, r.wrong("array of more than %d values", MaxBlob)
		}
		digits++
	}
	if err := r.spend(digits + 1); err != nil {
		return 0, err
	}
	if digits == 0 || i >= len(types) {
		return 0, r.wrong("an array type without a length or an element")
	}
	if next, err = r.elements(types, i, n); err != nil {
		return 0, err
	}
	if next >= len(types) || types[next] != ']' {
		return 0, r.wrong("an array type without an end")
	}
	return next + 1, nil
}

// elements reads n values of the type at types[i].
func (r *reader) elements(types []byte, i, n int) (next int, err error) {
	if types[i] == 'c' || types[i] == 'C' {
		_, err := r.take(uint64(n))
		return i + 1, err
	}
	if n == 0 {
		return 0, r.wrong("an empty array of other values than bytes")
	}
	for range n {
		if next, err = r.value(types, i); err != nil {
			return 0, err
		}
	}
	return next, nil
}

// structure reads the values of "{name=ff}", from behind its brace.
func (r *reader) structure(types []byte, i int) (next int, err error) {
	if err := r.enter(); err != nil {
		return 0, err
	}
	defer r.leave()
	name := bytes.IndexAny(types[i:], "={}[]")
	if name < 0 || types[i+name] != '=' {
		return 0, r.wrong("a structure type without a name and fields")
	}
	if err := r.spend(name + 1); err != nil {
		return 0, err
	}
	for i += name + 1; i < len(types); {
		if types[i] == '}' {
			return i + 1, nil
		}
		if i, err = r.value(types, i); err != nil {
			return 0, err
		}
	}
	return 0, r.wrong("a structure type without an end")
}
