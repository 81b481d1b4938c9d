package cli

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"
)

func (a *app) completionCommand() *cli.Command {
	return &cli.Command{
		Name:      "completion",
		Usage:     "a script that completes verbs and flags in your shell",
		ArgsUsage: "bash|zsh|fish",
		Description: "bash: netsky completion bash > ~/.local/share/bash-completion/completions/netsky\n" +
			"zsh:  netsky completion zsh > a directory of your $fpath/_netsky\n" +
			"fish: netsky completion fish > ~/.config/fish/completions/netsky.fish",
		Action: func(c *cli.Context) error {
			shell, err := one(c, "bash, zsh or fish")
			if err != nil {
				return err
			}
			switch shell {
			case "bash":
				fmt.Fprint(a.stdout(), bashCompletion)
			case "zsh":
				fmt.Fprint(a.stdout(), zshCompletion)
			case "fish":
				text, err := c.App.ToFishCompletion()
				if err != nil {
					return err
				}
				fmt.Fprintln(a.stdout(), text)
			default:
				return usagef("completion: %q: wants bash, zsh or fish", shell)
			}
			return nil
		},
	}
}

// The scripts ask the program itself what comes next, so they are never stale.
const bashCompletion = `_netsky() {
  local cur words
  cur="${COMP_WORDS[COMP_CWORD]}"
  words=("${COMP_WORDS[@]:1:COMP_CWORD-1}")
  if [[ "$cur" == -* ]]; then
    words+=("$cur")
  fi
  COMPREPLY=($(compgen -W "$("${COMP_WORDS[0]}" "${words[@]}" --generate-bash-completion 2>/dev/null)" -- "$cur"))
}
complete -o default -F _netsky netsky
`

const zshCompletion = `#compdef netsky
_netsky() {
  local -a opts
  local cur="${words[-1]}"
  if [[ "$cur" == -* ]]; then
    opts=("${(@f)$(${words[@]:0:#words[@]-1} ${cur} --generate-bash-completion 2>/dev/null)}")
  else
    opts=("${(@f)$(${words[@]:0:#words[@]-1} --generate-bash-completion 2>/dev/null)}")
  fi
  _describe 'values' opts
}
if [ "$funcstack[1]" = "_netsky" ]; then
  _netsky
else
  compdef _netsky netsky
fi
`

// unknownVerb says which verb was probably meant.
func (a *app) unknownVerb(word string) error {
	best, at := "", 3 // further away it is no slip of the fingers
	for _, c := range a.cli().Commands {
		d := distance(word, c.Name)
		if word != "" && strings.HasPrefix(c.Name, word) || strings.HasPrefix(word, c.Name) {
			d = 0
		}
		if !c.Hidden && d < min(at, len(c.Name)) {
			best, at = c.Name, d
		}
	}
	if best != "" {
		return usagef("no verb %q; did you mean %q? `netsky help` lists them", word, best)
	}
	return usagef("no verb %q; `netsky help` lists them", word)
}

// distance is how many letters must be put in, taken out, changed or swapped
// with their neighbour to make one word of the other.
func distance(a, b string) int {
	before, last := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row := make([]int, len(b)+1)
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(last[j]+cost, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
