package link

import (
	"errors"

	"netsky/home"
)

// Forget removes what the link of a home that is in no team keeps: of another team it would
// send mail again to hosts that only have the same names.
func Forget(h home.Dir) error {
	names, err := home.Records(h, Heard)
	for _, name := range names {
		err = errors.Join(err, h.Remove(Heard+"/"+name+".json"))
	}
	for _, file := range []string{ReportFile, TunnelsFile, sentFile} {
		err = errors.Join(err, h.Remove(file))
	}
	return err
}
