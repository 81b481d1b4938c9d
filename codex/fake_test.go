package codex_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"netsky/codex/appserver"
	"netsky/internal/testworld"
)

// fakeCodex is an app-server that misbehaves in one way, for what the real one
// cannot be made to do. It is this binary, started with FAKE_CODEX.
func fakeCodex(way string) int {
	if way == "hangs once" {
		return hangOnce()
	}
	f := &fake{way: way, in: bufio.NewReader(os.Stdin)}
	if way == "stubborn" {
		signal.Ignore(syscall.SIGTERM)
	}
	for {
		line, err := f.in.ReadBytes('\n')
		if err != nil {
			if way == "stubborn" {
				select {}
			}
			return 0
		}
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct{ ClientUserMessageID string }
		}
		if err := json.Unmarshal(line, &m); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 2
		}
		if m.Method != "" && m.ID != nil {
			if status := f.answer(string(m.ID), m.Method, m.Params.ClientUserMessageID); status >= 0 {
				return status
			}
		}
	}
}

// hangOnce is a listening app-server. The first process does not answer when it is to open
// a thread. Without a network it can't look up its account.
func hangOnce() int {
	if os.Args[1] == "--version" {
		fmt.Println("codex-cli 0.169.0")
		return 0
	}
	mark, err := os.OpenFile(os.Getenv("FAKE_MARK"), os.O_CREATE|os.O_EXCL, 0o600)
	hangs := err == nil
	mark.Close()
	l, err := net.Listen("unix", strings.TrimPrefix(os.Args[3], "unix://")) // app-server --listen ADDRESS
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		var up websocket.Upgrader
		conn, err := up.Upgrade(w, q, nil)
		if err != nil {
			return
		}
		defer conn.Close()
		for {
			var m struct {
				ID     json.RawMessage
				Method string
			}
			if conn.ReadJSON(&m) != nil {
				return
			}
			answer := `"result":{}`
			switch {
			case m.ID == nil || m.Method == "thread/start" && hangs:
				continue
			case m.Method == "initialize":
				answer = `"result":{"userAgent":"netsky/0.169.0 (x)"}`
			case m.Method == "thread/start":
				answer = `"result":{"thread":{"id":"t","status":{"type":"idle"}},"model":"m"}`
			case m.Method == "account/read":
				answer = `"error":{"code":-32603,"message":"workspace routing discovery failed"}`
			}
			conn.WriteMessage(websocket.TextMessage, fmt.Appendf(nil, `{"id":%s,%s}`, m.ID, answer))
		}
	}))
	return 0
}

type fake struct {
	way string
	in  *bufio.Reader
}

func (f *fake) answer(id, method, input string) int {
	switch f.way {
	case "deaf":
		return -1
	case "garbage":
		fmt.Printf("no json\n\n[1,2]\n\"x\"\n{\"id\":%s,\"method\":\"what/is/this\",\"params\":{}}\n{\"id\":\"%s\",\"result\":{}}\n{\"id\":99999,\"result\":{}}\n", id, id)
		fmt.Printf("{\"method\":\"warning\",\"params\":{\"x\":\"%s\"}}\n", strings.Repeat("y", 5<<20))
		os.Stdout.Write([]byte("\xff\xfe\x00\n"))
	}
	switch method {
	case "initialize":
		fmt.Printf(`{"id":%s,"result":{"userAgent":"netsky/0.169.0 (x)"}}`+"\n", id)
	case "thread/start", "thread/resume":
		if f.way == "ends" {
			fmt.Fprintln(os.Stderr, strings.Repeat("long ago ", 2000)+"its last words")
			return 3
		}
		fmt.Printf(`{"id":%s,"result":{"thread":{"id":"t","status":{"type":"idle"}},"model":"m"}}`+"\n", id)
	case "thread/turns/list":
		fmt.Printf(`{"id":%s,"result":{"data":[]}}`+"\n", id)
	case "turn/start":
		return f.turn(id, input)
	}
	return -1
}

func (f *fake) turn(id, input string) int {
	response := fmt.Sprintf(`{"id":%s,"result":{"turn":{"id":"u"}}}`+"\n", id)
	text := "fine"
	if f.way != "early" {
		fmt.Print(response)
	}
	switch f.way {
	case "huge":
		chunk := strings.Repeat("x", 1<<20)
		for range 70 {
			fmt.Print(chunk)
		}
		return 0
	case "asks":
		fmt.Println(`{"id":7,"method":"something/new","params":{"threadId":"t"}}`)
		answer, _ := f.in.ReadString('\n')
		text = answer
	case "untold": // does not say that it took the text
		fmt.Printf(`{"method":"turn/completed","params":{"threadId":"t","turn":{"id":"u","status":"failed","error":{"message":"no"}}}}` + "\n")
		return -1
	}
	said, _ := json.Marshal(text)
	fmt.Printf(`{"method":"turn/started","params":{"threadId":"t","turn":{"id":"u"}}}` + "\n")
	fmt.Printf(`{"method":"item/completed","params":{"threadId":"t","turnId":"u","item":{"type":"userMessage","clientId":"%s"}}}`+"\n", input)
	fmt.Printf(`{"method":"turn/completed","params":{"threadId":"t","turn":{"id":"u","status":"completed","items":[{"type":"agentMessage","text":%s}]}}}`+"\n", said)
	if f.way == "early" {
		fmt.Print(response)
	}
	return -1
}

// fakeServer starts a fake and brings one text through it.
func fakeServer(t *testing.T, ctx context.Context, way string) (s *appserver.Server, text string, err error) {
	t.Helper()
	program := testworld.Got(os.Executable())(t)
	s, err = appserver.StartServer(ctx, appserver.ServerOptions{Program: program, Env: append(os.Environ(), "FAKE_CODEX="+way)})
	if err != nil {
		return nil, "", err
	}
	t.Cleanup(func() { s.Close() })
	thread, err := s.Open(ctx, appserver.ThreadOptions{})
	if err != nil {
		return s, "", err
	}
	turn, err := thread.Submit(ctx, "i1", "x")
	if err != nil {
		return s, "", err
	}
	res, err := turn.Wait(ctx, testworld.Patience)
	return s, res.Text, err
}

func TestServerMisbehaves(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		way, text string // the text, or
		is        error  // the error
		want      string // what it says
	}{
		{way: "well", text: "fine"},
		{way: "garbage", text: "fine"},
		{way: "early", text: "fine"},
		{way: "asks", text: `{"id":7,"error":{"code":-32601,"message":"netsky does not support something/new"}}` + "\n"},
		{way: "ends", is: appserver.ErrLost, want: "its last words"},
		{way: "huge", is: appserver.ErrLost, want: "over 64 MiB"},
		{way: "untold", want: "the turn ended before it took the text: no"},
	} {
		t.Run(tt.way, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), testworld.Patience)
			defer cancel()
			_, text, err := fakeServer(t, ctx, tt.way)
			if tt.want == "" && (err != nil || text != tt.text) {
				t.Errorf("%q, %v, want %q", text, err, tt.text)
			}
			if tt.want == "" {
				return
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) || tt.is != nil && !errors.Is(err, tt.is) {
				t.Errorf("%q, %v, want %q", text, err, tt.want)
			}
			if err != nil && len(err.Error()) > 5000 {
				t.Errorf("an error of %d bytes", len(err.Error()))
			}
		})
	}
}

func TestServerDeaf(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, _, err := fakeServer(t, ctx, "deaf"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v, want %v", err, context.DeadlineExceeded)
	}
}

// A server that does not end by itself is killed.
func TestServerStubborn(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), testworld.Patience)
	defer cancel()
	s, _, err := fakeServer(t, ctx, "stubborn")
	testworld.Must(t, err)
	testworld.Equal(t, s.Close(), nil)
	testworld.ErrorIs(t, s.Err(), appserver.ErrLost, "Err")
}
