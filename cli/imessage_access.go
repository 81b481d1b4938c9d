package cli

import "github.com/urfave/cli/v2"

func (a *app) imessageAccessCommand() *cli.Command {
	return &cli.Command{Name: "access", Usage: "manage who may speak by phone", Action: a.needsSub}
}
