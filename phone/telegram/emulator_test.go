//go:build live

package telegram_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"netsky/internal/testworld"
	"netsky/phone/chat"
)

// starter starts the emulator on a port that is free and prints its address. It ends with
// its input.
const starter = `
const TelegramServer = require(process.argv[1]);
const server = new TelegramServer({ host: '127.0.0.1' });
server.config.port = 0;
server.start().then(() => console.log('http://127.0.0.1:' + server.server.address().port));
process.stdin.resume();
process.stdin.on('end', () => process.exit(0));
`

// emulator starts telegram-test-api, a Bot API server that we did not write:
// NETSKY_TEST_TELEGRAM names its directory. It shows whether the shapes of our requests and
// of what we read are also somebody else's understanding of the API. It knows no offset
// (an update is given out once), no waiting, no files, no reactions, and no wrong token.
func emulator(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("NETSKY_TEST_TELEGRAM")
	if dir == "" {
		if os.Getenv("CI") != "" {
			t.Fatal("NETSKY_TEST_TELEGRAM is not set; scripts/test installs telegram-test-api and sets it")
		}
		t.Skip("NETSKY_TEST_TELEGRAM is not set: nothing is compared with a server that is not ours; scripts/test does")
	}
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, "node", "-e", starter, dir)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	testworld.Must(t, err)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	testworld.Must(t, err)
	t.Cleanup(func() {
		in.Close()
		cancel()
		cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	testworld.Must(t, err, "the emulator does not start")
	return strings.TrimSpace(line)
}

// asPhone does what the owner's phone does, by the emulator's other side.
func asPhone(t *testing.T, api, method string, args map[string]any) []map[string]any {
	t.Helper()
	body := testworld.Got(json.Marshal(args))(t)
	r := testworld.Got(http.Post(api+"/"+method, "application/json", bytes.NewReader(body)))(t)
	defer r.Body.Close()
	var answer struct {
		OK     bool
		Result []map[string]any
	}
	if err := json.NewDecoder(r.Body).Decode(&answer); err != nil || !answer.OK {
		t.Fatalf("%s: %v %+v", method, err, answer)
	}
	return answer.Result
}

func TestEmulator(t *testing.T) {
	t.Parallel()
	api := emulator(t)
	tr := bot(t, api)
	from := map[string]any{"id": 42, "first_name": "O", "username": "owner", "is_bot": false}
	room := map[string]any{"id": 42, "first_name": "O", "type": "private"}
	say := func(words string, date int64) {
		asPhone(t, api, "sendMessage", map[string]any{"botToken": secret, "from": from, "chat": room, "date": date, "text": words})
	}
	say("old", time.Now().Unix()-3600)
	b := next(t, tr, "")
	if len(b.Messages) > 0 || len(b.Notes) != 1 || !strings.Contains(b.Notes[0], "1 messages, presses and reactions from before it") {
		t.Fatalf("first run: %+v", b)
	}

	say("what is up? 😀", time.Now().Unix())
	b = next(t, tr, b.Cursor)
	if len(b.Messages) != 1 || len(b.Notes) > 0 {
		t.Fatalf("%+v", b)
	}
	m := b.Messages[0]
	if m.Text != "what is up? 😀" || m.Handle != "42" || m.Chat != private || m.Kind != chat.Text || time.Since(m.At).Abs() > time.Hour || m.GUID != "123456:42:2" {
		t.Errorf("%+v", m)
	}

	r := send(t, tr, chat.Outgoing{Chat: m.Chat, Text: "may agent1 run it?", Choices: []string{"yes abcde", "no abcde"}})
	if r.State != chat.Sent || !strings.HasPrefix(r.GUID, "123456:42:") {
		t.Fatalf("%+v", r)
	}
	got := asPhone(t, api, "getUpdates", map[string]any{"token": secret, "chatId": 42})
	if len(got) != 1 {
		t.Fatalf("the phone has %v", got)
	}
	shown, _ := json.Marshal(got[0]["message"])
	const want = `{"chat_id":42,"link_preview_options":{"is_disabled":true},"reply_markup":{"inline_keyboard":[[{"callback_data":"yes abcde","text":"yes abcde"},{"callback_data":"no abcde","text":"no abcde"}]]},"text":"may agent1 run it?"}`
	testworld.Equal(t, string(shown), want, "the phone shows")

	asPhone(t, api, "sendCallback", map[string]any{
		"botToken": secret, "from": from, "data": "yes abcde", "message": map[string]any{"message_id": got[0]["messageId"], "from": from, "chat": room},
	})
	b = next(t, tr, b.Cursor)
	if len(b.Messages) != 1 || b.Messages[0].Kind != chat.Press || b.Messages[0].Text != "yes abcde" || b.Messages[0].About != r.GUID || b.Messages[0].Handle != "42" {
		t.Errorf("%+v", b)
	}
	var names []string
	for _, f := range tr.Check(t.Context()) {
		names = append(names, f.Name+"="+string(f.State))
	}
	// The emulator has no getWebhookInfo.
	if want := []string{"token=ok", "bot=ok", "webhook=unchecked", "groups=ok", "first message=unchecked", "sending=unchecked"}; !slices.Equal(names, want) {
		t.Errorf("got %v, want %v", names, want)
	}
	if b := next(t, tr, b.Cursor); len(b.Messages)+len(b.Notes) > 0 {
		t.Errorf("then: %+v", b)
	}
}
