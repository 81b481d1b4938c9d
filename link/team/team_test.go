package team_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nkeys"

	"netsky/home"
	"netsky/internal/advice"
	"netsky/internal/testworld"
	"netsky/link/team"
)

func founded(t *testing.T) home.Dir {
	t.Helper()
	h := testworld.Home(t)
	testworld.Got(team.Found(h, "laptop", team.Server{}))(t)
	return h
}

func public(t *testing.T) string {
	t.Helper()
	return testworld.Got(testworld.Got(nkeys.CreateUser())(t).PublicKey())(t)
}

func TestFound(t *testing.T) {
	h := testworld.Home(t)
	testworld.ErrorIs(t, testworld.Err(team.Load(h)), team.ErrNone, "a home without a team")
	testworld.Fails(t, testworld.Err(team.Found(h, "My Laptop", team.Server{})), "its name must be")
	made := testworld.Got(team.Found(h, "laptop", team.Server{}))(t)
	again := testworld.Got(team.Found(h, "other", team.Server{}))(t)
	self := testworld.Got(team.LoadSelf(h))(t)
	key := testworld.Got(team.LoadKey(h))(t)
	testworld.Equal(t, again.ID, made.ID, "found again")
	testworld.Equal(t, self, team.Self{Name: "laptop", Team: made.ID, Owner: "laptop", OwnerKey: key.Public(), Protocol: team.Protocol})
	testworld.EqualList(t, testworld.Got(team.Load(h))(t).Hosts, []team.Host{{Name: "laptop", Key: key.Public(), Role: team.Owner, Added: made.Hosts[0].Added}})
	for _, file := range []string{team.KeyFile, team.SelfFile, team.TeamFile} {
		testworld.Equal(t, testworld.Got(os.Lstat(h.Path(file)))(t).Mode(), 0o600, file)
	}
}

// Members come and go by the owner's host alone; a key that was removed never comes back.
func TestMembers(t *testing.T) {
	h, key := founded(t), public(t)
	made := testworld.Got(team.Admit(h, team.Host{Name: "build1", Key: key, Role: team.Worker}))(t)
	testworld.Equal(t, made.Serial > 1, true, "serial %d", made.Serial)
	host, _ := made.Host("build1")
	testworld.Equal(t, host.Role, team.Worker)
	testworld.Equal(t, time.Since(host.Added) < time.Hour, true, "added %v", host.Added)
	testworld.Equal(t, testworld.Got(team.Admit(h, team.Host{Name: "build1", Key: key, Role: team.Worker}))(t).Serial, made.Serial, "the same again")
	promoted := testworld.Got(team.Admit(h, team.Host{Name: "build1", Key: key, Role: team.Owner}))(t)
	testworld.Len(t, promoted.Hosts, 2)
	testworld.Equal(t, promoted.Hosts[0].Added, host.Added, "added when its role changed")

	for _, tt := range []struct {
		add  team.Host
		want string
	}{
		{team.Host{Name: "build1", Key: public(t), Role: team.Worker}, "is the name of another host"},
		{team.Host{Name: "build2", Key: key, Role: team.Worker}, "is in the team already, as build1"},
		{team.Host{Name: "build.2", Key: public(t), Role: team.Worker}, "its name must be"},
		{team.Host{Name: "build2", Key: "UABC", Role: team.Worker}, "is no public key"},
		{team.Host{Name: "build2", Key: public(t), Role: "admin"}, "must be worker or owner"},
	} {
		testworld.Fails(t, testworld.Err(team.Admit(h, tt.add)), tt.want)
	}
	testworld.Fails(t, testworld.Err(team.Remove(h, "build2")), "no host of the team has that name")
	testworld.Fails(t, testworld.Err(team.Remove(h, "laptop")), "is the owner's host")
	left := testworld.Got(team.Remove(h, "build1"))(t)
	testworld.EqualList(t, left.Removed, []string{key})
	testworld.Fails(t, testworld.Err(team.Admit(h, team.Host{Name: "build1", Key: key, Role: team.Worker})), "its key was removed")
	for i := range team.MaxHosts - 1 {
		testworld.Got(team.Admit(h, team.Host{Name: "w" + strings.Repeat("x", i%30) + string(rune('a'+i/30)), Key: public(t), Role: team.Worker}))(t)
	}
	testworld.Fails(t, testworld.Err(team.Admit(h, team.Host{Name: "last", Key: public(t), Role: team.Worker})), "which is the most")
}

// member makes a home that belongs to the team of another, as a join leaves it.
func member(t *testing.T, owner home.Dir, name string) home.Dir {
	t.Helper()
	h := testworld.Home(t)
	key := testworld.Got(team.MakeKey(h))(t)
	testworld.Got(team.Admit(owner, team.Host{Name: name, Key: key.Public(), Role: team.Worker}))(t)
	self := testworld.Got(team.LoadSelf(owner))(t)
	self.Name = name
	_, data, err := team.Document(owner)
	testworld.Must(t, err)
	testworld.Must(t, h.WriteFile(team.TeamFile, data, true))
	testworld.Must(t, h.Save(team.SelfFile, self, true))
	return h
}

func TestAccept(t *testing.T) {
	owner, other := founded(t), founded(t)
	h := member(t, owner, "build1")
	_, old, err := team.Document(owner)
	testworld.Must(t, err)
	last := testworld.Got(team.Remove(owner, "build1"))(t).Serial
	_, removed, err := team.Document(owner)
	testworld.Must(t, err)
	_, foreign, err := team.Document(other)
	testworld.Must(t, err)

	now, newer, err := team.Accept(h, removed)
	testworld.Must(t, err)
	testworld.Equal(t, newer, true)
	testworld.Equal(t, now.Serial, last)
	now, newer, err = team.Accept(h, old) // replayed
	testworld.Must(t, err)
	testworld.Equal(t, newer, false, "an old document counts")
	testworld.Equal(t, now.Serial, last)

	forged := bytes.Replace(removed, []byte(`"serial":`), []byte(`"serial":9`), 1)
	var as struct{ Document json.RawMessage }
	testworld.Must(t, json.Unmarshal(foreign, &as))
	for name, data := range map[string][]byte{
		"forged": forged, "of another team": foreign, "empty": nil, "cut": removed[:len(removed)-9],
		"unsigned": as.Document, "huge": append(slices.Clone(removed), bytes.Repeat([]byte(" "), 300<<10)...),
	} {
		if _, newer, err := team.Accept(h, data); err == nil || newer {
			t.Errorf("%s: accepted: %v", name, err)
		}
	}
	testworld.Equal(t, testworld.Got(team.Load(h))(t).Serial, last)
	testworld.Fails(t, testworld.Err(team.Admit(h, team.Host{Name: "x", Key: public(t), Role: team.Owner})), "only the owner's host can change the team, which is laptop")
}

// What the owner changes in a home that was restored from an older copy counts, too.
func TestRestored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		owner := founded(t)
		h := member(t, owner, "build1")
		_, old, err := team.Document(owner)
		testworld.Must(t, err)
		for _, name := range []string{"build2", "build3"} {
			testworld.Must(t, owner.WriteFile(team.TeamFile, old, true))
			time.Sleep(time.Second)
			testworld.Got(team.Admit(owner, team.Host{Name: name, Key: public(t), Role: team.Worker}))(t)
			_, data, err := team.Document(owner)
			testworld.Must(t, err)
			got, _, err := team.Accept(h, data)
			testworld.Must(t, err)
			_, in := got.Host(name)
			testworld.Equal(t, in, true, "build1 hears of %s", name)
		}
	})
}

// A file that can't be used is named, and stays.
func TestDamaged(t *testing.T) {
	for _, tt := range []struct {
		file, text, want string
	}{
		{team.SelfFile, "{", "self.json: "},
		{team.SelfFile, "{}", "is no host's"},
		{team.SelfFile, `{"name":"a","owner":"a","team":"t-0"}`, "want t- and 16 hex digits"},
		{team.TeamFile, "", "team.json: is damaged"},
		{team.TeamFile, `{"document":{"team":"t-0123456789abcdef"},"signature":"AAAA"}`, "is not signed by the owner's host"},
		{team.TeamFile, strings.Repeat(" ", 300<<10), "larger than"},
	} {
		h := founded(t)
		testworld.Must(t, h.WriteFile(tt.file, []byte(tt.text), false))
		_, err := team.Load(h)
		testworld.Fails(t, err, tt.want, tt.file)
		testworld.Contains(t, advice.Of(err), "netsky link leave")
		testworld.Fails(t, testworld.Err(team.Found(h, "laptop", team.Server{})), tt.want, "found over it")
		testworld.Equal(t, string(testworld.Got(os.ReadFile(h.Path(tt.file)))(t)), tt.text, "the file")
	}
	h := founded(t)
	outside := filepath.Join(t.TempDir(), "x")
	testworld.Must(t, os.Rename(h.Path(team.TeamFile), outside))
	testworld.Must(t, os.Symlink(outside, h.Path(team.TeamFile)))
	testworld.ErrorIs(t, testworld.Err(team.Load(h)), home.ErrLink)
}

func TestInstance(t *testing.T) {
	h := founded(t)
	one := testworld.Got(team.Instance(h))(t)
	testworld.Equal(t, testworld.Got(team.Instance(h))(t), one, "asked again")
	copied := filepath.Join(t.TempDir(), "h")
	testworld.Must(t, os.CopyFS(copied, os.DirFS(h.Root())))
	there := testworld.Got(home.At(copied))(t)
	testworld.Equal(t, testworld.Got(team.LoadKey(there))(t).Public(), testworld.Got(team.LoadKey(h))(t).Public())
	if got := testworld.Got(team.Instance(there))(t); got == one {
		t.Error("a copy of the home passes for it")
	}
	testworld.Must(t, os.RemoveAll(h.Root())) // and the copy put in its place
	testworld.Must(t, os.Rename(copied, h.Root()))
	if got := testworld.Got(team.Instance(h))(t); got == one {
		t.Error("a copy in the home's place passes for it")
	}
}

func FuzzAccept(f *testing.F) {
	f.Add([]byte(`{"document":{"team":"t-0123456789abcdef","serial":1,"owner":"a","hosts":[]},"signature":"AAAA"}`))
	h := testworld.Home(f)
	testworld.Got(team.Found(h, "laptop", team.Server{}))(&testing.T{})
	_, own, err := team.Document(h)
	testworld.Must(f, err)
	f.Add(own)
	f.Fuzz(func(t *testing.T, data []byte) {
		if got, newer, err := team.Accept(h, data); newer || err == nil && got.Serial != 1 {
			t.Errorf("%q: %v, %v", data, newer, err)
		}
	})
}

func TestLeave(t *testing.T) {
	h := founded(t)
	testworld.Must(t, h.WriteFile(team.ServerFile, []byte("{}"), true))
	was := testworld.Got(team.LoadKey(h))(t)
	testworld.Must(t, h.Save(team.JoinDir+"/"+was.Public()+".json", team.Request{Key: was.Public()}, true))
	blocked := h.Path(team.KeyFile)
	testworld.Must(t, errors.Join(os.Rename(blocked, blocked+"s"), os.MkdirAll(blocked+"/x", 0o700)))
	testworld.Fails(t, team.Leave(h), "link/key")
	testworld.Got(team.LoadSelf(h))(t) // so whoever repeats it finishes it
	testworld.Must(t, errors.Join(os.RemoveAll(blocked), os.Rename(blocked+"s", blocked)))
	testworld.Must(t, team.Leave(h))
	testworld.Must(t, team.Leave(h))
	testworld.ErrorIs(t, testworld.Err(team.Load(h)), team.ErrNone)
	for pattern, want := range map[string][]string{"state/link/*": {h.Path(team.JoinDir)}, team.JoinDir + "/*": nil} {
		testworld.EqualList(t, testworld.Got(filepath.Glob(h.Path(pattern)))(t), want)
	}
	testworld.Got(team.Found(h, "laptop", team.Server{}))(t)
	if testworld.Got(team.LoadKey(h))(t).Public() == was.Public() {
		t.Error("the key that other hosts know is still used")
	}
}
