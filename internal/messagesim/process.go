package messagesim

import (
	"bufio"
	"bytes"
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	_ "github.com/mattn/go-sqlite3" // the driver
	"golang.org/x/sys/unix"
)

// The variables by which a test binary knows what it is.
const (
	envDB     = "MESSAGESIM_DB"     // the database
	envRole   = "MESSAGESIM_ROLE"   // keep, sit or later
	envDir    = "MESSAGESIM_DIR"    // osascript's: its modes and calls
	envScript = "MESSAGESIM_SCRIPT" // osascript's: the scripts' digests
)

// Main is for the beginning of TestMain: it reports whether the process was one of the programs
// of this package, which has run then.
func Main() bool {
	role := os.Getenv(envRole)
	switch {
	case filepath.Base(os.Args[0]) == "osascript":
		os.Exit(osascript())
	case role == "keep":
		keep(os.Getenv(envDB))
	case role == "sit":
		sit()
	case role == "later":
		os.Exit(later())
	default:
		return false
	}
	return true
}

// A statement is one of SQL. A blob among its arguments is {"blob": base64}.
type statement struct {
	SQL  string
	Args []any
}

// A request is one line on the process's standard input; each is answered with a line.
type request struct {
	Op         string
	Statements []statement   `json:",omitempty"`
	After      time.Duration `json:",omitempty"`
	Profile    Profile       `json:",omitempty"`
}

type response struct {
	Err string `json:",omitempty"`
}

// A keeper is the process's state.
type keeper struct {
	path string

	mu    sync.Mutex // guards the database against delayed statements
	db    *sql.DB
	held  *sql.Tx // begun, not to be committed
	saved []byte  // of the damaged page
	at    int64   // where that was
}

func keep(path string) {
	k := &keeper{path: path}
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 64<<20)
	out := json.NewEncoder(os.Stdout)
	for in.Scan() {
		var req request
		var res response
		dec := json.NewDecoder(bytes.NewReader(in.Bytes()))
		dec.UseNumber() // a float would lose the last digits of a date
		err := dec.Decode(&req)
		if err == nil {
			err = k.do(req)
		}
		if err != nil {
			res.Err = err.Error()
		}
		if out.Encode(res) != nil {
			return
		}
	}
}

func open(path string) (*sql.DB, error) {
	db, err := sql.Open("sqlite3", "file:"+path+"?_journal_mode=WAL&_busy_timeout=10000&_txlock=immediate")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	return db, db.Ping()
}

func (k *keeper) do(req request) (err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch req.Op {
	case "make":
		return k.make(req.Profile)
	case "open":
		k.db, err = open(k.path)
		return err
	case "run":
		return k.run(req.Statements)
	case "later":
		time.AfterFunc(req.After, func() {
			k.mu.Lock()
			defer k.mu.Unlock()
			if err := k.run(req.Statements); err != nil {
				fmt.Fprintln(os.Stderr, "messagesim:", err)
			}
		})
		return nil
	case "hold":
		if k.held, err = k.db.Begin(); err != nil {
			return err
		}
		return execAll(k.held, req.Statements)
	case "newlog":
		return k.newLog()
	case "damage":
		return k.damage()
	case "mend":
		return k.mend()
	case "lock":
		return k.lock(req.After)
	}
	return fmt.Errorf("no operation %q", req.Op)
}

func (k *keeper) run(list []statement) (err error) {
	tx, err := k.db.Begin()
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err = execAll(tx, list); err != nil {
		return err
	}
	return tx.Commit()
}

func execAll(tx *sql.Tx, list []statement) (err error) {
	for _, s := range list {
		for i, a := range s.Args {
			switch a := a.(type) {
			case map[string]any:
				text, _ := a["blob"].(string)
				if s.Args[i], err = base64.StdEncoding.DecodeString(text); err != nil {
					return err
				}
			case json.Number:
				if s.Args[i], err = a.Int64(); err != nil {
					return err
				}
			}
		}
		if _, err := tx.Exec(s.SQL, s.Args...); err != nil {
			return fmt.Errorf("%s: %w", s.SQL, err)
		}
	}
	return nil
}

// make puts a new database in the place of what is there.
func (k *keeper) make(p Profile) error {
	if k.db != nil {
		k.db.Close()
	}
	fresh := k.path + ".new"
	db, err := open(fresh)
	if err != nil {
		return err
	}
	for _, s := range p.tables() {
		if _, err := db.Exec(s); err != nil {
			return fmt.Errorf("%s: %w", s, err)
		}
	}
	id := fmt.Sprintf("%d-%d", os.Getpid(), time.Now().UnixNano())
	if _, err := db.Exec("INSERT INTO _SqliteDatabaseProperties VALUES ('_UniqueIdentifier', ?), ('_ClientVersion', ?)", id, int(p)); err != nil {
		return err
	}
	if err := db.Close(); err != nil { // which ends the log
		return err
	}
	for _, end := range []string{"-wal", "-shm"} {
		os.Remove(k.path + end)
	}
	if err := os.Rename(fresh, k.path); err != nil {
		return err
	}
	k.db, err = open(k.path)
	return err
}

// checkpoint empties the log; it fails if somebody keeps a read transaction open.
func (k *keeper) checkpoint() error {
	var busy, log, moved int
	if err := k.db.QueryRow("PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &log, &moved); err != nil {
		return err
	}
	if busy != 0 {
		return errors.New("a reader keeps the log from being emptied")
	}
	return nil
}

// newLog ends the log and begins another, in a new file.
func (k *keeper) newLog() error {
	if err := k.checkpoint(); err != nil {
		return err
	}
	k.db.Close()
	for _, end := range []string{"-wal", "-shm"} {
		if err := os.Remove(k.path + end); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	var err error
	k.db, err = open(k.path)
	return err
}

// damage makes the first page of table message unreadable.
func (k *keeper) damage() error {
	var page, size int64
	if err := k.db.QueryRow("SELECT rootpage FROM sqlite_master WHERE name = 'message'").Scan(&page); err != nil {
		return err
	}
	if err := k.db.QueryRow("PRAGMA page_size").Scan(&size); err != nil {
		return err
	}
	if err := k.checkpoint(); err != nil {
		return err
	}
	k.db.Close()
	data, err := os.ReadFile(k.path)
	if err != nil {
		return err
	}
	k.at = (page - 1) * size
	k.saved = data[k.at : k.at+size]
	return k.overwrite(make([]byte, size))
}

func (k *keeper) mend() error {
	k.db.Close()
	return k.overwrite(k.saved)
}

// overwrite writes over the page, and commits something, so that no reader believes its cache.
func (k *keeper) overwrite(page []byte) error {
	f, err := os.OpenFile(k.path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	if _, err := f.WriteAt(page, k.at); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if k.db, err = open(k.path); err != nil {
		return err
	}
	_, err = k.db.Exec("INSERT INTO kvtable (key, value) VALUES (?, '')", fmt.Sprint(time.Now().UnixNano()))
	return err
}

// lock keeps everybody from opening the database for a time, by the locks of SQLite in the file.
func (k *keeper) lock(t time.Duration) error {
	k.db.Close()
	f, err := os.OpenFile(k.path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	const first, count = 0x40000000, 512
	region := unix.Flock_t{Type: unix.F_WRLCK, Start: first, Len: count}
	if err := unix.FcntlFlock(f.Fd(), unix.F_SETLKW, &region); err != nil {
		return err
	}
	time.AfterFunc(t, func() {
		f.Close()
		k.mu.Lock()
		defer k.mu.Unlock()
		if k.db, err = open(k.path); err != nil {
			fmt.Fprintln(os.Stderr, "messagesim:", err)
		}
	})
	return nil
}
