package cli

// Script returns the shell's completion script, "" for an unknown shell.
func Script(shell string) string {
	switch shell {
	case "bash":
		return bash
	case "zsh":
		return zsh
	case "fish":
		return fish
	}
	return ""
}

// The scripts ask the program for completions, so they are never stale. Each is a line: a
// word, a tab and a description. Without any, the shell offers files.
const bash = `_netsky() {
  local IFS=$'\n'
  COMPREPLY=($("${COMP_WORDS[0]}" __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null | cut -f1))
}
complete -o default -F _netsky netsky
`

const zsh = `#compdef netsky
_netsky() {
  local -a found
  local line
  for line in "${(@f)$("${(Q)words[1]}" __complete "${(@Q)words[2,CURRENT]}" 2>/dev/null)}"; do
    [[ -n $line ]] && found+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
  done
  if (( $#found )); then
    _describe -t values netsky found
  else
    _files
  fi
}
if [ "$funcstack[1]" = "_netsky" ]; then
  _netsky
else
  compdef _netsky netsky
fi
`

const fish = `function __netsky_complete
    set -l before (commandline -opc)
    set -l program $before[1]
    set -l current (commandline -ct)
    set -e before[1]
    command $program __complete $before "$current" 2>/dev/null
end
function __netsky_wants_file
    contains -- (commandline -opc)[-1] --dir --file
end
complete -c netsky -f -a '(__netsky_complete)'
complete -c netsky -n __netsky_wants_file -F
`
