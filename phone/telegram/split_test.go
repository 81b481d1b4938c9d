package telegram_test

import (
	"fmt"
	"strings"
	"testing"

	"netsky/internal/testworld"
)

// A text that the phone has cut and an album are told apart from what stands alone, also where they
// come by several calls.
func TestSplits(t *testing.T) {
	t.Parallel()
	api := newAPI(t)
	tr := bot(t, api.URL)
	cursor := begin(t, tr)
	n := 0
	push := func(date int, from int, rest string) {
		n++
		api.push(fmt.Sprintf(`"message":{"message_id":%d,"from":{"id":%d},"chat":{"id":%[2]d,"type":"private"},"date":%d,%s}`, n, from, date, rest))
	}
	long := `"text":"` + strings.Repeat("word ", 800) + `"`
	photo := func(album string) string { return `"media_group_id":"` + album + `","photo":[{"file_id":"F"}]` }
	var got []string
	take := func() {
		t.Helper()
		b := next(t, tr, cursor)
		cursor = b.Cursor
		for _, m := range b.Messages {
			after := strings.TrimPrefix(m.After, "123456:"+m.Handle+":")
			got = append(got, fmt.Sprint(strings.TrimPrefix(m.GUID, "123456:"+m.Handle+":"), " ", after, " ", m.More))
		}
	}
	push(100, 42, long)
	push(101, 42, long)
	push(101, 43, `"text":"another's"`)
	take()
	push(102, 42, `"text":"the end"`)
	push(102, 42, `"text":"alone"`)
	push(110, 42, long)
	push(113, 42, `"text":"later"`)
	push(120, 42, `"caption":"look",`+photo("7"))
	push(120, 42, photo("7"))
	push(120, 42, photo("8"))
	take()
	push(125, 42, photo("8"))
	push(125, 42, `"text":"and now"`)
	take()
	want := []string{"1  true", "2 1 true", "3  false", "4 2 false", "5  false", "6  true", "7  false", "8  true", "9 8 true", "10  true", "11 10 true", "12  false"}
	testworld.EqualList(t, got, want)
}
