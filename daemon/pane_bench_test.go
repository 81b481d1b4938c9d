package daemon_test

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"netsky/agent"
	"netsky/daemon"
	"netsky/dashboard/access"
	"netsky/internal/proc"
	"netsky/internal/testworld"
)

// printer is a program that changes its pane ten times a second: "lines" prints a
// line, so that every row moves, "rows" draws three rows of a full screen anew and
// prints a line once a second. What it prints begins with the time.
const printer = `package main

import (
	"fmt"
	"os"
	"time"
)

func main() {
	const text = "\x1b[38;5;39mfunc\x1b[39m words of a line that an agent wrote, \x1b[1mand more\x1b[0m"
	for range 60 {
		fmt.Println(text)
	}
	for n := range time.Tick(100 * time.Millisecond) {
		at := fmt.Sprintf("at %d ", time.Now().UnixNano())
		if os.Args[1] == "lines" || n.UnixMilli()/100%10 == 0 {
			fmt.Print(at + text + "\n")
			continue
		}
		fmt.Print("\x1b7\x1b[20;1H\x1b[K" + at + text + "\x1b[30;1H\x1b[K" + text + at[16:] + "\x1b[40;1H\x1b[K" + at[16:] + text + "\x1b8")
	}
}
`

// mustPrinter builds it.
func mustPrinter(b *testing.B) string {
	b.Helper()
	dir := b.TempDir()
	file, out := filepath.Join(dir, "printer.go"), filepath.Join(dir, "printer")
	testworld.Must(b, os.WriteFile(file, []byte(printer), 0o600))
	if text, err := exec.Command("go", "build", "-o", out, file).CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, text)
	}
	return out
}

// A tab is a browser that looks at panes. It keeps how old each change was when it
// came.
type tab struct {
	conn *websocket.Conn
	last map[string]int64 // by pane: the newest change that has come

	mu    sync.Mutex // guards what follows
	took  []time.Duration
	bytes int
}

// web is where the daemon serves the dashboard, and what a script must show it.
func (w *world) web() (base string, header http.Header) {
	w.Helper()
	testworld.WaitOr(w, func() bool {
		data, err := w.home.ReadFile(daemon.URLFile, 4096)
		base = strings.TrimSpace(string(data))
		return err == nil
	}, func() string { return "no dashboard\n" + w.log() })
	token := testworld.Got(access.Token(w.home))(w)
	return base, http.Header{"Authorization": {"Bearer " + token}}
}

func (w *world) mustTab(watch string) *tab {
	w.Helper()
	base, header := w.web()
	url := "ws" + strings.TrimPrefix(base, "http") + "/ws?watch=" + watch
	d := websocket.Dialer{ReadBufferSize: 64 << 10}
	c, _, err := d.DialContext(w.ctx, url, header)
	testworld.Must(w, err)
	w.Cleanup(func() { c.Close() })
	return &tab{conn: c, last: make(map[string]int64)}
}

// read reads until the connection ends.
func (t *tab) read() {
	for {
		_, data, err := t.conn.ReadMessage()
		if err != nil {
			return
		}
		t.mu.Lock()
		t.bytes += len(data)
		t.mu.Unlock()
		t.note(data, time.Now())
	}
}

func (t *tab) note(data []byte, now time.Time) {
	_, rest, _ := bytes.Cut(data, []byte(`"key":"pane:`))
	name, rest, ok := bytes.Cut(rest, []byte(`"`))
	if !ok {
		return
	}
	pane := string(name)
	before := t.last[pane]
	newest := before
	for {
		if _, rest, ok = bytes.Cut(rest, []byte(`"at `)); !ok {
			break
		}
		end := max(bytes.IndexByte(rest, ' '), 0)
		at, err := strconv.ParseInt(string(rest[:end]), 10, 64)
		if err != nil || at <= before {
			continue
		}
		newest = max(newest, at)
		if before > 0 { // not what was there already
			t.mu.Lock()
			t.took = append(t.took, now.Sub(time.Unix(0, at)))
			t.mu.Unlock()
		}
	}
	t.last[pane] = newest
}

// forget begins anew and returns what there was.
func (t *tab) forget() (took []time.Duration, bytes int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	took, bytes = t.took, t.bytes
	t.took, t.bytes = nil, 0
	return took, bytes
}

// BenchmarkPane is the way from what a program prints in its pane to a browser's
// websocket: 50 panes that change ten times a second, 10 browsers of which one
// never reads, the real daemon; and what that costs the daemon, of one core.
func BenchmarkPane(b *testing.B) {
	program := mustPrinter(b)
	for _, how := range []string{"rows", "lines"} {
		for _, panes := range []int{1, 5, 50} { // that each browser looks at
			b.Run(fmt.Sprintf("%s/%d", how, panes), func(b *testing.B) { watches(b, program+" "+how, panes) })
		}
	}
}

func watches(b *testing.B, program string, panes int) {
	w := newWorld(b)
	p := w.start()
	var ids []agent.ID
	for i := range 50 {
		ids = append(ids, agent.Clone(i+1))
	}
	w.up(sh(ready+"exec "+program), ids...)
	pid, err := w.tmux("", "display-message", "-p", "#{pid}") // by no control client, of which tmux dies if the hub is made meanwhile
	testworld.Must(b, err, "%v", pid)
	number := testworld.Got(strconv.Atoi(pid))(b)
	var tabs []*tab
	var readers sync.WaitGroup
	b.Cleanup(readers.Wait) // when all are closed
	for i := range 10 {
		var names []string
		for n := range panes {
			names = append(names, string(ids[(i*7+n)%50]))
		}
		t := w.mustTab(strings.Join(names, ","))
		if i == 0 {
			continue // frozen
		}
		tabs = append(tabs, t)
		readers.Go(t.read)
	}
	<-time.After(3 * time.Second) // what the start has caused is over
	const span = 8 * time.Second
	for b.Loop() {
		for _, t := range tabs {
			t.forget()
		}
		ours, theirs := w.cpu(p), w.cpu(proc.Process{PID: number})
		<-time.After(span)
		b.ReportMetric(float64(w.cpu(p)-ours)/float64(span)*100, "cpu-%")
		b.ReportMetric(float64(w.cpu(proc.Process{PID: number})-theirs)/float64(span)*100, "tmux-cpu-%")
		var took []time.Duration
		bytes := 0
		for _, t := range tabs {
			one, n := t.forget()
			took = append(took, one...)
			bytes += n
		}
		if len(took) == 0 {
			b.Fatalf("no change came in %v\n%s", span, w.log())
		}
		slices.Sort(took)
		b.ReportMetric(float64(took[len(took)/2].Microseconds())/1e3, "p50-ms")
		b.ReportMetric(float64(took[len(took)*95/100].Microseconds())/1e3, "p95-ms")
		b.ReportMetric(float64(len(took))/span.Seconds(), "changes/s")
		b.ReportMetric(float64(bytes)/float64(len(tabs))/span.Seconds()/1e3, "kB/s/browser")
	}
	b.ReportMetric(w.memory(p, "VmRSS"), "rss-MB")
	b.ReportMetric(0, "ns/op")
}
