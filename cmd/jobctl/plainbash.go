package main

// plainBash goes behind the completion script for bash. That asks the package
// bash-completion for the words of the command line, which many servers lack: there each tab
// would print an error into the line. This takes them itself then, split at spaces: a word
// in quotes is put together again when the script asks for what may follow.
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
