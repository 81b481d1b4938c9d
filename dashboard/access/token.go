package access

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"netsky/agent/home"
)

const (
	tokenFile  = home.RunDir + "/token"
	tokenBytes = 32
	minToken   = 32 // characters
)

// Token is the home's token, in the file run/token, which only its user can
// read. If there is none, one that is too short, or one that others could have
// read, it is made.
func Token(home home.Dir) (string, error) {
	data, err := home.ReadFile(tokenFile, 4096)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("dashboard: %w", err)
	}
	if t := strings.TrimSpace(string(data)); len(t) >= minToken && private(home.Path(tokenFile)) {
		return t, nil
	}
	var b [tokenBytes]byte
	rand.Read(b[:]) // never fails: crypto/rand ends the program instead
	t := hex.EncodeToString(b[:])
	if err := home.WriteFile(tokenFile, []byte(t+"\n"), false); err != nil {
		return "", fmt.Errorf("dashboard: %w", err)
	}
	return t, nil
}

func private(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode().Perm()&0o077 == 0
}

// newToken replaces the home's token.
func newToken(home home.Dir) (string, error) {
	if err := home.Remove(tokenFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("dashboard: %w", err)
	}
	return Token(home)
}
