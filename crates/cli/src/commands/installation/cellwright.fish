# Completion of cellwright in fish. Written by `cellwright self completions fish`.
function __cellwright_complete
    set -l words (commandline -opc) (commandline -ct)
    set -l found (command $words[1] self complete -- $words 2>/dev/null)
    if test (count $found) -gt 0
        printf '%s\n' $found
    else
        __fish_complete_path (commandline -ct)
    end
end
complete -c cellwright -f -a '(__cellwright_complete)'
