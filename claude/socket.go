// This file passes a text to a running Claude Code through its messaging socket. It
// writes nowhere but to a socket of this user's on which that very process listens, keeps
// nothing, and a crash leaves nothing: half a line is no message to Claude Code.

package claude

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"netsky/internal/proc"
)

// patience limits how long Claude Code may take over a message.
const patience = 10 * time.Second

// Closed reports that a way is closed now, as opposed to tried and failed.
type Closed struct{ Err error }

func (e Closed) Error() string { return e.Err.Error() }

func (e Closed) Unwrap() error { return e.Err }

// Refused marks the error for callers that do not know this package.
func (e Closed) Refused() bool { return true }

// Push passes a text to the session that listens on a messaging socket, as another session
// would. If pid is not 0, the listener must be that process. Claude Code does not reply:
// nil means that the bytes were accepted.
func Push(ctx context.Context, socket string, pid int, text string) error {
	if socket == "" {
		return Closed{fmt.Errorf("messaging socket: %w", os.ErrNotExist)}
	}
	message, err := pushLine(text)
	if err != nil {
		return err
	}
	if err := ownSocket(socket); err != nil {
		return Closed{err}
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "unix", socket)
	if err != nil {
		if ctx.Err() == nil {
			err = Closed{err}
		}
		return fmt.Errorf("messaging socket: %w", err)
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if err := ownPeer(conn.(*net.UnixConn), pid); err != nil {
		return Closed{fmt.Errorf("%s: %w", socket, err)}
	}
	return hand(ctx, conn.(*net.UnixConn), message)
}

// hand writes the message and waits until the other end has read all of it.
func hand(ctx context.Context, conn *net.UnixConn, message []byte) error {
	_, err := conn.Write(message)
	if err == nil {
		err = conn.CloseWrite()
	}
	if err == nil {
		_, err = io.Copy(io.Discard, io.LimitReader(conn, 64<<10))
	}
	if err != nil {
		return fmt.Errorf("messaging socket: %w", errors.Join(context.Cause(ctx), err))
	}
	return nil
}

// pushLine returns the one line of JSON that Claude Code accepts.
func pushLine(text string) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(map[string]any{
		"type":    "user",
		"message": map[string]string{"role": "user", "content": text},
	})
	return b.Bytes(), err
}

// ownSocket refuses a socket that another user could have put there to receive our
// messages.
func ownSocket(path string) error {
	for _, name := range []string{path, filepath.Dir(path)} {
		var st unix.Stat_t
		if err := unix.Lstat(name, &st); err != nil {
			return &os.PathError{Op: "stat", Path: name, Err: err}
		}
		socket := st.Mode&unix.S_IFMT == unix.S_IFSOCK
		switch {
		case name == path && !socket:
			return fmt.Errorf("%s: not a socket", path)
		case int(st.Uid) != os.Getuid():
			return fmt.Errorf("%s: belongs to another user", name)
		case name != path && st.Mode&0o022 != 0:
			return fmt.Errorf("%s: writable by other users", name)
		}
	}
	return nil
}

// ownPeer checks which process listens.
func ownPeer(conn *net.UnixConn, pid int) error {
	got, err := proc.Peer(conn)
	if err != nil {
		return err
	}
	if pid != 0 && got != pid {
		return fmt.Errorf("process %d is listening, not %d", got, pid)
	}
	return nil
}
