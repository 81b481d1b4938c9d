package link_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"netsky/internal/testworld"
	"netsky/link"
	"netsky/link/team"
)

// A server with its own certificate is reached by whoever has pinned that, and by its own host.
func TestWayPinned(t *testing.T) {
	t.Parallel()
	key := testworld.Got(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	about := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"netsky"}, NotAfter: time.Now().Add(24 * time.Hour)}
	der := testworld.Got(x509.CreateCertificate(rand.Reader, about, about, key.Public(), key))(t)
	sum := sha256.Sum256(der)
	fingerprint := hex.EncodeToString(sum[:])
	s := testworld.Got(server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: -1, NoSigs: true, NoLog: true, TLSTimeout: 60,
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, MinVersion: tls.VersionTLS13},
	}))(t)
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(time.Minute) {
		t.Fatal("the server does not answer")
	}
	at, other := "tls://"+s.Addr().String(), strings.Repeat("0", 64)
	own := func(fingerprint string) link.Way {
		h := testworld.Home(t)
		testworld.Must(t, h.Save(link.ServedFile, map[string]string{"address": at, "fingerprint": fingerprint}, false))
		return link.Way{Home: h}
	}
	connect := func(w link.Way) error {
		nc, err := w.Connect(t.Context())
		if err == nil {
			nc.Close()
		}
		return err
	}
	testworld.Must(t, connect(link.Way{Server: team.Server{Address: at, Fingerprint: fingerprint}}))
	testworld.Must(t, connect(own(fingerprint)))
	testworld.Fails(t, connect(link.Way{Server: team.Server{Address: at, Fingerprint: other}}), "has another certificate")
	testworld.Fails(t, connect(own(other)), "has another certificate")
	var unvouched *tls.CertificateVerificationError
	if err := connect(link.Way{Server: team.Server{Address: at}}); !errors.As(err, &unvouched) || hex.EncodeToString(unvouched.UnverifiedCertificates[0].Raw) != hex.EncodeToString(der) {
		t.Errorf("a certificate that nobody vouches for: %v", err)
	}
}
