package attention

import (
	"crypto/sha256"
	"fmt"
	"time"
)

// typing is how long a mistake in netsky.toml has to stay: until then somebody may be typing.
const typing = 5 * time.Second

// notices derives what the owner is told, each under the id that it has as long as it lasts.
func (s Sources) notices() (list []Notice) {
	if s.Mistake != "" {
		list = append(list, Notice{
			ID: fmt.Sprintf("config-%x", sha256.Sum256([]byte(s.Mistake)))[:len("config-")+12], Kind: Config, After: typing,
			Text: fmt.Sprintf("%s\nUntil it is corrected, %s. What the daemon itself reads there counts after `netsky daemon stop` and `netsky up`.", s.Mistake, s.Prevents),
			Told: s.Mistake + "; until it is corrected, " + s.Prevents,
		})
	}
	return list
}
