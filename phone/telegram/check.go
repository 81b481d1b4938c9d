package telegram

import (
	"context"
	"fmt"

	"netsky/internal/advice"
	"netsky/phone/chat"
)

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
