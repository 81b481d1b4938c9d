package tmux_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"netsky/internal/testworld"
	"netsky/tmux"
)

func itoa(n int) string { return strconv.Itoa(n) }

var odd = []string{
	"", "a", "a;", ";", `\;`, `a\`, `a\;`, "it's", `say "x"`, "$HOME", "${HOME}", `\$HOME`, "#{pid}", "#(id)", "##", "#[x]", "# comment",
	"~", "~/x", "a~", "~root", " ~", "a\nb", "a\n  b", "\n", "a\n# b", "\t", "a\rb", "\r\n", `\n`, `\\`, `\101`, `\u0041`, `\e`,
	"ü", "日本語", "👍🏽", "%end 1 2 1", "%begin", "%if 1", "%hidden x=y", "{", "}", "{ a }", "x=y", "A=b", "=x", "-t", "--", "a b", "  ",
	"\x01\x02\x1b[31m\x7f", "\xff", "a\xffb", "\xff\xfe", "\x80", "\u0085", "'\"\\$~;#{}\n'", "`id`", "$(id)", "a\\\nb", "é\xc3",
}

// bridge sends words through a server and reads back what tmux took them for.
type bridge struct {
	client *tmux.Client
	file   string
}

func newBridge(tb testing.TB) bridge {
	s := newServer(tb)
	mustStart(tb, s, idle("agent1"))
	c := testworld.Got(s.Control(tb.Context(), "agent1"))(tb)
	tb.Cleanup(func() { _ = c.Close() })
	return bridge{client: c, file: filepath.Join(tb.TempDir(), "word")}
}

// carry sends word and returns the bytes tmux had in hand. The letters around it
// are for the empty word, which a buffer can't hold.
func (b bridge) carry(tb testing.TB, word string) string {
	tb.Helper()
	_ = os.Remove(b.file)
	// Two words, of which the first is the one in question: tmux says "too many
	// arguments" if it fell apart, and the option shows what it is.
	mustDo(tb, b.client, "set-option -g @word "+tmux.Quote(word)+" ; set-environment -g WORD "+tmux.Quote(word),
		"set-buffer -b word "+tmux.Quote("<"+word+">")+" ; save-buffer -b word "+tmux.Quote(b.file))
	got := mustRead(tb, b.file)
	if n := mustDo(tb, b.client, "display-message -p '#{n:@word}'"); n != itoa(len(word)) {
		tb.Errorf("Quote(%q) = %s, which has length %s to tmux, want %d", word, tmux.Quote(word), n, len(word))
	}
	return strings.TrimSuffix(strings.TrimPrefix(got, "<"), ">")
}

// show is the same word by way of a reply to a control client.
func (b bridge) show(tb testing.TB) string {
	tb.Helper()
	got := testworld.Got(tmux.Unvis(mustDo(tb, b.client, "show-buffer -b word")))(tb)
	return strings.TrimSuffix(strings.TrimPrefix(got, "<"), ">")
}

func FuzzQuote(f *testing.F) {
	for _, word := range odd {
		f.Add(word)
	}
	b := newBridge(f)
	f.Fuzz(func(t *testing.T, word string) {
		if strings.Contains(word, "\x00") {
			testworld.Contains(t, tmux.Quote(word), "\x00", "Quote(%q) hides a NUL", word)
			return
		}
		testworld.Lacks(t, tmux.Quote(word), "\n", "Quote(%q) is more than a line", word)
		if got := b.carry(t, word); got != word {
			t.Errorf("Quote(%q) = %s, which tmux takes for %q", word, tmux.Quote(word), got)
		}
		if !utf8.ValidString(word) {
			return // a reply is made printable
		}
		if got := b.show(t); got != word {
			t.Errorf("Unvis() of %q gives %q", word, got)
		}
	})
}

func FuzzUnvis(f *testing.F) {
	for _, text := range append(odd, `\033[1m`, `\$HOME`, `\777`, `\12`, `\`, `\E\s\0`) {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := tmux.Unvis(text)
		if len(got) > len(text) {
			t.Errorf("Unvis(%q) = %q grows", text, got)
		}
		if !strings.Contains(text, `\`) && (got != text || err != nil) {
			t.Errorf("Unvis(%q) = %q, %v", text, got, err)
		}
		testworld.Equal(t, testworld.Got(tmux.Unvis(strings.ReplaceAll(text, `\`, `\\`)))(t), text, "Unvis() of doubled backslashes")
	})
}

// The same words in a file that tmux reads, many in one call.
func TestQuoteSourceFile(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	dir := t.TempDir()
	var setup []string
	for i, word := range odd {
		setup = append(setup, "set-buffer -b w "+tmux.Quote("<"+word+">")+" ; save-buffer -b w "+tmux.Quote(filepath.Join(dir, itoa(i))))
	}
	testworld.Got(s.Start(t.Context(), setup, []tmux.Session{idle("agent1")}))(t)
	for i, word := range odd {
		if got := mustRead(t, filepath.Join(dir, itoa(i))); got != "<"+word+">" {
			t.Errorf("Quote(%q) = %s, which tmux takes for %q", word, tmux.Quote(word), got)
		}
	}
}
