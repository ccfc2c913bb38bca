# Completion of cellwright in bash. Written by `cellwright self completions bash`.
_cellwright() {
    local line value
    COMPREPLY=()
    # `=` splits words in bash: `--outputs=te` arrives as three. Only what follows it is replaced.
    local words=("${COMP_WORDS[@]:0:COMP_CWORD+1}") joined=()
    for value in "${words[@]}"; do
        if [[ ${#joined[@]} -gt 0 && ( $value == "=" || ${joined[-1]} == --*= ) ]]; then
            joined[-1]+=$value
        else
            joined+=("$value")
        fi
    done
    while IFS= read -r line; do
        value=${line%%$'\t'*}
        if [[ ${joined[-1]} == --*=* ]]; then value=${value#*=}; fi
        COMPREPLY+=("$value")
    done < <("${COMP_WORDS[0]}" self complete -- "${joined[@]}" 2>/dev/null)
}
complete -o bashdefault -o default -F _cellwright cellwright
