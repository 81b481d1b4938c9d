package attention

import "time"

func init() { pauses = [tries]time.Duration{0, time.Millisecond, time.Millisecond} }
