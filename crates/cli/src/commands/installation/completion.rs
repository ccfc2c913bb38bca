//! Completion for shells: their scripts only pass on the words of the line, and the program answers.

use clap::{Arg, Command};

/// A shell that there is a script for.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub(super) enum CompletedShell {
    Bash,
    Zsh,
    Fish,
    Nushell,
}

impl CompletedShell {
    /// The script. Where the program has no candidates, the shell completes file names.
    pub(super) fn script(self) -> &'static str {
        match self {
            Self::Bash => include_str!("cellwright.bash"),
            Self::Zsh => include_str!("cellwright.zsh"),
            Self::Fish => include_str!("cellwright.fish"),
            Self::Nushell => include_str!("cellwright.nu"),
        }
    }
}

/// What could stand in place of the last word, one candidate a line, each with a tab and its description if it has one.
///
/// The list is empty where a file name or free text belongs.
pub(super) fn candidates(command: &Command, words: &[String]) -> String {
    let Some((last, before)) = words.split_last() else {
        return String::new();
    };
    let line = CommandPosition::after(command, before.get(1..).unwrap_or_default());
    let mut lines = String::new();
    let mut offer = |value: &str, help: Option<&clap::builder::StyledStr>| {
        lines.push_str(value);
        if let Some(help) = help {
            let help = help.to_string();
            lines.extend(["\t", help.lines().next().unwrap_or_default()]);
        }
        lines.push('\n');
    };
    if let Some(flag) = line.awaited {
        offer_values(flag, "", last, &mut offer);
    } else if let Some((name, value)) = last.strip_prefix("--").and_then(|word| word.split_once('='))
        && !line.only_positionals
    {
        if let Some(flag) = line.command.get_arguments().find(|flag| flag.get_long() == Some(name)) {
            offer_values(flag, &format!("--{name}="), value, &mut offer);
        }
    } else if last.starts_with('-') && !line.only_positionals {
        for flag in line.command.get_arguments().filter(|flag| !flag.is_hide_set()) {
            for long in flag.get_long_and_visible_aliases().unwrap_or_default() {
                let long = format!("--{long}");
                if long.starts_with(last.as_str()) {
                    offer(&long, flag.get_help());
                }
            }
        }
    } else {
        let subcommands = line.command.get_subcommands().filter(|known| !known.is_hide_set());
        if line.positionals == 0 {
            for known in subcommands.filter(|known| known.get_name().starts_with(last.as_str())) {
                offer(known.get_name(), known.get_about());
            }
        }
        if let Some(positional) = line.positional() {
            offer_values(positional, "", last, &mut offer);
        }
    }
    lines
}

fn offer_values(
    argument: &Arg,
    before: &str,
    begun: &str,
    offer: &mut impl FnMut(&str, Option<&clap::builder::StyledStr>),
) {
    // Flags without a value have `true` and `false` as values.
    if !argument.get_action().takes_values() {
        return;
    }
    for value in argument.get_possible_values() {
        if !value.is_hide_set() && value.get_name().starts_with(begun) {
            offer(&format!("{before}{}", value.get_name()), value.get_help());
        }
    }
}

/// Where a command line has arrived before its last word.
struct CommandPosition<'a> {
    command: &'a Command,
    /// The flag whose value comes next.
    awaited: Option<&'a Arg>,
    positionals: usize,
    /// A `--` was there.
    only_positionals: bool,
}

impl<'a> CommandPosition<'a> {
    fn after(command: &'a Command, words: &[String]) -> Self {
        let mut line = Self { command, awaited: None, positionals: 0, only_positionals: false };
        for word in words {
            line.pass(word);
        }
        line
    }

    fn pass(&mut self, word: &str) {
        if self.awaited.take().is_some() {
            return;
        }
        if !self.only_positionals && word == "--" {
            self.only_positionals = true;
        } else if !self.only_positionals && word.len() > 1 && word.starts_with('-') {
            let takes_value = |flag: &&Arg| flag.get_action().takes_values();
            self.awaited = self.flag(word).filter(takes_value);
        } else if let Some(known) = self.command.find_subcommand(word).filter(|_| self.positionals == 0) {
            self.command = known;
        } else {
            self.positionals += 1;
        }
    }

    /// The flag that a word names and gives no value.
    fn flag(&self, word: &str) -> Option<&'a Arg> {
        let mut flags = self.command.get_arguments();
        match word.strip_prefix("--") {
            Some(long) => flags.find(|flag| {
                flag.get_long() == Some(long)
                    || flag.get_all_aliases().is_some_and(|names| names.contains(&long))
            }),
            // The last of several letters may take a value: `-jc`.
            None => flags.find(|flag| flag.get_short().is_some_and(|short| word.ends_with(short))),
        }
    }

    fn positional(&self) -> Option<&'a Arg> {
        let mut positionals: Vec<&Arg> = self.command.get_positionals().collect();
        positionals.sort_by_key(|positional| positional.get_index());
        let repeats =
            |positional: &&Arg| positional.get_num_args().is_some_and(|count| count.max_values() > 1);
        positionals.get(self.positionals).copied().or_else(|| positionals.last().copied().filter(repeats))
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::candidates;

    #[track_caller]
    fn check(line: &str, expected: &[&str]) {
        let mut command = crate::CommandLine::command();
        command.build();
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let found = candidates(&command, &words);
        let found: Vec<&str> = found.lines().map(|line| line.split('\t').next().unwrap()).collect();
        assert_eq!(found, expected, "{line}");
    }

    #[test]
    fn commands_are_completed_at_each_level() {
        check("cellwright sh", &["show"]);
        check("cellwright gateway st", &["start", "status", "stop"]);
        check("cellwright self completions ", &["bash", "zsh", "fish", "nushell"]);
        // Hidden ones are not offered.
        check("cellwright self comp", &["completions"]);
    }

    #[test]
    fn flags_and_their_values_are_completed() {
        check("cellwright mcp install --pr", &["--project", "--print"]);
        check("cellwright read --out", &["--outputs"]);
        check("cellwright read --outputs te", &["text"]);
        check("cellwright read --outputs=te", &["--outputs=text"]);
        check("cellwright mcp install --print ze", &["zed"]);
    }

    #[test]
    fn file_names_and_free_text_are_left_to_the_shell() {
        check("cellwright read ana", &[]);
        check("cellwright read -- --out", &[]);
        check("cellwright read --session x", &[]);
        check("cellwright run --kernel gate", &[]);
    }
}
