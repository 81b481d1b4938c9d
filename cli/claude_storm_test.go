package cli_test

import (
	"netsky/agent"
)

// other writes to them beside the owner. It is a mailbox, and nobody's.
const other agent.ID = "agent3"
