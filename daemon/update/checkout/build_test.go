package checkout_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"netsky/daemon/update/checkout"
	"netsky/internal/advice"
	"netsky/internal/proc"
	"netsky/internal/testworld"
)

// tools is a checkout whose scripts/tools builds as the test says.
func tools(t *testing.T, build string) (root string) {
	t.Helper()
	root = filepath.Join(t.TempDir(), "it's a checkout")
	testworld.Must(t, os.MkdirAll(root+"/scripts", 0o755))
	testworld.Must(t, os.WriteFile(root+"/scripts/tools", []byte("go_there() { :; }\nbuild() {\n"+build+"\n}\n"), 0o644))
	return root
}

func TestBuild(t *testing.T) {
	t.Parallel()
	root := tools(t, `echo "in $1"; echo warning >&2; cp scripts/tools "$2"; chmod 777 "$2"`)
	to := filepath.Join(t.TempDir(), "new netsky")
	var out bytes.Buffer
	testworld.Must(t, checkout.Build(t.Context(), root, to, os.Environ(), &out))
	testworld.Equal(t, out.String(), "in "+root+"\nwarning\n")
	testworld.Contains(t, string(testworld.Got(os.ReadFile(to))(t)), "go_there")
	testworld.Equal(t, testworld.Got(os.Stat(to))(t).Mode(), 0o755)
	testworld.ErrorIs(t, checkout.Build(t.Context(), root, to, os.Environ(), &out), fs.ErrExist)
	testworld.Must(t, testworld.Err(os.Stat(to)), "what was there is kept")
}

func TestBuildFails(t *testing.T) {
	t.Parallel()
	for build, refusal := range map[string]string{
		`echo half >"$2"; echo "no such package" >&2; return 3`: "the build failed: exit status 3",
		`return 1`:   "the build failed: exit status 1",
		`kill -9 $$`: "the build failed: ended by killed",
		`:`:          "no such file",
	} {
		to := filepath.Join(t.TempDir(), "netsky")
		err := checkout.Build(t.Context(), tools(t, build), to, os.Environ(), new(bytes.Buffer))
		testworld.Fails(t, err, refusal, build)
		testworld.ErrorIs(t, testworld.Err(os.Lstat(to)), fs.ErrNotExist, build)
		if strings.Contains(refusal, "failed") {
			testworld.Contains(t, advice.Of(err), "scripts/up' yourself")
		}
	}
	err := checkout.Build(t.Context(), t.TempDir(), filepath.Join(t.TempDir(), "netsky"), os.Environ(), new(bytes.Buffer))
	testworld.Fails(t, err, "the build failed", "no scripts/tools")
}

// What the build has started ends with the context, also what has made a group of its own.
func TestBuildEnds(t *testing.T) {
	t.Parallel()
	script := filepath.Join(t.TempDir(), "apart")
	testworld.Must(t, os.WriteFile(script, []byte(`echo $$ >>"$0.pids"; echo begun; exec sleep 600`), 0o644))
	root := tools(t, `echo half >"$2"; echo $$ >>'`+script+`.pids'; setsid sh '`+script+`' & sleep 600`)
	to := filepath.Join(t.TempDir(), "netsky")
	ctx, cancel := context.WithCancel(t.Context())
	err := checkout.Build(ctx, root, to, os.Environ(), writer(func(p []byte) {
		if bytes.Contains(p, []byte("begun")) {
			cancel()
		}
	}))
	testworld.ErrorIs(t, err, context.Canceled)
	testworld.ErrorIs(t, testworld.Err(os.Lstat(to)), fs.ErrNotExist)
	for word := range strings.FieldsSeq(string(testworld.Got(os.ReadFile(script + ".pids"))(t))) {
		pid := testworld.Got(strconv.Atoi(word))(t)
		testworld.Wait(t, "process "+word+" to end", func() bool {
			p, err := proc.Find(pid)
			return err != nil || p.Gone() || errors.Is(err, fs.ErrNotExist)
		})
	}
}

type writer func([]byte)

func (w writer) Write(p []byte) (int, error) { w(p); return len(p), nil }
