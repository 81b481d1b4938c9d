package bridge_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"netsky/agent"
	"netsky/attention/approve"
	"netsky/bus"
	"netsky/home"
	"netsky/internal/testworld"
)

// askerHome makes the test binary a process that asks for permission, as agents' hooks and
// sessions do, in that home.
const askerHome = "PHONE_TEST_ASKER"

func TestMain(m *testing.M) {
	if root := os.Getenv(askerHome); root != "" {
		if err := askAll(root); err != nil {
			fmt.Fprintln(os.Stderr, "asker:", err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// An effect is what an asker does with the answer to a request: a file, made once.
type effect struct {
	Allow bool
	By    string
	MS    int64
}

func effectFile(root string, i int) string {
	return filepath.Join(filepath.Dir(root), fmt.Sprintf("effect-%03d", i))
}

func (e effect) happen(root string, i int) error {
	data, err := json.Marshal(e)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(effectFile(root, i), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		f, err = os.Create(effectFile(root, i) + "-twice")
	}
	if err != nil {
		return err
	}
	if _, err := f.Write(data); err != nil {
		return err
	}
	return f.Close()
}

// askAll reads "ask N" and "withdraw N" from standard input.
func askAll(root string) error {
	h, err := home.At(root)
	if err != nil {
		return err
	}
	d := approve.Desk{Home: h, Bus: bus.New(h, bus.Options{}), Warn: func(err error) { fmt.Fprintln(os.Stderr, "asker:", err) }}
	stops := map[int]context.CancelFunc{}
	var all sync.WaitGroup
	defer all.Wait()
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		word, i := "", 0
		if _, err := fmt.Sscan(in.Text(), &word, &i); err != nil {
			return err
		}
		if word == "withdraw" {
			stops[i]()
			continue
		}
		ctx, stop := context.WithCancel(context.Background())
		stops[i] = stop
		all.Go(func() {
			if err := ask(ctx, d, root, i); err != nil {
				fmt.Fprintln(os.Stderr, "asker:", err)
			}
		})
	}
	for _, stop := range stops {
		stop()
	}
	return nil
}

// ask asks once: as a Codex session does, or as Claude Code's hook does, which passes the
// answer on before it settles the request.
func ask(ctx context.Context, d approve.Desk, root string, i int) error {
	q := agent.Approval{Agent: "agent1", Start: fmt.Sprint("s-", i), Tool: "Bash", Text: command(i)}
	if i%2 == 0 {
		if a, settled, ok := d.Put(ctx, q); ok {
			defer settled(approve.Verdict(a.Allow))
			return effect{a.Allow, a.By, time.Now().UnixMilli()}.happen(root, i)
		}
		return nil
	}
	q, err := d.Ask(ctx, q)
	if err != nil {
		return err
	}
	defer home.Approvals(d.Home).Settle(q.Code)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			d.Settle(ctx, q, agent.Outcome{How: approve.Elsewhere})
			return nil
		case <-tick.C:
		}
		if a, ok, _ := home.Approvals(d.Home).Answered(q.Code); ok {
			err := effect{a.Allow, a.By, time.Now().UnixMilli()}.happen(root, i)
			d.Settle(ctx, q, agent.Outcome{How: approve.Verdict(a.Allow), Answer: a})
			return err
		}
	}
}

func command(i int) string { return fmt.Sprintf("make target-%03d", i) }

// An asker is such a process.
type asker struct {
	t    *testing.T
	home home.Dir
	mu   sync.Mutex // guards the field below
	in   *bufio.Writer
}

func startAsker(t *testing.T, h home.Dir) *asker {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), askerHome+"="+h.Root())
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	testworld.Must(t, err)
	t.Cleanup(func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("the asker: %v", err)
		}
	})
	return &asker{t: t, home: h, in: bufio.NewWriter(in)}
}

func (a *asker) says(word string, i int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	fmt.Fprintln(a.in, word, i)
	testworld.Equal(a.t, a.in.Flush(), nil)
}

// asked returns the request, once it is there.
func (a *asker) asked(i int) (q agent.Approval, ok bool) {
	list, err := home.Approvals(a.home).List()
	if err != nil {
		return q, false
	}
	for _, q := range list {
		if q.Text == command(i) && q.Mail != "" {
			return q, true
		}
	}
	return q, false
}

// effects returns what an answer has caused, how often.
func (a *asker) effects(i int) (list []effect) {
	files, _ := filepath.Glob(effectFile(a.home.Root(), i) + "*")
	for _, f := range files {
		var e effect
		data, err := os.ReadFile(f)
		if err == nil && len(data) > 0 && json.Unmarshal(data, &e) == nil {
			list = append(list, e)
		}
	}
	return list
}

// told reports whether a surface was told that these words are how it was settled.
func told(text string, e effect) bool {
	return strings.Contains(text, approve.By(agent.Answer{Allow: e.Allow, By: e.By}))
}
