package server

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"time"

	"netsky/home"
	"netsky/internal/advice"
)

// certified is how long a server's certificate counts. No authority vouches for it: a host
// has pinned it when it joined.
const certified = 50 * 365 * 24 * time.Hour

// certificate returns the server's key and certificate, which it makes the first time, and
// the fingerprint.
func certificate(h home.Dir) (c tls.Certificate, fingerprint string, err error) {
	data, err := h.ReadFile(tlsFile, maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		if data, err = makeCertificate(); err == nil {
			err = h.WriteFile(tlsFile, data, true)
		}
	}
	if err == nil {
		c, err = tls.X509KeyPair(data, data)
	}
	if err != nil {
		return c, "", advice.With(fmt.Errorf("%s: %w", tlsFile, err), "put back a copy of it: the hosts of the team know the server by it")
	}
	sum := sha256.Sum256(c.Certificate[0])
	return c, hex.EncodeToString(sum[:]), nil
}

func makeCertificate() ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	c := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "netsky"}, DNSNames: []string{"netsky"},
		NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: time.Now().Add(certified), // clocks differ
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		return nil, err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return append(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}),
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})...), nil
}
