//go:build !race

package server

import _ "unsafe" // for go:linkname

// statFile is what NATS reads each second from its package's initialisation on, to know the processor time
// that its process uses: in every netsky, be it an agent's keeper or the daemon of a home without a
// team. Nobody asks for that, and it ends when the file can't be read, a second from now. The race
// detector can't know that this is a second before.
//
//go:linkname statFile github.com/nats-io/nats-server/v2/server/pse.procStatFile
var statFile string

func init() { statFile = "" }
