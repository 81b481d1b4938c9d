package appserver

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"netsky/internal/proc"
)

const (
	maxLine   = 64 << 20 // of one message; Codex takes inputs of 1 MiB and shows what tools returned
	maxStderr = 4 << 10  // of its last output, for an error
	// endTime is how long a server may take to exit after the end of its input, and
	// again after SIGTERM. It has been measured to need 30 ms.
	endTime = 2 * time.Second
)

var errLine = fmt.Errorf("a message of over %d MiB", maxLine>>20)

// A process is a child server, spoken to in lines over its standard input and output.
// It has its own process group, so that netsky handles a person's Ctrl-C.
type process struct {
	cmd   *exec.Cmd
	self  proc.Process // zero if it ended at once
	in    *os.File
	out   *os.File
	lines *bufio.Reader
	last  tail
	gone  chan struct{} // closed when it has exited
	state string        // how it exited; set before gone is closed

	once sync.Once
}

// start starts a program. It does not end with ctx; close ends it.
func start(ctx context.Context, program string, args, env []string, dir string) (*process, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	childIn, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	out, childOut, err := os.Pipe()
	if err != nil {
		childIn.Close()
		in.Close()
		return nil, err
	}
	p := &process{in: in, out: out, lines: bufio.NewReaderSize(out, 64<<10), gone: make(chan struct{})}
	p.cmd = exec.Command(program, args...)
	p.cmd.Env, p.cmd.Dir = env, dir
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = childIn, childOut, &p.last
	p.cmd.SysProcAttr = childAttr()
	p.cmd.WaitDelay = time.Second // something it started may hold its stderr
	err = p.cmd.Start()
	childIn.Close()
	childOut.Close()
	if err != nil {
		in.Close()
		out.Close()
		return nil, fmt.Errorf("start codex: %w", err)
	}
	p.self, _ = proc.Find(p.cmd.Process.Pid)
	go func() {
		defer close(p.gone)
		p.cmd.Wait()
		p.state = p.cmd.ProcessState.String()
		// Its last output is still to be read; something it started may hold the other
		// end forever.
		out.SetReadDeadline(time.Now().Add(time.Second))
	}()
	return p, nil
}

func (p *process) read() ([]byte, error) {
	var long []byte
	for {
		part, err := p.lines.ReadSlice('\n')
		if err == nil && long == nil {
			return part, nil
		}
		if len(long)+len(part) > maxLine {
			return nil, errLine
		}
		long = append(long, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return long, err
		}
	}
}

func (p *process) write(line []byte) error {
	_, err := p.in.Write(append(line, '\n'))
	return err
}

// why waits for the exit, which follows the end of its output in a moment.
func (p *process) why() string {
	select {
	case <-p.gone:
	case <-time.After(endTime):
		return ""
	}
	if words := p.last.String(); words != "" {
		return p.state + ": " + words
	}
	return p.state
}

// close ends the program: by closing its input, then as end does.
func (p *process) close() error {
	p.once.Do(func() {
		p.in.Close()
		select {
		case <-p.gone:
		case <-time.After(endTime):
			p.end()
		}
		<-p.gone
		p.out.Close()
	})
	return nil
}

// end ends the program and its process group: by SIGTERM, then by SIGKILL.
func (p *process) end() {
	group, err := p.self.Group()
	if err != nil {
		group = []proc.Process{p.self}
	}
	proc.End(context.Background(), group, endTime)
	p.cmd.Process.Kill() // no effect after its exit
}

// A tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	text []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	if over := len(t.text) - maxStderr; over > 0 {
		t.text = append(t.text[:0], t.text[over:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(strings.ToValidUTF8(string(t.text), "\ufffd"))
}
