package bus

import (
	"golang.org/x/sys/unix"

	"netsky/bus/envelope"
	"netsky/bus/mailbox"
)

// readWhy reads the .why beside a file; it is empty if there is none.
func readWhy(dir int, name string) mailbox.Why {
	data, _, err := mailbox.ReadFile(dir, envelope.WhyName(name), 64<<10)
	if err != nil {
		return mailbox.Why{}
	}
	return mailbox.ParseWhy(data)
}

// explain writes the .why of a file. If that fails, the message is still where it belongs.
func (b *Bus) explain(dir int, name string, w mailbox.Why) error {
	return b.files.Replace(dir, envelope.WhyName(name), []byte(w.String()))
}

// file moves a file to delivered/ with what there is to say about it, which precedes the
// file: without it the file would be new mail that was read. If that can't be written
// before, it is written after; told reports a failure there, and a .why that was left.
func (b *Bus) file(from int, name string, to int, w mailbox.Why, told func(what string, err error)) (moved string, err error) {
	early := false
	if _, there := mailbox.Lstat(to, name); w.Text != "" && there == unix.ENOENT {
		early = b.explain(to, name, w) == nil
	}
	moved, err = move(from, name, to)
	if early && (err != nil || moved != name) {
		if err := mailbox.Unlink(to, envelope.WhyName(name)); err != nil && err != unix.ENOENT {
			told("left a .why without its file: "+name, err)
		}
		early = false
	}
	if err == nil && w.Text != "" && !early {
		if err := b.explain(to, moved, w); err != nil {
			told("cannot write the .why of "+moved, err)
		}
	}
	return moved, err
}

// poison moves a file to poison/, byte for byte, with its reason beside it.
func (b *Bus) poison(from int, name string, to int, reason error, o mailbox.Origin) (newName string, err error) {
	newName, err = move(from, name, to)
	if err != nil {
		return "", err
	}
	return newName, b.explain(to, newName, mailbox.Poisoned(reason, o))
}
