package cli

import (
	"github.com/urfave/cli/v2"

	"netsky/fleet"
)

func (a daemonVerbs) apiCommand() *cli.Command {
	return &cli.Command{
		Name: "api", Usage: "describe what the daemon's socket offers to other programs",
		Description: "Prints one JSON object: the socket, what can be asked for there, the JSON schema of each request and result, and who may\n" +
			"ask for it. docs/api.md shows how. Needs no daemon.",
		Action: func(*cli.Context) error {
			h, err := a.home()
			if err != nil {
				return err
			}
			return a.writeJSON(fleet.Describe(h, Version))
		},
	}
}
