package update_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/daemon"
	"netsky/daemon/update"
	"netsky/home"
	"netsky/internal/execx"
	"netsky/internal/proc"
	"netsky/internal/testworld"
	"netsky/spawn"
	"netsky/store"
	"netsky/tmux"
)

// A program is a script that this test binary interprets as netsky. Its second line has the version and what is
// wrong with it.
const (
	asNetsky     = "-netsky"
	settingsVar  = "UPDATE_TEST_SETTINGS"
	grownTo      = 600 << 20
	settledAfter = 3 * time.Second // what a program does that is bad only later
)

// settings are those of a supervisor under test.
type settings struct {
	Within, Watch time.Duration
	Memory        int64
	Kill          int    // at the step of that number; 0: none
	KillAt        string // the same by its name
	Hold          string // the step at which it waits until it is ended
	Wait          string // the step at which it waits for a file beside that of the steps
	Steps         string // a file that has the steps
	Room          uint64 // that a file may have
	Stays         string // why the checkout can't follow the program
}

func TestMain(m *testing.M) {
	switch {
	case len(os.Args) > 3 && os.Args[1] == asNetsky:
		os.Exit(netsky(os.Args[2], os.Args[3:]))
	case slices.Equal(os.Args[1:], []string{"daemon", "supervise-restart"}):
		os.Exit(netsky(os.Args[0], os.Args[1:]))
	case len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-"):
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func netsky(program string, args []string) int {
	text, err := os.ReadFile(program)
	if err != nil {
		return 2
	}
	_, line, _ := strings.Cut(string(text), "\n")
	version, fault, _ := strings.Cut(strings.TrimSpace(line), " ")
	h, err := home.Find(os.Getenv)
	if err != nil {
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	switch strings.Join(args, " ") {
	case "daemon run --wanted": // its supervisor's room is not its own
		syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY})
		err = serve(ctx, h, program, version, fault)
	case "daemon supervise-restart":
		err = supervise(ctx, h)
	default:
		return 1
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// serve is the daemon of a program.
func serve(ctx context.Context, h home.Dir, program, version, fault string) error {
	later := func(f func()) { time.AfterFunc(settledAfter, f) }
	switch fault {
	case "crash":
		return fmt.Errorf("a crash")
	case "exit0":
		return nil
	case "hang":
		select {}
	case "hanglater":
		later(func() { syscall.Kill(os.Getpid(), syscall.SIGSTOP) })
	case "dies":
		later(func() { os.Exit(1) })
	case "grows":
		later(func() { grow(grownTo) })
	case "nomail":
		router, err := h.Lock(home.RouterLock)
		if err != nil {
			return err
		}
		defer router.Unlock()
	case "migrate", "migrate-and-die":
		if err := onFile(h.Path(home.DBFile), "CREATE TABLE IF NOT EXISTS newer (n)", fmt.Sprintf("PRAGMA user_version = %d", store.Schema()+1)); err != nil || fault == "migrate" {
			return fmt.Errorf("a crash after the migration: %w", err)
		}
		later(func() { os.Exit(1) })
	case "damage":
		f, err := os.OpenFile(h.Path(home.DBFile), os.O_WRONLY, 0)
		if err == nil {
			_, err = f.WriteAt(make([]byte, 4096), 0)
		}
		return fmt.Errorf("a crash after a write: %w", err)
	case "lies":
		version += "-other"
	}
	return daemon.Run(ctx, daemon.Options{
		Home: h, Bus: bus.New(h, bus.Options{}), Version: version, Wanted: true, Log: slog.New(slog.DiscardHandler),
		Launcher: spawn.New(spawn.Site{
			Home: h, Bus: bus.New(h, bus.Options{}), Journal: store.NewJournal(h), Binary: program, Environ: os.Environ(),
			Tmux: &tmux.Server{Socket: filepath.Join(filepath.Dir(h.Root()), "s"), Conf: h.Path(home.TmuxConfFile), Env: os.Environ(), Tags: []string{spawn.TagHome, spawn.TagStart}},
		}),
	})
}

// grown is memory that is in use.
var grown []byte

func grow(n int) {
	grown = make([]byte, n)
	for i := 0; i < n; i += 4096 {
		grown[i] = 1
	}
}

func onFile(file string, statements ...string) error {
	db, err := sql.Open("sqlite3", "file:"+file)
	if err != nil {
		return err
	}
	defer db.Close()
	for _, s := range statements {
		if _, err := db.Exec(s); err != nil {
			return err
		}
	}
	return nil
}

// supervise is the supervisor of a program.
func supervise(ctx context.Context, h home.Dir) error {
	var o settings
	if text := os.Getenv(settingsVar); text != "" {
		if err := json.Unmarshal([]byte(text), &o); err != nil {
			return err
		}
	}
	n := 0
	update.SetStep(func(name string) {
		n++
		if f, err := os.OpenFile(o.Steps, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600); err == nil {
			fmt.Fprintln(f, n, name)
			f.Close()
		}
		if n == o.Kill || name == o.KillAt {
			syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
		if name == o.Hold {
			select {}
		}
		for name == o.Wait && !there(o.Steps+".go") {
			time.Sleep(5 * time.Millisecond)
		}
	})
	if o.Room > 0 {
		signal.Ignore(syscall.SIGXFSZ)
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: o.Room, Max: unix.RLIM_INFINITY}); err != nil {
			return err
		}
	}
	s := update.Supervisor{
		Home: h, Bus: bus.New(h, bus.Options{}), Environ: execx.Without(os.Environ(), settingsVar),
		Within: o.Within, Watch: o.Watch, Memory: o.Memory,
	}
	if o.Stays != "" {
		s.Adopt = func(context.Context, update.Run) error { return errors.New(o.Stays) }
	}
	_, err := s.Supervise(ctx)
	return err
}

func there(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// A world is a home whose daemon is of a program of its own.
type world struct {
	testing.TB
	ctx  context.Context
	home home.Dir
	bus  *bus.Bus
	bin  string
	env  []string
	set  settings
	sent []string // messages to the owner
}

// The records from before a run: so many logs, with this text.
const (
	before = "before-"
	logs   = 20
)

// newWorld starts a daemon of netsky v1, which has records.
func newWorld(t testing.TB) *world {
	t.Helper()
	h := testworld.FastHome(t)
	return newWorldAt(t, h, filepath.Join(filepath.Dir(h.Root()), "bin"))
}

// newWorldAt is newWorld with a program in that directory.
func newWorldAt(t testing.TB, h home.Dir, bin string) *world {
	t.Helper()
	dir := filepath.Dir(h.Root())
	w := &world{
		TB: t, ctx: context.Background(), home: h, bus: testworld.Bus(t, h, agent.Root, agent.Owner), bin: filepath.Join(bin, "netsky"),
		env: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "LANG=C.UTF-8", "NETSKY_TMUX_SOCKET=" + filepath.Join(dir, "s"), "NETSKY_HOME=" + h.Root(), "GORACE=atexit_sleep_ms=0"},
		set: settings{Watch: 100 * time.Millisecond, Steps: filepath.Join(dir, "steps")},
	}
	testworld.Must(t, os.MkdirAll(bin, 0o700))
	t.Cleanup(func() { testworld.EndAll(t, h) })
	w.program(w.bin, "v1", "")
	w.want(true)
	w.start()
	db := testworld.Got(store.Open(w.ctx, h))(t)
	for i := range logs {
		testworld.Must(t, db.Apply(w.ctx, store.AddLog{Text: fmt.Sprint(before, i)}))
	}
	db.Close()
	return w
}

// program writes a program, and returns its build.
func (w *world) program(file, version, fault string) update.Build {
	w.Helper()
	exe := testworld.Got(os.Executable())(w)
	testworld.Program(w, file, fmt.Sprintf("#!%s %s\n%s %s\n", exe, asNetsky, version, fault))
	return update.Build{Version: version, SHA256: w.sum(file)}
}

func (w *world) sum(file string) string {
	w.Helper()
	return testworld.Got(update.Sum(file))(w)
}

func (w *world) want(up bool) {
	w.Helper()
	testworld.Must(w, home.Desired(w.home).Set(agent.DaemonName, up, "owner"))
}

// start does what a tick does: it has a supervisor finish what was cut off, or starts the daemon.
func (w *world) start() daemon.Pong {
	w.Helper()
	if _, pending := update.Pending(w.home); pending {
		testworld.Must(w, update.Finish(w.home, w.environ()))
		return testworld.Got(update.Starts(w.ctx, w.home))(w)
	}
	p, _, err := daemon.Start(w.ctx, w.home, []string{w.bin, "daemon", "run", "--wanted"}, w.env)
	testworld.Must(w, err)
	return p
}

// environ is that of a supervisor.
func (w *world) environ() []string {
	w.Helper()
	return append(slices.Clone(w.env), settingsVar+"="+string(testworld.Got(json.Marshal(w.set))(w)))
}

// prepare hands a run over to a supervisor, which isn't started yet.
func (w *world) prepare(kind update.Kind, version, fault string, more func(*update.Run)) update.Run {
	w.Helper()
	now := update.Build{Version: testworld.Got(daemon.Ping(w.ctx, w.home))(w).Version}
	r := update.Run{Kind: kind, Binary: w.bin, From: now, To: now}
	if kind != update.Restart {
		r.Previous, r.From.SHA256 = update.Kept(w.bin), w.sum(w.bin)
	}
	d := testworld.Got(update.Begin(w.home, r))(w)
	if kind != update.Restart {
		d.Run.To = w.program(testworld.Got(d.Stage())(w), version, fault)
	}
	if more != nil {
		more(&d.Run)
	}
	return testworld.Got(d.HandOver(w.ctx))(w)
}

// supervise runs a supervisor in a process of its own until that ends, and reports whether it was killed.
func (w *world) supervise() (killed bool) {
	w.Helper()
	out := testworld.Got(os.OpenFile(w.set.Steps+".out", os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600))(w)
	defer out.Close()
	cmd := exec.Command(update.Program(w.home, w.bin), "daemon", "supervise-restart")
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = w.environ(), w.home.Root(), out, out
	cmd.Run()
	status := cmd.ProcessState.Sys().(syscall.WaitStatus)
	return status.Signaled()
}

// over waits until the run is over.
func (w *world) over() (r update.Run) {
	w.Helper()
	testworld.WaitOr(w, func() bool {
		var err error
		r, err = update.Load(w.home)
		if err != nil || !r.State.Over() {
			return false
		}
		held, err := w.home.Locked(home.SelfLock)
		return !held && err == nil
	}, func() string { return fmt.Sprintf("%+v\n%s", r, w.steps()) })
	return r
}

// at reports whether the supervisor is at a step.
func (w *world) at(step string) bool {
	data, _ := os.ReadFile(w.set.Steps)
	return strings.HasSuffix(string(data), " "+step+"\n")
}

func (w *world) steps() string {
	data, _ := os.ReadFile(w.set.Steps)
	out, _ := os.ReadFile(w.set.Steps + ".out")
	log, _ := os.ReadFile(w.home.Path(home.LogDir, "supervisor.log"))
	return string(data) + string(out) + string(log)
}

// send sends the owner a message: by itself, and by way of the router.
func (w *world) send(text string) {
	w.Helper()
	e := envelope.Envelope{From: agent.Root, To: agent.Owner, Text: text}
	w.sent = append(w.sent, testworld.Got(w.bus.Send(w.ctx, e))(w).ID)
	e.ID, e.Time, e.Via = fmt.Sprintf("routed-%d", time.Now().UnixNano()), time.Now(), "code"
	data := testworld.Got(e.MarshalJSON())(w)
	testworld.Must(w, w.home.WriteFile(home.Mailbox(agent.Root)+"/"+string(bus.Outbox)+"/"+e.ID+".json", data, false))
	w.sent = append(w.sent, e.ID)
}

// whole requires that a daemon of that version is all that runs, that the program at the path is of that version, that
// nothing is beside it but what is named, that the records are those from before, and that all mail has come once. It returns
// what the owner was told.
func (w *world) whole(version string, beside ...string) (told []string) {
	w.Helper()
	p := testworld.Got(daemon.Ping(w.ctx, w.home))(w)
	testworld.Equal(w, p.Version, version, "the daemon that answers")
	w.alone(p.PID)
	data := testworld.Got(os.ReadFile(w.bin))(w)
	testworld.Contains(w, string(data), "\n"+version+" ", "the program")
	var names []string
	for _, e := range testworld.Got(os.ReadDir(filepath.Dir(w.bin)))(w) {
		names = append(names, e.Name())
	}
	testworld.EqualList(w, names, append([]string{"netsky"}, beside...), "beside the program")
	n := logs
	if version == "v0" {
		n = 0
	}
	w.records(n)
	return w.mail()
}

// older is a copy of the records that a rollback puts back: of another time, and of the tables before the last migration.
const older = update.Dir + "/self-1.db"

// rollback prepares a rollback to such a copy.
func (w *world) rollback(fault string) update.Run {
	w.Helper()
	tables := testworld.Got(os.ReadFile(fmt.Sprintf("../../store/testdata/schemas/%03d.sql", store.Schema()-1)))(w)
	testworld.Must(w, os.MkdirAll(w.home.Path(update.Dir), 0o700))
	testworld.Must(w, onFile(w.home.Path(older), string(tables)))
	testworld.Must(w, w.home.Save(update.Dir+"/installed.json", update.Run{ID: "self-1", Backup: older, Schema: store.Schema() - 1}, false))
	return w.prepare(update.Rollback, "v0", fault, func(r *update.Run) { r.Restore = older })
}

// alone requires that nothing of the home runs but a process.
func (w *world) alone(pid int) {
	w.Helper()
	var pids []int
	testworld.WaitOr(w, func() bool {
		list, err := proc.Descendants(0, "NETSKY_HOME="+w.home.Root())
		pids = nil
		for _, p := range list {
			pids = append(pids, p.PID)
		}
		return err == nil && slices.Equal(pids, []int{pid})
	}, func() string { return fmt.Sprintf("%d runs, want %d", pids, pid) })
}

func (w *world) records(n int) {
	w.Helper()
	db := testworld.Got(store.OpenRead(w.ctx, w.home))(w)
	defer db.Close()
	testworld.Must(w, db.Check(w.ctx))
	testworld.Equal(w, testworld.Got(store.SchemaOf(w.ctx, w.home))(w), store.Schema(), "the tables' version")
	testworld.Len(w, testworld.Got(db.Logs(w.ctx, store.LogFilter{Text: before}))(w).Items, n, "logs")
}

// mail requires that every message has reached the owner once, and returns the texts of notices.
func (w *world) mail() (told []string) {
	w.Helper()
	count := make(map[string]int)
	testworld.WaitOr(w, func() bool {
		clear(count)
		told = nil
		waiting := 0
		for _, place := range []bus.Spot{{Mailbox: agent.Root, Place: bus.Outbox}, {Mailbox: agent.Owner, Place: bus.Inbox}, {Mailbox: agent.Owner, Place: bus.Claimed}} {
			list, err := w.bus.List(place.Mailbox, place.Place, 0) // in the order in which a message passes them
			if err != nil {
				return false
			}
			waiting += len(list)
		}
		list, err := w.bus.List(agent.Owner, bus.Delivered, 0)
		for _, e := range list {
			count[e.Envelope.ID]++
			if e.Envelope.Kind == envelope.KindNotice {
				told = append(told, e.Envelope.Text)
			}
		}
		return err == nil && waiting == 0
	}, func() string { return "mail waits" })
	for _, id := range w.sent {
		testworld.Equal(w, count[id], 1, "message %s", id)
	}
	return told
}
