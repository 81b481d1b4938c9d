package imessage

import (
	"netsky/imessage/chat"
	"netsky/store/phone"
)

// The records know nothing of transports: of a chat they keep what finds it again.

func recorded(c chat.Chat) phone.Chat { return phone.Chat{Key: c.Key, GUID: c.GUID} }

func chatOf(c phone.Chat) chat.Chat {
	known, _ := chat.KeyOf(c.Key)
	known.Key, known.GUID = c.Key, c.GUID
	return known
}
