# Completion of cellwright in nushell. Written by `cellwright self completions nushell`.
# Other programs keep the completer that was set before.
let before_cellwright = $env.config?.completions?.external?.completer?
$env.config.completions.external.completer = {|spans|
    if $spans.0 == "cellwright" {
        let found = ^cellwright self complete -- ...$spans | lines | each {|line|
            let parts = $line | split row --number 2 "\t"
            { value: $parts.0, description: ($parts | get --optional 1 | default "") }
        }
        # Without candidates nushell completes file names.
        if ($found | is-empty) { null } else { $found }
    } else if $before_cellwright != null {
        do $before_cellwright $spans
    }
}
