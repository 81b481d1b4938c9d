package team_test

import (
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"netsky/internal/testworld"
	"netsky/link/team"
)

// A server gets its challenge signed, and nothing that could pass for what the host says.
func TestSignIn(t *testing.T) {
	k := testworld.Got(team.MakeKey(testworld.Home(t)))(t)
	var o nats.Options
	testworld.Must(t, k.SignIn()(&o))
	testworld.Equal(t, o.Nkey, k.Public())
	const nonce = "uTm1zGQdiqwNVrM"
	sig := testworld.Got(o.SignatureCB([]byte(nonce)))(t)
	testworld.Equal(t, team.Signed(k.Public(), []byte(nonce), sig), true, "the challenge's signature")
	for _, bad := range []string{"netsky team 1\n{}", "netsky link\x00", "a\x00b", strings.Repeat("x", 65)} {
		testworld.Fails(t, testworld.Err(o.SignatureCB([]byte(bad))), "was not signed", bad)
	}
}
