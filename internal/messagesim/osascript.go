package messagesim

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A Script is an osascript that sends nothing. How it behaves is a list of modes, one for each
// call; the last one stays. A mode is made of steps, joined by "+":
//
//	ok               nothing else happens
//	row              a row of our own account is stored in the chat
//	failed           such a row, marked as not delivered
//	ghost            a row without a text and without a chat
//	self             the two rows of a message to oneself, the second 2 s later; self=10ms
//	-1743            the error of that number, in English; -1743=de in German. Likewise others
//	slow             one second
//	hang             it and a child of its own never end, and ignore SIGTERM
//	killed           it kills itself
//	noisy            a megabyte on standard error
//
// It stands for what is on our side of osascript, and proves nothing about Messages.
type Script struct {
	Dir string // where the program is
	Env []string
	tb  testing.TB
	at  string
}

// A Call is one run of the program.
type Call struct {
	Args   []string
	Known  bool   // the script was one of the expected ones
	Script string // its digest
	PID    int
	Child  int // what hangs with it
}

// Script makes the program. scripts are the texts that it expects on standard input.
func (s *Sim) Script(scripts ...string) *Script {
	s.tb.Helper()
	at, err := os.MkdirTemp(filepath.Dir(s.Path), "osascript")
	if err != nil {
		s.tb.Fatal(err)
	}
	self, err := os.Executable()
	if err == nil {
		err = os.Mkdir(filepath.Join(at, "bin"), 0o700)
	}
	if err == nil {
		err = os.Symlink(self, filepath.Join(at, "bin", "osascript"))
	}
	if err != nil {
		s.tb.Fatal(err)
	}
	var digests []string
	for _, text := range scripts {
		digests = append(digests, digest([]byte(text)))
	}
	o := &Script{Dir: filepath.Join(at, "bin"), at: at, tb: s.tb}
	o.Env = append(os.Environ(), "PATH="+o.Dir+":"+os.Getenv("PATH"), envDB+"="+s.Path, envDir+"="+at, envScript+"="+strings.Join(digests, ","))
	o.Mode("row")
	s.tb.Cleanup(o.end)
	return o
}

// Mode sets how the next calls behave.
func (o *Script) Mode(modes ...string) {
	o.tb.Helper()
	// What was done before counts no more.
	if err := os.WriteFile(filepath.Join(o.at, "modes"), fmt.Appendf(nil, "%d\n%s", len(o.Calls()), strings.Join(modes, "\n")), 0o600); err != nil {
		o.tb.Fatal(err)
	}
}

// Calls returns the runs so far.
func (o *Script) Calls() (list []Call) {
	o.tb.Helper()
	for n := 0; ; n++ {
		data, err := os.ReadFile(callFile(o.at, n))
		if err != nil {
			return list
		}
		var c Call
		if err := json.Unmarshal(data, &c); err != nil {
			o.tb.Fatal(err)
		}
		list = append(list, c)
	}
}

// end kills what a test has left hanging.
func (o *Script) end() {
	for _, c := range o.Calls() {
		if c.Child > 0 && Runs(c.Child) {
			syscall.Kill(c.Child, syscall.SIGKILL)
		}
	}
}

// Runs reports whether one of the program's processes still runs.
func Runs(pid int) bool {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, after, _ := strings.Cut(string(data), ") ")
	return err == nil && !strings.HasPrefix(after, "Z")
}

func digest(script []byte) string {
	sum := sha256.Sum256(script)
	return hex.EncodeToString(sum[:])
}

func callFile(dir string, n int) string { return filepath.Join(dir, fmt.Sprintf("call-%04d", n)) }

// osascript is the program.
func osascript() int {
	dir := os.Getenv(envDir)
	script, err := io.ReadAll(os.Stdin)
	if err != nil {
		return 2
	}
	c := Call{Args: os.Args[1:], Script: digest(script), PID: os.Getpid()}
	c.Known = slices.Contains(strings.Split(os.Getenv(envScript), ","), c.Script)
	n := 0
	for ; ; n++ {
		if _, err := os.Stat(callFile(dir, n)); err != nil {
			break
		}
	}
	steps := strings.Split(modeOf(dir, n), "+")
	if slices.Contains(steps, "hang") {
		c.Child = hangingChild()
	}
	// One call at a time is what is expected; a second one would not find its number free.
	data, _ := json.Marshal(c)
	temp := filepath.Join(dir, fmt.Sprintf(".call-%d", os.Getpid()))
	if os.WriteFile(temp, data, 0o600) != nil || os.Link(temp, callFile(dir, n)) != nil {
		fmt.Fprintln(os.Stderr, "two calls at the same time")
		return 2
	}
	if !c.Known {
		fmt.Fprintln(os.Stderr, "an unknown script")
		return 2
	}
	if len(c.Args) < 5 { // the count of chats
		c.Args = nil
	}
	for _, step := range steps {
		if status, done := c.step(step); done {
			return status
		}
	}
	if c.Args == nil {
		fmt.Println(3)
	}
	return 0
}

func modeOf(dir string, n int) string {
	data, _ := os.ReadFile(filepath.Join(dir, "modes"))
	first, rest, _ := strings.Cut(string(data), "\n")
	before := 0
	fmt.Sscan(first, &before)
	modes := strings.Split(rest, "\n")
	return modes[min(max(n-before, 0), len(modes)-1)]
}

// texts are what osascript prints, by number and language.
var texts = map[string]string{
	"-1743":    "Not authorized to send Apple events to Messages.",
	"-1743=de": "Es wurde keine Erlaubnis erteilt, Apple-Events an „Nachrichten“ zu senden.",
	"-1728":    "Messages got an error: Can’t get chat id.",
	"-1728=de": "„Nachrichten“ hat einen Fehler erhalten: „chat id“ kann nicht gelesen werden.",
	"-1712":    "Messages got an error: AppleEvent timed out.",
	"-1712=de": "„Nachrichten“ hat einen Fehler erhalten: Zeitüberschreitung bei AppleEvent.",
	"-600":     "Messages got an error: Application isn’t running.",
	"-600=de":  "„Nachrichten“ hat einen Fehler erhalten: Programm ist nicht geöffnet.",
}

func (c Call) step(step string) (status int, done bool) {
	name, value, _ := strings.Cut(step, "=")
	switch name {
	case "ok":
	case "row", "failed", "ghost", "self":
		if err := c.rows(name, value); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 2, true
		}
	case "slow":
		time.Sleep(time.Second)
	case "hang":
		signal.Ignore(syscall.SIGTERM)
		sit()
	case "killed":
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	case "noisy":
		os.Stderr.WriteString(strings.Repeat("a line that says (-600) nothing\n", 1<<15))
	default:
		number := strings.TrimPrefix(name, "-")
		text, ok := texts[step]
		if !ok {
			text = "Something else"
		}
		fmt.Fprintf(os.Stderr, "-:12:34: execution error: %s (-%s)\n", text, number)
		return 1, true
	}
	return 0, false
}

// rows stores what Messages would.
func (c Call) rows(kind, value string) error {
	if len(c.Args) < 5 {
		return nil
	}
	how, target, what, content := c.Args[1], c.Args[2], c.Args[3], c.Args[4]
	chat := target
	if how == "participant" {
		chat = "iMessage;-;" + target
	}
	m := Message{GUID: fmt.Sprintf("S-%d-%d", os.Getpid(), time.Now().UnixNano()), Chat: chat}
	if what == "file" {
		m.Files = []File{{GUID: "F" + m.GUID, Name: filepath.Base(content), Path: content, State: 5}}
	} else {
		m.Text = content
	}
	switch kind {
	case "failed":
		m.Columns = map[string]any{"error": 22}
	case "ghost":
		m.Text, m.Join = "", Never
	}
	if err := store(m); err != nil || kind != "self" {
		return err
	}
	wait := 2 * time.Second
	if value != "" {
		wait, _ = time.ParseDuration(value)
	}
	m.GUID, m.From, m.Join = m.GUID+"-2", target[strings.LastIndex(target, ";")+1:], wait
	data, err := json.Marshal(m)
	if err != nil {
		return err
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), envRole+"=later", "MESSAGESIM_MESSAGE="+string(data))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd.Start()
}

// later stores the second row of a pair.
func later() int {
	var m Message
	if json.Unmarshal([]byte(os.Getenv("MESSAGESIM_MESSAGE")), &m) != nil {
		return 2
	}
	time.Sleep(m.Join)
	m.Join = 0
	if store(m) != nil {
		return 2
	}
	return 0
}

func store(m Message) error {
	db, err := open(os.Getenv(envDB))
	if err != nil {
		return err
	}
	defer db.Close()
	list, join := (&Sim{}).statements(&m)
	if m.Join != Never {
		list = append(list, join)
	}
	err = (&keeper{db: db}).run(list)
	return err
}

// hangingChild starts a process that does not end.
func hangingChild() int {
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), envRole+"=sit")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if cmd.Start() != nil {
		return 0
	}
	return cmd.Process.Pid
}

// sit stays until it is killed, or ten minutes, so that no test leaves it for good.
func sit() {
	signal.Ignore(syscall.SIGTERM)
	time.Sleep(10 * time.Minute)
}
