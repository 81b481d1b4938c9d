package team

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"netsky/home"
)

// KeyFile holds this host's private key.
const KeyFile = "state/link/key"

// A Key is a host's own nkey: it signs in at the server with it, and signs what it sends.
type Key struct {
	pair   nkeys.KeyPair
	public string
}

// LoadKey reads the key of a home; the error matches fs.ErrNotExist if it has none.
func LoadKey(h home.Dir) (Key, error) {
	data, err := h.ReadFile(KeyFile, 1<<10)
	if err != nil {
		return Key{}, fmt.Errorf("the key of this host: %w", err)
	}
	return parseKey(data)
}

// MakeKey returns the key of a home, which it makes first if there is none. It survives a
// power loss once it is returned.
func MakeKey(h home.Dir) (Key, error) {
	k, err := LoadKey(h)
	if !errors.Is(err, fs.ErrNotExist) {
		return k, err
	}
	pair, err := nkeys.CreateUser()
	if err != nil {
		return Key{}, err
	}
	seed, err := pair.Seed()
	if err != nil {
		return Key{}, err
	}
	if err := h.WriteFile(KeyFile, append(seed, '\n'), true); err != nil {
		return Key{}, err
	}
	return LoadKey(h)
}

func parseKey(data []byte) (Key, error) {
	pair, err := nkeys.FromSeed(bytes.TrimSpace(data))
	if err != nil {
		return Key{}, fmt.Errorf("the key of this host in %s: %w", KeyFile, err)
	}
	public, err := pair.PublicKey()
	if err != nil {
		return Key{}, fmt.Errorf("the key of this host in %s: %w", KeyFile, err)
	}
	return Key{pair, public}, nil
}

// Public returns the public key, U and 55 letters and digits: what others know the host by.
func (k Key) Public() string { return k.public }

// SignIn is the option of a connection that signs in with the key.
func (k Key) SignIn() nats.Option { return nats.Nkey(k.public, k.signNonce) }

// maxNonce is more than a server's challenge has.
const maxNonce = 64

// signNonce signs a server's challenge, if it is one: a server must not get a message or a
// team document signed by calling it that. All that hosts sign begins with a word and a space.
func (k Key) signNonce(nonce []byte) ([]byte, error) {
	if len(nonce) > maxNonce || bytes.ContainsFunc(nonce, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, errors.New("the server's challenge is none that a NATS server makes, and was not signed")
	}
	return k.Sign(nonce)
}

// Sign signs data with ed25519. What is signed begins with what it is, a word and a space.
func (k Key) Sign(data []byte) ([]byte, error) { return k.pair.Sign(data) }

// Signed reports whether a signature of data was made with the private key of a public one.
func Signed(public string, data, signature []byte) bool {
	if !isKey(public) {
		return false
	}
	k, err := nkeys.FromPublicKey(public)
	return err == nil && k.Verify(data, signature) == nil
}

// isKey reports whether a text is a host's public key, in its one spelling: so it is safe as
// a file's name. nkeys also takes some with line breaks, and of other lengths.
func isKey(public string) bool {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
	return len(public) == 56 && strings.Trim(public, letters) == "" && nkeys.IsValidPublicUserKey(public)
}
