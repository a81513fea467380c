package main

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

var shells = []string{"bash", "zsh", "fish", "powershell"}

// completes reports whether a command line asks for completions, as the scripts for shells do.
func completes(args []string) bool {
	return slices.ContainsFunc(args, func(arg string) bool { return strings.HasPrefix(arg, cobra.ShellCompRequestCmd) })
}

func (a *app) completionCommand() *cobra.Command {
	s := &spec{
		use: "completion bash|zsh|fish|powershell", short: "print a completion script for a shell", nofile: true, args: 1,
		long: `Prints a script that completes commands and flags, and queues, kinds and job IDs
from the queue that --db or --addr names.`,
		example: `  source <(jobctl completion bash)
  jobctl completion zsh > "${fpath[1]}/_jobctl"
  jobctl completion fish > ~/.config/fish/completions/jobctl.fish
  jobctl completion powershell | Out-String | Invoke-Expression`,
		complete: cobra.FixedCompletions(shells, cobra.ShellCompDirectiveNoFileComp),
	}
	c := a.command(s)
	s.run = func(_ context.Context, args []string) error {
		switch {
		case len(args) == 0 || !slices.Contains(shells, args[0]):
			return usage("completion", "no shell was named; choose %s", listed(shells))
		case args[0] == "bash":
			err := c.Root().GenBashCompletionV2(a.stdout, true)
			a.stdout.WriteString(plainBash)
			return err
		case args[0] == "zsh":
			return c.Root().GenZshCompletion(a.stdout)
		case args[0] == "fish":
			return c.Root().GenFishCompletion(a.stdout, true)
		}
		return c.Root().GenPowerShellCompletionWithDesc(a.stdout)
	}
	return c
}

// plainBash follows the completion script for bash. That script gets the words of the command
// line from the package bash-completion, which many servers lack: each tab would then print an
// error into the line. Without the package, this code splits the words at spaces itself. The
// script puts quoted words together again when it asks for completions.
const plainBash = `
# Without the package bash-completion the words are split at spaces.
if ! declare -F _init_completion >/dev/null 2>&1 && ! declare -F _get_comp_words_by_ref >/dev/null 2>&1; then
    __jobctl_init_completion()
    {
        local line=${COMP_LINE:0:COMP_POINT}
        COMPREPLY=()
        read -r -a words <<<"${line}"
        [[ ${line} == *[[:space:]] ]] && words+=("")
        cword=$((${#words[@]} - 1))
        cur=${words[cword]}
        prev=${words[cword - 1]}
    }
fi
`
