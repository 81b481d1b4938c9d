package chatdb_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"netsky/imessage/chatdb"
	"netsky/internal/testworld"
)

// check fails unless the blob gives a clean error, or a text that stands in it whole: behind its
// length, in any of the forms, and in front of the end of an object.
func check(tb testing.TB, blob []byte) (ok bool) {
	tb.Helper()
	text, err := chatdb.Text(blob)
	if err != nil {
		if text != "" || !errors.Is(err, chatdb.ErrMalformed) {
			tb.Fatalf("Text(%x) = %q, %v", blob, text, err)
		}
		return false
	}
	if !utf8.ValidString(text) || len(text) > chatdb.MaxText {
		tb.Fatalf("Text(%x) = %q", blob, text)
	}
	if bytes.HasPrefix(blob, []byte("\xff\xfe")) {
		return true
	}
	n := len(text)
	forms := [][]byte{
		{byte(n)},
		binary.LittleEndian.AppendUint16([]byte{0x81}, uint16(n)),
		binary.LittleEndian.AppendUint32([]byte{0x82}, uint32(n)),
	}
	if n > 255 || n >= 0x80 && n <= 0x91 {
		forms = forms[1:]
	}
	if n > 65535 {
		forms = forms[1:]
	}
	for _, form := range forms {
		if bytes.Contains(blob, slices.Concat(form, []byte(text), []byte{0x86})) {
			return true
		}
	}
	tb.Fatalf("Text(%x) = %q, which has not the length that the blob says", blob, text)
	return false
}

func FuzzText(f *testing.F) {
	for _, s := range samples() {
		f.Add(s.blob)
	}
	f.Add(with(typed("{_NSRect={_NSPoint=ff}{_NSSize=ff}}", "\x01\x02\x03\x04")))
	f.Fuzz(func(t *testing.T, blob []byte) { check(t, blob) })
}

// mutate changes a blob in one to three places, in the ways in which files are damaged.
func mutate(r *rand.Rand, blob, other []byte) []byte {
	blob = slices.Clone(blob)
	for range 1 + r.IntN(3) {
		if len(blob) == 0 {
			return blob
		}
		i := r.IntN(len(blob))
		j := min(len(blob), i+1+r.IntN(8))
		switch r.IntN(8) {
		case 0:
			blob[i] ^= 1 << r.IntN(8)
		case 1:
			blob[i] = byte(r.Uint32())
		case 2:
			blob[i] = byte(0x80 + r.IntN(0x20)) // a tag or an early reference
		case 3:
			blob = blob[:i]
		case 4:
			blob = slices.Delete(blob, i, j)
		case 5:
			blob = slices.Insert(blob, i, blob[i:j]...)
		case 6:
			k := r.IntN(len(other))
			blob = slices.Insert(blob, i, other[k:min(len(other), k+r.IntN(40))]...)
		case 7:
			copy(blob[i:], other[r.IntN(len(other)):min(len(other), len(other))])
		}
	}
	return blob
}

// TestMutations reads damaged archives: 50,000, or as many as NETSKY_MUTATIONS says.
func TestMutations(t *testing.T) {
	t.Parallel()
	count, seed := 50_000, uint64(time.Now().UnixNano())
	if s := os.Getenv("NETSKY_MUTATIONS"); s != "" {
		n := testworld.Got(strconv.Atoi(s))(t)
		count = n
	}
	r := rand.New(rand.NewPCG(seed, 0))
	all := samples()
	read := 0
	for range count {
		blob := mutate(r, all[r.IntN(len(all))].blob, all[r.IntN(len(all))].blob)
		if check(t, blob) {
			read++
		}
	}
	t.Logf("%d of %d mutated blobs have a text; seed %d", read, count, seed)
	if read == 0 || read > count/2 {
		t.Errorf("%d of %d mutated blobs have a text", read, count)
	}
}

// BenchmarkText reads messages of several kinds, and a long one.
func BenchmarkText(b *testing.B) {
	all := bodies()
	text := strings.Repeat("A long message, as agents write them: ünïcode too. ", 200)
	for name, blob := range map[string][]byte{
		"short": all["plain"].Encode(),
		"link":  all["link"].Encode(),
		"runs":  all["many-runs"].Encode(),
		"10kB":  body{Text: text}.Encode(),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(blob)))
			b.ReportAllocs()
			for b.Loop() {
				testworld.Got(chatdb.Text(blob))(b)
			}
		})
	}
}
