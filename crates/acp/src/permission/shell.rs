//! The commands that a shell line would run, as far as they can be seen without running it.
//!
//! For `deny` rules, which should see too much rather than too little. What cannot be seen at all
//! makes the line unclear: it matches every `deny` rule, and no `allow` rule with a pattern.

use std::collections::HashSet;

/// Programs that run a script.
pub(super) const SHELLS: [&str; 7] = ["sh", "bash", "dash", "zsh", "ksh", "fish", "ash"];

/// Programs that run another one, which is somewhere among their arguments.
const WRAPPERS: [&str; 55] = [
    "builtin",
    "busybox",
    "bwrap",
    "caffeinate",
    "chroot",
    "chrt",
    "command",
    "coproc",
    "dbus-run-session",
    "doas",
    "entr",
    "env",
    "eval",
    "exec",
    "fakeroot",
    "fd",
    "fdfind",
    "find",
    "firejail",
    "flock",
    "ionice",
    "ltrace",
    "nice",
    "nohup",
    "nsenter",
    "numactl",
    "parallel",
    "perf",
    "pkexec",
    "prlimit",
    "runuser",
    "screen",
    "script",
    "setarch",
    "setpriv",
    "setsid",
    "sg",
    "ssh",
    "stdbuf",
    "strace",
    "su",
    "sudo",
    "systemd-run",
    "taskset",
    "time",
    "timeout",
    "tmux",
    "torify",
    "toybox",
    "trap",
    "unbuffer",
    "unshare",
    "valgrind",
    "watch",
    "xargs",
];

/// Programs that run code of another language, and the letters of the options that take it.
const INTERPRETERS: [(&str, &str); 8] = [
    ("python", "c"),
    ("pypy", "c"),
    ("perl", "eE"),
    ("ruby", "e"),
    ("node", "ep"),
    ("php", "r"),
    ("lua", "e"),
    ("osascript", "e"),
];

/// Words of the shell before which no command stands and after which one may.
const RESERVED: [&str; 12] =
    ["!", "{", "}", "if", "then", "elif", "else", "do", "while", "until", "fi", "done"];

/// Lines in lines are looked into this deep.
const DEEPEST: usize = 6;

/// The most commands that are looked at.
const MOST: usize = 2_000;

/// What a line would run.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct SeenCommands {
    /// Each with its arguments, without quotes: once as it is written and once without the folder
    /// of the program.
    pub(super) commands: Vec<String>,
    /// Whether it also runs something that cannot be seen.
    pub(super) unclear: bool,
    known: HashSet<String>,
}

/// Whether a word surely is a program, or may be one among the arguments of a wrapper.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ProgramGuess {
    Sure,
    Maybe,
}

impl SeenCommands {
    pub(super) fn of(line: &str) -> Self {
        let mut seen = Self::default();
        // Not as known: it may be a single command, which is looked at below.
        seen.commands.extend(Some(line.trim().to_owned()).filter(|line| !line.is_empty()));
        seen.look_at_line(line, ProgramGuess::Sure, 0);
        seen
    }

    /// Looks at a further line, too.
    pub(super) fn and(mut self, line: &str) -> Self {
        let other = Self::of(line);
        self.unclear |= other.unclear;
        self.commands.extend(other.commands);
        self
    }

    /// Adds a command. False if it is known.
    fn push(&mut self, command: String) -> bool {
        let is_new = !command.is_empty() && self.known.insert(command.clone());
        if is_new {
            self.commands.push(command);
        }
        is_new
    }

    fn look_at_line(&mut self, line: &str, guess: ProgramGuess, depth: usize) {
        if depth > DEEPEST || self.commands.len() > MOST {
            self.unclear = true;
            return;
        }
        let mut lexer = ShellLexer { rest: line, inner: Vec::new(), broken: false };
        while let Some(words) = lexer.next_command() {
            self.look_at_words(&words, guess, depth);
        }
        self.unclear |= lexer.broken;
        for inner in std::mem::take(&mut lexer.inner) {
            self.look_at_line(&inner, ProgramGuess::Sure, depth + 1);
        }
    }

    fn look_at_words(&mut self, mut words: &[ShellWord], guess: ProgramGuess, depth: usize) {
        if depth > DEEPEST || self.commands.len() > MOST {
            self.unclear = true;
            return;
        }
        while let [first, rest @ ..] = words {
            let plain = !first.dynamic && RESERVED.contains(&first.text.as_str());
            if first.text == "function" {
                words = rest.get(1..).unwrap_or_default();
            } else if plain || is_assignment(&first.text) {
                words = rest;
            } else {
                break;
            }
        }
        let [first, arguments @ ..] = words else { return };
        if ["for", "case", "select", "esac", "in"].contains(&first.text.as_str()) {
            return;
        }
        let program = first.text.rsplit('/').next().unwrap_or(&first.text);
        self.unclear |= first.dynamic && guess == ProgramGuess::Sure;
        let mut is_new = false;
        for name in [first.text.as_str(), program] {
            let all = std::iter::once(name).chain(arguments.iter().map(|word| word.text.as_str()));
            is_new |= self.push(all.collect::<Vec<_>>().join(" "));
        }
        let is_shell = SHELLS.contains(&program);
        self.unclear |= runs_other_language(program, arguments);
        if !is_new || !is_shell && !WRAPPERS.contains(&program) {
            return;
        }
        self.judge_script(program, arguments, is_shell);
        if program == "eval" {
            let line: Vec<_> = arguments.iter().map(|word| word.text.as_str()).collect();
            self.look_at_line(&line.join(" "), ProgramGuess::Sure, depth + 1);
        }
        // Options of wrappers have arguments of their own. Any word may be the program.
        for (at, word) in arguments.iter().enumerate() {
            let is_script = is_shell && takes_text(arguments) && !word.text.starts_with('-');
            if is_script || word.text.contains([' ', ';', '&', '|', '\n', '(']) {
                let guess = if is_shell { ProgramGuess::Sure } else { ProgramGuess::Maybe };
                self.look_at_line(word.text.trim_start_matches('-'), guess, depth + 1);
                // A short option may hold its value: `-S'rm x'`.
                if let Some((_, value)) = word.text.strip_prefix('-').and_then(|it| it.split_at_checked(1)) {
                    self.look_at_line(value, guess, depth + 1);
                }
            }
            match word.text.strip_prefix('-') {
                Some(option) => {
                    let value = option.split_once('=').map_or(option, |(_, value)| value);
                    self.push(value.trim_start_matches('-').to_owned());
                }
                None => self.look_at_words(&arguments[at..], ProgramGuess::Maybe, depth + 1),
            }
        }
    }

    /// Notes when a shell or a wrapper runs what cannot be seen. A file with a script is a program
    /// like any other.
    fn judge_script(&mut self, program: &str, arguments: &[ShellWord], is_shell: bool) {
        let is_option = |word: &&ShellWord| word.text.starts_with(['-', '+']);
        let has_dynamic = arguments.iter().any(|word| word.dynamic);
        self.unclear |= match program {
            _ if is_shell => {
                arguments.iter().all(|word| is_option(&word)) || takes_text(arguments) && has_dynamic
            }
            "eval" => has_dynamic,
            "find" => arguments.windows(2).any(|pair| pair[0].text.starts_with("-exec") && pair[1].dynamic),
            _ => {
                let no_program = |word: &&ShellWord| {
                    is_option(word)
                        || is_assignment(&word.text)
                        || word.text.starts_with(|c: char| c.is_ascii_digit())
                };
                arguments.iter().find(|word| !no_program(word)).is_some_and(|word| word.dynamic)
            }
        };
    }
}

/// Whether a shell gets a script as an argument.
fn takes_text(arguments: &[ShellWord]) -> bool {
    arguments.iter().any(|word| word.text.starts_with(['-', '+']) && word.text.contains('c'))
}

/// Whether a program runs code of another language from its arguments. That code can run anything.
fn runs_other_language(program: &str, arguments: &[ShellWord]) -> bool {
    if ["awk", "gawk", "mawk", "nawk"].contains(&program) {
        return arguments.iter().any(|word| word.text.contains("system") || word.text.contains('|'));
    }
    let name = program.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    let Some((_, letters)) = INTERPRETERS.iter().find(|(known, _)| *known == name) else { return false };
    let is_code = |word: &ShellWord| {
        let option = word.text.strip_prefix('-').filter(|option| !option.starts_with('-'));
        option.is_some_and(|option| option.contains(|c| letters.contains(c)))
            || word.text == "--eval"
            || word.text == "--print"
    };
    // What comes after the name of a script is for the script.
    arguments.iter().take_while(|word| word.text.starts_with('-')).any(is_code)
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        let name = name.strip_suffix('+').unwrap_or(name);
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '[' | ']'))
    })
}

/// A word without its quotes.
#[derive(Debug, Default, Clone)]
struct ShellWord {
    text: String,
    /// Whether the shell would make another word of it.
    dynamic: bool,
}

/// Takes a line apart.
struct ShellLexer<'a> {
    rest: &'a str,
    /// Lines inside of words: `$(…)`, back ticks and the like.
    inner: Vec<String>,
    /// A quote or bracket is not closed.
    broken: bool,
}

impl ShellLexer<'_> {
    /// The words up to the next operator. `None` at the end.
    fn next_command(&mut self) -> Option<Vec<ShellWord>> {
        if self.rest.is_empty() {
            return None;
        }
        let mut words = Vec::new();
        loop {
            self.rest = self.rest.trim_start_matches([' ', '\t']);
            let Some(c) = self.rest.chars().next() else { break };
            match c {
                ';' | '&' | '|' | '(' | ')' | '\n' | '\r' => {
                    // `&>` and `>&` are redirections.
                    self.skip(1);
                    if c == '&' && self.rest.starts_with('>') {
                        continue;
                    }
                    break;
                }
                '#' => self.rest = self.rest.find('\n').map_or("", |end| &self.rest[end..]),
                '<' | '>' if self.rest[1..].starts_with('(') => {
                    self.skip(1);
                    let line = self.bracketed();
                    self.inner.push(line);
                }
                '<' | '>' => {
                    self.rest = self.rest.trim_start_matches(['<', '>', '&', '|', '-']);
                    self.rest = self.rest.trim_start_matches([' ', '\t']);
                    let ends = |c: char| matches!(c, ';' | '&' | '|' | '(' | ')' | '\n' | '\r');
                    if !self.rest.starts_with(ends) && !self.rest.is_empty() {
                        self.word(); // its target
                    }
                }
                _ => {
                    let word = self.word();
                    let is_number =
                        !word.text.is_empty() && word.text.bytes().all(|byte| byte.is_ascii_digit());
                    if !(is_number && self.rest.starts_with(['<', '>'])) {
                        words.push(word);
                    }
                }
            }
        }
        Some(words)
    }

    fn word(&mut self) -> ShellWord {
        let mut word = ShellWord::default();
        while let Some(c) = self.rest.chars().next() {
            match c {
                ' ' | '\t' | '\n' | '\r' | ';' | '&' | '|' | '(' | ')' | '<' | '>' => break,
                '\'' => {
                    self.skip(1);
                    let Some(end) = self.rest.find('\'') else {
                        self.broken = true;
                        word.text.push_str(self.rest);
                        self.rest = "";
                        break;
                    };
                    word.text.push_str(&self.rest[..end]);
                    self.skip(end + 1);
                }
                '"' => {
                    self.skip(1);
                    self.quoted(&mut word);
                }
                '\\' => {
                    self.skip(1);
                    if let Some(c) = self.rest.chars().next() {
                        if c != '\n' {
                            word.text.push(c);
                        }
                        self.skip(c.len_utf8());
                    }
                }
                '$' | '`' => self.substitution(&mut word),
                other => {
                    let is_test =
                        other == '[' && word.text.is_empty() && self.rest[1..].starts_with([' ', '\t', '[']);
                    word.dynamic |= matches!(other, '*' | '?') || other == '[' && !is_test;
                    word.dynamic |= other == ',' && word.text.contains('{');
                    word.text.push(other);
                    self.skip(other.len_utf8());
                }
            }
        }
        word
    }

    fn quoted(&mut self, word: &mut ShellWord) {
        while let Some(c) = self.rest.chars().next() {
            match c {
                '"' => return self.skip(1),
                '\\' if self.rest[1..].starts_with(['"', '\\', '$', '`', '\n']) => {
                    word.text.push_str(&self.rest[1..2]);
                    self.skip(2);
                }
                '$' | '`' => self.substitution(word),
                other => {
                    word.text.push(other);
                    self.skip(other.len_utf8());
                }
            }
        }
        self.broken = true;
    }

    /// A variable or a command in a word.
    fn substitution(&mut self, word: &mut ShellWord) {
        word.dynamic = true;
        if self.rest.starts_with('`') {
            self.skip(1);
            let end = self.rest.find('`').unwrap_or_else(|| {
                self.broken = true;
                self.rest.len()
            });
            let line = self.rest[..end].to_owned();
            self.rest = self.rest.get(end + 1..).unwrap_or_default();
            word.text.push_str(&line);
            self.inner.push(line);
        } else if self.rest.starts_with("$(") {
            self.skip(1);
            let line = self.bracketed();
            word.text.push_str(&line);
            self.inner.push(line);
        } else {
            word.text.push('$');
            self.skip(1);
        }
    }

    /// The text in the brackets that `rest` begins with.
    fn bracketed(&mut self) -> String {
        let mut depth = 0_usize;
        let mut quote = None;
        for (at, c) in self.rest.char_indices() {
            match (quote, c) {
                (None, '\'' | '"') => quote = Some(c),
                (Some(open), c) if open == c => quote = None,
                (None, '(') => depth += 1,
                (None, ')') => {
                    depth -= 1;
                    if depth == 0 {
                        let line = self.rest[1..at].to_owned();
                        self.skip(at + 1);
                        return line;
                    }
                }
                _ => {}
            }
        }
        self.broken = true;
        let line = self.rest[1..].to_owned();
        self.rest = "";
        line
    }

    fn skip(&mut self, bytes: usize) {
        self.rest = &self.rest[bytes..];
    }
}
