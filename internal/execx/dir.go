package execx

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// CheckDir reports why a program can't work in a directory.
func CheckDir(dir string) error {
	info, err := os.Stat(dir)
	switch {
	case err != nil:
		var p *fs.PathError
		if errors.As(err, &p) {
			err = p.Err
		}
		return fmt.Errorf("directory %s: %w", dir, err)
	case !info.IsDir():
		return fmt.Errorf("directory %s: is a file", dir)
	}
	if err := unix.Access(dir, unix.R_OK|unix.X_OK); err != nil {
		return fmt.Errorf("directory %s: %w", dir, err)
	}
	return nil
}
