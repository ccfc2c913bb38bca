#compdef cellwright
# Completion of cellwright in zsh. Written by `cellwright self completions zsh`.
_cellwright() {
    local line
    local -a found
    while IFS= read -r line; do
        found+=("${${line%%$'\t'*}//:/\\:}${${(M)line%$'\t'*}/$'\t'/:}")
    done < <("${words[1]}" self complete -- "${(@)words[1,CURRENT]}" 2>/dev/null)
    if (( $#found )); then
        _describe -V 'cellwright' found
    else
        _files
    fi
}
if [[ ${funcstack[1]} == _cellwright ]]; then
    _cellwright "$@"
else
    compdef _cellwright cellwright
fi
