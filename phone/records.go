package phone

import (
	"netsky/phone/chat"
	"netsky/phone/record"
)

// The records know nothing of transports: of a chat they keep what finds it again.

func recorded(c chat.Chat) record.Chat { return record.Chat{Key: c.Key, GUID: c.GUID} }

func chatOf(c record.Chat) chat.Chat {
	known, _ := chat.KeyOf(c.Key)
	known.Key, known.GUID = c.Key, c.GUID
	return known
}
