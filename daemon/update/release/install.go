package release

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"netsky/home"
	"netsky/internal/advice"
	"netsky/internal/execx"
)

// A Kind is a way in which a netsky was installed.
type Kind string

// Kinds.
const (
	FromCheckout Kind = "checkout" // built in a checkout of the source
	FromArchive  Kind = "archive"  // a file of its own, which may be replaced
	FromPackage  Kind = "package"  // belongs to a package manager, which alone may replace it
)

// An Install is how a netsky was installed.
type Install struct {
	Kind    Kind
	Binary  string // the file itself, links resolved
	Root    string // of the checkout
	Package string // and its manager: "netsky (dpkg)"
	Command string // updates the package; for a person
}

// Find says how the binary at path was installed, as the package managers that are on PATH say. Where one of
// them can't tell, or there is none, a binary in a directory that only they write to is an error: it is not
// known to whom it belongs.
func Find(ctx context.Context, path string, environ []string) (Install, error) {
	binary, err := filepath.EvalSymlinks(path)
	if err == nil {
		binary, err = filepath.Abs(binary)
	}
	if err != nil {
		return Install{}, err
	}
	in := Install{Kind: FromArchive, Binary: binary}
	if name, ok := below(binary, "/Cellar/"); ok {
		return in.of("brew", name), nil
	}
	if name, ok := strings.CutPrefix(binary, "/nix/store/"); ok {
		name, _, _ = strings.Cut(name, "/")
		_, name, _ = strings.Cut(name, "-") // its digest
		return in.of("nix", name), nil
	}
	if root := filepath.Dir(filepath.Dir(binary)); isCheckout(root, binary) {
		in.Kind, in.Root = FromCheckout, root
		if !isSystem(binary) {
			return in, nil
		}
	}
	asked, failed := 0, error(nil)
	for _, m := range managers {
		program := execx.Find(execx.Value(environ, "PATH"), m.program)
		if program == "" {
			continue
		}
		asked++
		name, err := m.owner(ctx, asker{program, environ}, binary)
		if name != "" {
			return in.of(m.name, name), nil
		}
		failed = cmp.Or(failed, err)
	}
	switch {
	case ctx.Err() != nil:
		return Install{}, ctx.Err()
	case !isSystem(binary):
	case failed != nil:
		return Install{}, advice.With(fmt.Errorf("%s: it is not known to which package it belongs: %w", binary, failed), "repair that, or update it as you installed it")
	case asked == 0:
		return Install{}, advice.With(fmt.Errorf("%s: it is not known to which package it belongs: no package manager that netsky knows is on PATH", binary), "update it as you installed it")
	}
	return in, nil
}

// of returns the install as one of a package.
func (in Install) of(manager, name string) Install {
	in.Kind, in.Root, in.Package = FromPackage, "", name+" ("+manager+")"
	switch word := advice.Word(name); manager {
	case "dpkg":
		in.Command = "sudo apt install --only-upgrade " + word
		if name == "netsky" {
			in.Command = "sudo apt install ./netsky_VERSION_" + runtime.GOARCH + ".deb"
		}
	case "rpm":
		in.Command = "sudo dnf upgrade " + word
	case "pacman":
		in.Command = "sudo pacman -Syu " + word
	case "apk":
		in.Command = "sudo apk upgrade " + word
	case "brew":
		in.Command = "brew upgrade " + word
	case "nix":
		in.Command = "nix profile upgrade " + word
	}
	return in
}

// below returns the part of a path that follows a directory somewhere in it.
func below(path, dir string) (name string, ok bool) {
	_, rest, ok := strings.Cut(path, dir)
	name, _, _ = strings.Cut(rest, "/")
	return name, ok && name != ""
}

// isSystem reports whether only package managers write where the file is.
func isSystem(path string) bool {
	if strings.HasPrefix(path, "/usr/local/") {
		return false
	}
	for _, dir := range []string{"/usr/", "/bin/", "/sbin/"} {
		if strings.HasPrefix(path, dir) {
			return true
		}
	}
	return false
}

// isCheckout reports whether the binary is the one that scripts/up builds in the checkout at root.
func isCheckout(root, binary string) bool {
	if binary != filepath.Join(root, "bin", "netsky") {
		return false
	}
	for _, name := range []string{"main.go", "scripts/tools"} {
		if info, err := os.Stat(filepath.Join(root, name)); err != nil || !info.Mode().IsRegular() {
			return false
		}
	}
	mod, err := home.ReadOwn(filepath.Join(root, "go.mod"), maxSums)
	first, _, _ := strings.Cut(string(mod), "\n")
	return err == nil && strings.TrimSpace(first) == "module netsky"
}

// managers are the package managers that can say to which package a file belongs.
var managers = []struct {
	name, program string
	owner         func(ctx context.Context, ask asker, file string) (string, error)
}{
	{"dpkg", "dpkg", dpkgOwner},
	{"rpm", "rpm", func(ctx context.Context, ask asker, file string) (string, error) {
		out, err := ask.about(ctx, "is not owned by any package", "-qf", "--qf", `%{NAME}\n`, file)
		return firstOf(out), err
	}},
	{"pacman", "pacman", func(ctx context.Context, ask asker, file string) (string, error) {
		out, err := ask.about(ctx, "No package owns", "-Qoq", file)
		return firstOf(out), err
	}},
	{"apk", "apk", func(ctx context.Context, ask asker, file string) (string, error) {
		out, err := ask.about(ctx, "Could not find owner package", "info", "-W", file)
		_, name, _ := strings.Cut(firstOf(out), " is owned by ")
		for range 2 { // "netsky-0.2.0-r0"
			name = name[:max(0, strings.LastIndex(name, "-"))]
		}
		return name, err
	}},
}

// An asker asks a package manager.
type asker struct {
	program string
	environ []string
}

// managerTime is how long a manager may take to answer. dpkg reads a file for each package there is.
var managerTime = 20 * time.Second

// about returns what the manager prints of a file. If it fails with the words by which it says that the file
// belongs to none of its packages, and complains of nothing else, that is nothing: rpm prints them, too, if it
// can't read its records.
func (a asker) about(ctx context.Context, none string, args ...string) (string, error) {
	env := append(execx.Without(a.environ, "LC_ALL", "LANGUAGE"), "LC_ALL=C")
	out, err := execx.Question{Program: a.program, Args: args, Env: env, Dir: "/", Wait: managerTime}.Ask(ctx)
	if err != nil {
		said := err.Error()
		if strings.Contains(said, none) || strings.Contains(string(out), none) && strings.HasSuffix(said, ": exit status 1") {
			return "", nil
		}
		return "", err
	}
	if firstOf(string(out)) == "" {
		return "", fmt.Errorf("%s %s: no answer", a.program, strings.Join(args, " "))
	}
	return string(out), nil
}

func firstOf(text string) string {
	first, _, _ := strings.Cut(text, "\n")
	return strings.TrimSpace(first)
}
