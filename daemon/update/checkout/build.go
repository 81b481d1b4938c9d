package checkout

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"netsky/internal/advice"
	"netsky/internal/execx"
	"netsky/work/check"
)

// Version returns what a build of the checkout, as it is, says that it is.
func Version(ctx context.Context, root string, environ []string) (string, error) {
	out, err := execx.Question{Program: "sh", Args: []string{"-c", `. scripts/tools && version "$1"`, "sh", root}, Dir: root, Env: environ}.Ask(ctx)
	return strings.TrimSpace(string(out)), err
}

// buildTime is how long a build may take: the first one compiles SQLite.
const buildTime = 30 * time.Minute

// Build builds the program of the checkout into the new file to, as scripts/tools does, and fsyncs it. What the
// build prints goes to w. When ctx ends, so does all that the build has started. On an error no file is left;
// one that was there already is an error and stays.
func Build(ctx context.Context, root, to string, environ []string, w io.Writer) (err error) {
	root, err = filepath.Abs(root)
	if err == nil {
		to, err = filepath.Abs(to)
	}
	if err != nil {
		return err
	}
	if _, err := os.Lstat(to); !errors.Is(err, fs.ErrNotExist) {
		if err == nil {
			err = &fs.PathError{Op: "build", Path: to, Err: fs.ErrExist}
		}
		return err
	}
	script := fmt.Sprintf(". scripts/tools && go_there && build %s %s", execx.Quote(root), execx.Quote(to))
	r, err := check.Command{What: "build", Text: script}.Run(ctx, check.Options{Dir: root, Env: environ, Within: buildTime, Daemons: true, Out: w})
	switch {
	case err != nil:
	case ctx.Err() != nil:
		err = ctx.Err()
	case !r.OK():
		err = advice.With(fmt.Errorf("checkout %s: the build failed: %v", root, r), "see what it has printed, or run %s yourself", advice.Word(filepath.Join(root, "scripts/up")))
	default:
		err = sync(to)
	}
	if err != nil {
		if left := os.Remove(to); !errors.Is(left, fs.ErrNotExist) {
			err = errors.Join(err, left)
		}
	}
	return err
}

// sync fsyncs the program. Whatever the umask, only its owner writes to it.
func sync(file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err == nil {
		err = f.Chmod(info.Mode() &^ 0o022)
	}
	return errors.Join(err, f.Sync(), f.Close())
}
