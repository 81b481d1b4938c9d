package cli

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"netsky/daemon/update/release"
	"netsky/fleet"
	"netsky/internal/advice"
	"netsky/internal/words"
	"netsky/link/ssh"
)

// Limits of what install does on a host; somebody may have to type a password meanwhile.
const (
	lookTime = 2 * time.Minute
	copyTime = 30 * time.Minute
)

// A target is what a host is, and the netsky that it has.
type target struct {
	ssh.Host
	machine string // as Go calls it: linux/amd64
	tmux    bool
	sum     string // of the program that is there; "" without one
	self    selfView
}

// own is this program, as it is copied.
type own struct {
	file string
	size int64
	sum  string
}

func (a hostVerbs) install(c *cli.Context) error {
	if err := a.may("hosts install"); err != nil {
		return err
	}
	name, err := one(c, "a host, as `netsky hosts` lists them")
	if err != nil {
		return err
	}
	client, h, err := a.reach(name)
	if err != nil {
		return err
	}
	t, err := examine(c, client, h)
	if err != nil {
		return err
	}
	me, err := ownProgram()
	if err != nil {
		return err
	}
	if t.sum == me.sum {
		a.print("%s: has this netsky already, %s as %s", h.Name, Version, t.self.Binary)
		return nil
	}
	if err := t.fits(); err != nil {
		return err
	}
	where := cmp.Or(h.Netsky, "~/.local/bin/netsky")
	what := fmt.Sprintf("netsky %s for %s, %s, SHA-256 %s\nto %s (%s) as %s", Version, t.machine, words.Size(me.size), me.sum, h.Name, h.Dest, where)
	if t.sum != "" {
		what = fmt.Sprintf("%s\nwhose netsky %s (%s) updates itself with it", strings.Replace(what, where, t.self.Binary, 1), t.self.Version, t.self.Binary)
	}
	a.print("this copies %s", what)
	if !c.Bool("yes") {
		if ok, err := setupVerbs(a).confirm("hosts install", "Do this?"); err != nil || !ok {
			return err
		}
	}
	if t.sum != "" {
		return a.update(c, client, t, me)
	}
	said, err := me.copyTo(c, client, h, placing, where)
	if err != nil {
		return reached(c.Context, h, err)
	}
	a.print("%s: %s, as %s", h.Name, strings.TrimSpace(said), where)
	if !t.tmux {
		a.warn("%s: tmux is not there, which netsky needs; install it with that system's package manager", h.Name)
	}
	return nil
}

// sums is a function of sh that prints the SHA-256 of a file.
const sums = `sum() { { sha256sum "$1" || shasum -a 256 "$1"; } 2>/dev/null | cut -c1-64; }; `

// examine asks a host what it is and what it has.
func examine(c *cli.Context, client ssh.Client, h ssh.Host) (t target, err error) {
	t.Host = h
	said, err := client.Ask(c.Context, h, lookTime, nil,
		sums+`uname -sm; command -v tmux >/dev/null && echo yes || echo no; `+h.Script()+`"$netsky" self status --json && sum "$netsky"`)
	lines := strings.SplitN(said, "\n", 3)
	if len(lines) < 3 {
		return t, reached(c.Context, h, cmp.Or(err, errors.New("does not say what it is: uname is not there")))
	}
	kind := strings.Fields(strings.ToLower(lines[0]) + " ? ?")
	t.machine, t.tmux = kind[0]+"/"+cmp.Or(map[string]string{"x86_64": "amd64", "aarch64": "arm64"}[kind[1]], kind[1]), lines[1] == "yes"
	if errors.Is(err, ssh.ErrNoNetsky) {
		return t, nil
	}
	in := strings.NewReader(lines[2])
	dec := json.NewDecoder(in)
	if bad := dec.Decode(&t.self); err != nil || bad != nil {
		return t, fmt.Errorf("%s: its netsky does not say what it is: %w", h.Name, cmp.Or(err, bad))
	}
	rest, _ := io.ReadAll(io.MultiReader(dec.Buffered(), in))
	t.sum = strings.TrimSpace(string(rest))
	return t, nil
}

// fits returns why this program can't be put on the host.
func (t target) fits() error {
	mine := runtime.GOOS + "/" + runtime.GOARCH
	switch {
	case t.machine != mine:
		kind := strings.ReplaceAll(t.machine, "/", "_")
		return advice.With(fmt.Errorf("%s: is %s, and this netsky is for %s", t.Name, t.machine, mine),
			"bring netsky_%s_%s.tar.gz, which `scripts/release` builds, and put its `netsky` into ~/.local/bin there", Version, kind)
	case t.sum == "":
		return nil
	case t.self.Kind == release.FromPackage:
		return advice.With(fmt.Errorf("%s: its netsky %s belongs to the package %s", t.Name, t.self.Version, t.self.Package), "there: `%s`, then `netsky daemon restart`", t.self.Update)
	case t.self.Kind == release.FromCheckout:
		return advice.With(fmt.Errorf("%s: its netsky %s is built in a checkout", t.Name, t.self.Version), "`netsky --on %s self update` builds the newest of its branch", advice.Word(t.Name))
	case release.Compare(Version, t.self.Version) < 0:
		return advice.With(fmt.Errorf("%s: its netsky %s is newer than this %s", t.Name, t.self.Version, Version), "`netsky self update` updates this one")
	}
	return nil
}

func ownProgram() (p own, err error) {
	if p.file, err = fleet.Binary(); err == nil {
		p.file, err = filepath.EvalSymlinks(p.file)
	}
	if err != nil {
		return p, err
	}
	f, err := os.Open(p.file)
	if err != nil {
		return p, err
	}
	defer f.Close()
	sum := sha256.New()
	p.size, err = io.Copy(sum, f)
	p.sum = hex.EncodeToString(sum.Sum(nil))
	return p, err
}

// arriving begins a script whose input is this program: it is "$t" in a new directory "$d" that
// goes with the script, and whole.
const arriving = sums + `set -e; sum=$1; case $2 in "~/"*) to=$HOME/${2#"~/"} ;; *) to=$2 ;; esac; ` +
	`mkdir -p "$(dirname "$to")"; d=$(mktemp -d "$to.XXXXXX"); trap 'rm -rf "$d"' EXIT; t=$d/netsky; cat >"$t"; chmod 755 "$t"; ` +
	`have=$(sum "$t"); [ "$have" = "$sum" ] || { echo "what arrived has the SHA-256 $have" >&2; exit 1; }; `

const (
	placing = arriving + `"$t" version; mv "$t" "$to"`
	// packing makes a release of it, which it leaves, and prints its file.
	packing = arriving + `mkdir "$d/$3"; mv "$t" "$d/$3"; cd "$d"; tar -czf "$3.tar.gz" "$3"; echo "$(sum "$3.tar.gz")  $3.tar.gz" >SHA256SUMS; rm -r "$3"; trap - EXIT; echo "$d/$3.tar.gz"`
)

// copyTo runs a script there with this program as its input.
func (p own) copyTo(c *cli.Context, client ssh.Client, h ssh.Host, script string, args ...string) (string, error) {
	f, err := os.Open(p.file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	return client.Ask(c.Context, h, copyTime, f, script, append([]string{p.sum}, args...)...)
}

// update has the netsky on a host update itself with this one.
func (a hostVerbs) update(c *cli.Context, client ssh.Client, t target, me own) error {
	top := "netsky_" + Version + "_" + strings.ReplaceAll(t.machine, "/", "_")
	said, err := me.copyTo(c, client, t.Host, packing, t.self.Binary, top)
	if err != nil {
		return reached(c.Context, t.Host, err)
	}
	file := strings.TrimSpace(said)
	line := []string{"self", "update", file, "--yes"}
	if release.Compare(Version, t.self.Version) == 0 { // another build of the same version
		line = append(line, "--again")
	}
	err = client.Run(c.Context, t.Host, a.in, a.out, a.err, "", line...)
	_, gone := client.Ask(c.Context, t.Host, lookTime, nil, `rm -r "$(dirname "$1")"`, file)
	if gone != nil {
		a.warn("%s: %s stays: %v", t.Name, filepath.Dir(file), gone)
	}
	return reached(c.Context, t.Host, err)
}
