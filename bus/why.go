package bus

import (
	"netsky/bus/disk"
	"netsky/bus/envelope"
	"netsky/bus/why"
)

// readWhy reads the .why beside a file; it is empty if there is none.
func readWhy(dir int, name string) why.Why {
	data, _, err := disk.ReadFile(dir, envelope.WhyName(name), 64<<10)
	if err != nil {
		return why.Why{}
	}
	return why.Parse(data)
}

// explain writes the .why of a file. If that fails, the message is still where it belongs.
func (b *Bus) explain(dir int, name string, w why.Why) error {
	return b.files.Replace(dir, envelope.WhyName(name), []byte(w.String()))
}

// poison moves a file to poison/, byte for byte, with its reason beside it.
func (b *Bus) poison(from int, name string, to int, reason error, o why.Origin) (newName string, err error) {
	newName, err = move(from, name, to)
	if err != nil {
		return "", err
	}
	return newName, b.explain(to, newName, why.Poisoned(reason, o))
}
