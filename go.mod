module netsky

go 1.26.0

godebug updatemaxprocs=0 // else a process that idles asks each second in which it wakes how many processors there are

require (
	github.com/GianlucaP106/gotmux v0.5.0 // tests: a second reader of tmux, the witness of what package tmux believes; ARCHITECTURE says why not more
	github.com/chromedp/chromedp v0.23.0 // tests: drives a real Chromium; its start, its targets and its end are theirs to get right
	github.com/clipperhouse/displaywidth v0.11.0 // how many cells a character takes in a pane and on the terminal; the tables follow Unicode
	github.com/fsnotify/fsnotify v1.10.1 // watches directories; each system's own way would be ours to keep
	github.com/go-json-experiment/json v1.27.2 // reads envelopes, and requests to the control socket; it is Go 1.27's encoding/json/v2
	github.com/google/jsonschema-go v0.4.3 // describes the control socket's requests; the MCP SDK needs it too
	github.com/gorilla/websocket v1.5.3 // app-server speaks WebSocket; framing is theirs to get right
	github.com/mattn/go-sqlite3 v1.14.52 // SQLite, the records
	github.com/modelcontextprotocol/go-sdk v1.8.0 // the model's tools; MCP changes every few months, and its own people follow it
	github.com/nats-io/jwt/v2 v2.8.2 // accounts of a NATS cluster that is not ours, in tests
	github.com/nats-io/nats-server/v2 v2.15.2 // keeps the mail between hosts until they have it; in a process of its own
	github.com/nats-io/nats.go v1.55.0 // its client: reconnects, JetStream, the buckets
	github.com/nats-io/nkeys v0.4.16 // the hosts' keys, as NATS has them
	github.com/pelletier/go-toml/v2 v2.4.3 // netsky.toml; its errors name the line, also of an unknown key
	github.com/robfig/cron/v3 v3.0.1 // parses cron expressions and finds the next time; the skipped and the doubled hour stay ours
	github.com/rogpeppe/go-internal v1.16.0 // tests: scripts of verbs against the real program
	github.com/urfave/cli/v2 v2.27.7 // the command table: options, help, completion
	golang.org/x/sync v0.20.0 // errgroup: the first of the phone's loops that fails ends the others
	golang.org/x/sys v0.49.0 // openat, renameat2, flock, pidfd, kqueue: what package syscall lacks
	golang.org/x/term v0.47.0 // whether a stream is a terminal, and its size
	golang.org/x/time v0.16.0 // how often strangers may ask to join a team
	gopkg.in/natefinch/lumberjack.v2 v2.2.1 // rotates the daemon's log
)

require (
	github.com/antithesishq/antithesis-sdk-go v0.8.0-default-no-op // indirect
	github.com/chromedp/cdproto v0.159.0 // indirect
	github.com/clipperhouse/uax29/v2 v2.7.0 // indirect
	github.com/cpuguy83/go-md2man/v2 v2.0.7 // indirect
	github.com/google/go-tpm v0.9.8 // indirect
	github.com/klauspost/compress v1.20.3 // indirect
	github.com/minio/highwayhash v1.0.4 // indirect
	github.com/nats-io/nuid v1.0.1 // indirect
	github.com/russross/blackfriday/v2 v2.1.0 // indirect
	github.com/segmentio/asm v1.1.3 // indirect
	github.com/segmentio/encoding v0.5.4 // indirect
	github.com/xrash/smetrics v0.0.0-20240521201337-686a1a2994c1 // indirect
	github.com/yosida95/uritemplate/v3 v3.0.2 // indirect
	golang.org/x/crypto v0.58.0 // indirect
	golang.org/x/oauth2 v0.35.0 // indirect
	golang.org/x/tools v0.42.0 // indirect
)
