package fleet

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"netsky/config"
	"netsky/daemon/update"
	"netsky/daemon/update/checkout"
	"netsky/daemon/update/release"
	"netsky/home"
	"netsky/internal/advice"
	"netsky/internal/execx"
	"netsky/internal/proc"
	"netsky/internal/words"
	"netsky/store"
)

// An UpdateRequest asks for another build of netsky in the place of this one.
type UpdateRequest struct {
	From  string // an archive, or a directory of them; "" is what [self] names or, in a checkout, its branch
	Yes   bool   // nobody is asked
	Force bool   // an older version, one with faults, or the same once more
	Again bool   // the same version once more, in another build
	// Faults examines this netsky and returns what is wrong.
	Faults func(ctx context.Context) []string
}

// An updater is an update that is being prepared.
type updater struct {
	Program
	UpdateRequest
	ctx   context.Context
	in    release.Install
	draft *update.Draft
}

// A source is where the new program comes from.
type source interface {
	// stage writes it to a new file.
	stage(u *updater, to string) error
}

// ErrCurrent is returned if there is nothing newer.
var ErrCurrent = errors.New("is up to date")

// errDeclined is returned if the owner says no.
var errDeclined = errors.New("not done: you did not agree")

const (
	program = 64 << 20 // bytes that a program takes at most, while it is built
	copied  = 1 << 30  // bytes of records from which the owner is asked before they are copied
)

// Update builds or unpacks another build, checks it against a copy of the records, and has a supervisor put it in the
// place of this one; it waits for the end. Until a supervisor has it, nothing but files beside the program is
// changed. What belongs to a package manager is not touched.
func (f Program) Update(ctx context.Context, q UpdateRequest) (r update.Run, err error) {
	if err := f.May("self update"); err != nil {
		return r, err
	}
	u := &updater{Program: f, UpdateRequest: q, ctx: ctx}
	if u.in, err = release.Find(ctx, f.Launcher.Binary, f.Environ); err != nil {
		return r, err
	}
	if u.in.Kind == release.FromPackage {
		return r, advice.With(fmt.Errorf("%s: belongs to the package %s, so it is not replaced here", u.in.Binary, u.in.Package),
			"`%s`, then `netsky daemon restart`", u.in.Command)
	}
	if u.draft, err = f.begin(update.Run{
		Kind: update.Update, Binary: u.in.Binary, Previous: update.Kept(u.in.Binary), From: update.Build{Version: f.Version}, By: f.Actor,
	}); err != nil {
		return r, err
	}
	if err = cmp.Or(u.prepare(), ctx.Err()); err != nil {
		return u.abandon(err)
	}
	if r, err = u.draft.HandOver(ctx); err != nil {
		return r, err
	}
	return f.follow(ctx, r.ID)
}

// prepare stages and checks the new program, once the owner agrees.
func (u *updater) prepare() (err error) {
	if err := u.preflight(); err != nil {
		return err
	}
	from, question, err := u.source()
	if err != nil {
		return err
	}
	if err := u.agreed(question); err != nil {
		return err
	}
	staged, err := u.draft.Stage()
	if err != nil {
		return err
	}
	if err := from.stage(u, staged); err != nil {
		return err
	}
	u.UI.Step(Step{Line: "checking it against a copy of the records"})
	if err := u.draft.Enter(u.ctx, "check", staged+" self check"); err != nil {
		return err
	}
	return u.check(staged)
}

// preflight examines what an update needs, before anything is fetched.
func (u *updater) preflight() error {
	r := &u.draft.Run
	sum, err := update.Sum(u.in.Binary)
	if err != nil {
		return err
	}
	r.From.SHA256 = sum
	dir := filepath.Dir(u.in.Binary)
	if err := unix.Access(dir, unix.W_OK); err != nil {
		return advice.With(&fs.PathError{Op: "write to", Path: dir, Err: err}, "update it as the user who installed it, who can write there")
	}
	if err := update.Owned(r.Previous); err != nil && !errors.Is(err, fs.ErrNotExist) { // the present program is kept there
		return advice.With(err, "move it away, then run this again")
	}
	size, err := store.Size(u.Home)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := errors.Join(home.Room(dir, 2*program), home.Room(u.Home.Root(), 3*size), home.Room(os.TempDir(), 2*size+program)); err != nil {
		return err
	}
	if size > copied {
		if err := u.agreed(fmt.Sprintf("The records take %s; a copy of them is made while the daemon is down.", words.Size(size))); err != nil {
			return err
		}
	}
	if faults := u.Faults(u.ctx); len(faults) > 0 && !u.Force {
		return advice.With(fmt.Errorf("`netsky doctor` finds faults: %s", strings.Join(faults, "; ")), "correct them, or `--force`")
	}
	return nil
}

// agreed says what is about to be done and asks the owner, unless that is not needed.
func (u *updater) agreed(text string) error {
	if u.Yes {
		u.UI.Step(Step{Line: text})
		return nil
	}
	if err := u.draft.Enter(u.ctx, "question"); err != nil { // the wait is no part of another step
		return err
	}
	answer, err := u.UI.Ask(text + "\nGo on? [y/N] ")
	switch {
	case errors.Is(err, ErrNobody):
		u.UI.Step(Step{Line: text})
		return advice.With(usagef("self %s: there is no terminal to ask on", u.draft.Run.Kind), "--yes agrees to that")
	case err == nil && yes(answer):
		return nil
	case err == nil || errors.Is(err, io.EOF):
		return errDeclined
	}
	return ErrStopped
}

// source finds where the new program comes from, and what is to be asked about it.
func (u *updater) source() (source, string, error) {
	from := u.From
	if from == "" && u.Config.Self.From != "" {
		path, err := config.Path(u.Home, u.userHome(), u.Config.Self.From)
		if err != nil {
			return nil, "", fmt.Errorf("from under [self]: %w", err)
		}
		from = path
	}
	switch {
	case from != "":
		return u.archive(from)
	case u.in.Kind == release.FromCheckout:
		return u.checkout()
	}
	return nil, "", advice.With(usagef("self update: name the release"), "`netsky self update FILE`, or a directory of releases; `from` under [self] in netsky.toml names one for good")
}

// archive is a release in a file.
type archive struct{ *release.Archive }

func (u *updater) archive(path string) (source, string, error) {
	if strings.Contains(path, "://") {
		return nil, "", advice.With(usagef("self update: %q: is an address, and netsky downloads nothing", path), "download it and its SHA256SUMS into one directory, then name the file")
	}
	path, err := filepath.Abs(path) // it is on record
	if err != nil {
		return nil, "", err
	}
	isRelease := fmt.Sprintf("a release is a file netsky_VERSION_linux_%s.tar.gz with its SHA256SUMS beside it", runtime.GOARCH)
	if info, err := os.Stat(path); err != nil {
		return nil, "", advice.With(fmt.Errorf("%s: %w", path, errors.Unwrap(err)), "%s", isRelease)
	} else if info.IsDir() {
		file, _, err := release.Newest(path)
		if err != nil {
			return nil, "", err
		}
		if file == "" {
			return nil, "", advice.With(fmt.Errorf("%s: has no release for this machine", path), "%s", isRelease)
		}
		path = file
	}
	signers := u.Config.Self.Signers
	if signers != "" {
		if signers, err = config.Path(u.Home, u.userHome(), signers); err != nil {
			return nil, "", fmt.Errorf("signers under [self]: %w", err)
		}
	}
	if err := u.draft.Enter(u.ctx, "verify"); err != nil {
		return nil, "", err
	}
	a, err := release.Verify(u.ctx, path, release.Trust{Signers: signers, Environ: u.Environ})
	if err != nil {
		return nil, "", err
	}
	r := &u.draft.Run
	r.To.Version, r.Repository = a.Version, path
	vouched := "signed by " + a.SignedBy
	if a.SignedBy == "" {
		vouched = "its signature is not checked: netsky.toml has no signers under [self]"
	}
	u.draft.Note(vouched)
	switch order := release.Compare(a.Version, u.Version); {
	case order > 0 || u.Force || u.Again && order == 0:
	case order == 0:
		err = advice.With(fmt.Errorf("netsky %s %w: %s is not newer", u.Version, ErrCurrent, a.Version), "`--force` installs it all the same")
	default:
		err = advice.With(fmt.Errorf("%s is older than netsky %s", a.Version, u.Version), "`netsky self rollback` goes back to the last one; `--force` installs any")
	}
	if err != nil {
		a.Close()
		return nil, "", err
	}
	return archive{a}, fmt.Sprintf("This installs netsky %s (%s) in the place of %s.", a.Version, vouched, u.Version) + u.agents(), nil
}

func (a archive) stage(u *updater, to string) error {
	defer a.Close()
	u.UI.Step(Step{Line: "unpacking netsky " + a.Version})
	if err := u.draft.Enter(u.ctx, "unpack"); err != nil {
		return err
	}
	return a.Extract(u.ctx, to)
}

// agents says what becomes of those that run.
func (u *updater) agents() string {
	list, err := u.Launcher.Inspect(u.ctx)
	n := 0
	for _, st := range list {
		if st.Alive() {
			n++
		}
	}
	switch {
	case err != nil:
		return "\nWhich agents run is not known: " + err.Error()
	case n == 0:
		return ""
	}
	return fmt.Sprintf("\nAgents that run: %d. They continue, with the build that they have; the daemon is restarted.", n)
}

// Checked is what a program says of itself, and of a home in which it was run: `netsky self check`.
type Checked struct {
	Version   string   `json:"version"`
	Schema    int      `json:"schema"` // of the records, after it has migrated them
	Faults    []string `json:"faults"`
	Changelog string   `json:"changelog"`
}

// check runs both programs on a copy of the home, and compares what they find.
func (u *updater) check(staged string) error {
	old, err := u.examine(u.in.Binary)
	if err != nil {
		return fmt.Errorf("this program: %w", err)
	}
	found, err := u.examine(staged)
	if err != nil {
		return fmt.Errorf("the new program: %w", err)
	}
	r := &u.draft.Run
	if want := r.To.Version; want != "" && want != found.Version {
		return fmt.Errorf("the new program says that it is netsky %s, not %s", found.Version, want)
	}
	fresh := slices.DeleteFunc(found.Faults, func(f string) bool { return slices.Contains(old.Faults, f) })
	if len(fresh) > 0 && !u.Force {
		return advice.With(fmt.Errorf("the new program finds faults that this one does not: %s", strings.Join(fresh, "; ")), "`--force` installs it all the same")
	}
	r.To.Version, r.To.Schema, r.From.Schema = found.Version, found.Schema, store.Schema()
	r.Changes = cmp.Or(r.Changes, checkout.Changes(found.Changelog, u.Version))
	r.To.SHA256, err = update.Sum(staged)
	return err
}

// examine has a program migrate and examine a copy of this home.
func (u *updater) examine(file string) (c Checked, err error) {
	dir, err := u.draft.Scratch()
	if err != nil {
		return c, err
	}
	if err = u.copyHome(dir); err == nil {
		return u.ask(u.ctx, file, dir)
	}
	return c, fmt.Errorf("copy the home: %w", err)
}

// ask has a program examine a home.
func (f Program) ask(ctx context.Context, file, dir string) (c Checked, err error) {
	out, err := execx.Question{
		Program: file, Args: []string{"self", "check"}, Dir: dir, Wait: checkWithin,
		Env: append(execx.Without(execx.Inherited(f.Environ), "NETSKY_*"), "NETSKY_HOME="+dir),
	}.Ask(ctx)
	left, _ := proc.Descendants(0, "NETSKY_HOME="+dir) // what it has started ends with it
	proc.End(context.WithoutCancel(ctx), left, 0)
	if err != nil {
		return c, err
	}
	if err := json.Unmarshal(out, &c); err != nil {
		return c, fmt.Errorf("%s self check: %w", file, err)
	}
	return c, nil
}

// checkWithin is how long a program may take to migrate and examine a copy of the home.
const checkWithin = 2 * time.Minute

// copyHome copies what a new program has to understand: the configuration and the records.
func (u *updater) copyHome(dir string) error {
	h, err := home.Find(func(name string) string { return map[string]string{"NETSKY_HOME": dir}[name] })
	if err == nil {
		_, err = h.Make()
	}
	if err != nil {
		return err
	}
	text, err := u.Home.ReadFile(home.ConfigFile, 1<<20)
	if err == nil {
		err = h.WriteFile(home.ConfigFile, text, false)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	c, err := store.Backup(u.ctx, u.Home, checkCopy)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer u.Home.Remove(checkCopy)
	u.draft.Note(fmt.Sprintf("a copy of %s, made in %v", words.Size(c.Bytes), c.Took.Round(time.Millisecond)))
	from, err := os.Open(u.Home.Path(checkCopy))
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := os.OpenFile(h.Path(home.DBFile), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	return errors.Join(err, to.Close())
}

// checkCopy is the copy of the records from which the one for a check is made.
const checkCopy = update.Dir + "/check.db"
