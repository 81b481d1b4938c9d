// Netsky starts AI coding agents on this machine, each in its own tmux session,
// and carries messages between them. README.md says how to use it,
// ARCHITECTURE.md how it is made.
package main

import (
	"context"
	_ "embed"
	"os"
	"os/signal"
	"syscall"

	"netsky/cli"
)

//go:embed CHANGELOG.md
var changelog string

func main() { os.Exit(run()) }

func run() int {
	cli.Changelog = changelog
	// Until the process ends, which takes longer if it is undone before.
	ctx, _ := cli.Signals(context.Background(), os.Interrupt, syscall.SIGTERM)
	// A reader that goes away (netsky up | head) must not end a verb half done:
	// with a receiver for the signal, writing fails instead. The channel is never
	// read. Ignoring the signal would pass that on to agents.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	return cli.Main(ctx, os.Args, os.Stdin, os.Stdout, os.Stderr)
}
