package main

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
