package telegram

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"netsky/internal/advice"
	"netsky/internal/proc"
	"netsky/phone/chat"
)

// A token is a bot's password, which begins with the bot's id. It prints as the id.
type token struct {
	bot    int64
	secret string
}

func (t token) String() string   { return "bot " + strconv.FormatInt(t.bot, 10) }
func (t token) GoString() string { return t.String() }

var tokenForm = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^([0-9]{1,18}):[A-Za-z0-9_-]{30,100}$`) })

// token reads the token's file. Errors say nothing of its content.
func (t *Transport) token() (token, error) {
	text, err := readSecret(t.o.TokenFile)
	if err != nil {
		return token{}, err
	}
	m := tokenForm().FindStringSubmatch(text)
	if m == nil {
		return token{}, advice.With(fmt.Errorf("%s: does not hold a bot's token", t.o.TokenFile),
			"put the line into it that @BotFather gave you: digits, a colon, and about 35 letters and digits")
	}
	id, err := strconv.ParseInt(m[1], 10, 64)
	if err != nil {
		return token{}, fmt.Errorf("%s: the bot's id is no number", t.o.TokenFile)
	}
	return token{bot: id, secret: text}, nil
}

// readSecret reads a short file that nobody but its owner can read. A person has named it,
// so it may be behind a link.
func readSecret(file string) (string, error) {
	fd, err := proc.Open(file, unix.O_RDONLY|unix.O_NONBLOCK)
	if err != nil {
		err = fmt.Errorf("%s: the bot's token cannot be read: %w", file, err)
		return "", advice.With(err, "create the file with the token that @BotFather gave you, and run `chmod 600 %s`", advice.Word(file))
	}
	f := os.NewFile(uintptr(fd), file)
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		return "", fmt.Errorf("%s: not a regular file", file)
	}
	if perm := info.Mode().Perm(); perm&0o077 != 0 {
		return "", advice.With(fmt.Errorf("%s: its mode is %04o, so others may read the bot's token", file, perm),
			"run `chmod 600 %s`; if others have an account on this machine, have @BotFather make another token", advice.Word(file))
	}
	data, err := io.ReadAll(io.LimitReader(f, 4096))
	if err != nil {
		return "", &fs.PathError{Op: "read", Path: file, Err: unix.EIO}
	}
	return strings.TrimSpace(string(data)), nil
}

// Check asks who the bot is and where its messages go. It sends nothing.
func (t *Transport) Check(ctx context.Context) []chat.Fact {
	tok, err := t.token()
	if err != nil {
		return []chat.Fact{{Name: "token", State: chat.Bad, Detail: err.Error(), Next: advice.Of(err)}}
	}
	facts := []chat.Fact{{Name: "token", State: chat.OK, Detail: fmt.Sprintf("%s holds the token of bot %d; only its owner can read it", t.o.TokenFile, tok.bot)}}
	var me struct {
		ID       int64  `json:"id"`
		Username string `json:"username"`
		Groups   bool   `json:"can_join_groups"`
		All      bool   `json:"can_read_all_group_messages"`
	}
	if err := t.call(ctx, tok, "getMe", nil, &me); err != nil {
		d := t.degraded(err)
		return append(facts, chat.Fact{Name: "bot", State: chat.Bad, Detail: d.Reason, Next: d.Next})
	}
	facts = append(facts, chat.Fact{Name: "bot", State: chat.OK, Detail: fmt.Sprintf("%s: @%s, id %d", t.host, tok.plain(me.Username), me.ID)})
	facts = append(facts, t.checkWebhook(ctx, tok))
	groups := chat.Fact{Name: "groups", State: chat.OK, Detail: "the bot cannot be added to groups"}
	switch {
	case me.Groups && me.All:
		groups.Detail = "anybody can add the bot to a group, and there it sees every message; no order is taken from a group"
		groups.Next = "tell @BotFather /setjoingroups and Disable"
	case me.Groups:
		groups.Detail = "anybody can add the bot to a group, and there it sees what is meant for it; no order is taken from a group"
	}
	return append(facts, groups,
		chat.Fact{Name: "first message", State: chat.Unchecked, Detail: "a bot cannot write to you before you have written to it",
			Next: "open the bot in Telegram once, and press Start"},
		chat.Fact{Name: "sending", State: chat.Unchecked, Detail: "nothing was sent; whether a message reaches the phone shows when one is"})
}

func (t *Transport) checkWebhook(ctx context.Context, tok token) chat.Fact {
	var hook struct {
		URL     string `json:"url"`
		Pending int64  `json:"pending_update_count"`
	}
	if err := t.call(ctx, tok, "getWebhookInfo", nil, &hook); err != nil {
		return chat.Fact{Name: "webhook", State: chat.Unchecked, Detail: t.degraded(err).Reason}
	}
	if hook.URL != "" {
		return chat.Fact{Name: "webhook", State: chat.Bad, Detail: "the bot's messages go to a webhook, so they cannot be read here", Next: t.removeWebhook()}
	}
	return chat.Fact{Name: "webhook", State: chat.OK, Detail: fmt.Sprintf("none is set; %d updates wait", hook.Pending)}
}
