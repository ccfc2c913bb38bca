//! Whether Python that is being typed is a whole, and how its next line begins.
//!
//! It knows brackets, strings, comments and lines, no grammar. What is wrong is run, so that Python says why.

use cellwright_kernel::CodeCompleteness;

/// Columns of a step of indentation.
const STEP: usize = 4;
/// Statements after which a block is over.
const LEAVE: [&str; 5] = ["return", "pass", "break", "continue", "raise"];

/// Whether Enter runs the code or begins a new line.
pub(crate) fn completeness(code: &str) -> CodeCompleteness {
    let mut lines = code.lines().filter(|line| !line.trim().is_empty());
    let (Some(first), last) = (lines.next(), lines.next_back()) else { return CodeCompleteness::Complete };
    let last = last.unwrap_or(first);
    let ends_blank = code.rsplit('\n').next().is_some_and(|line| line.trim().is_empty());
    let incomplete = || CodeCompleteness::Incomplete { indent: indent_after(code) };
    let starts = first.trim_start();
    if starts.starts_with("%%") && first == starts {
        // The body of a cell magic is in whatever language: an empty line ends it.
        return if ends_blank { CodeCompleteness::Complete } else { incomplete() };
    }
    let is_command = starts.starts_with(['!', '%', '?']) || first.trim_end().ends_with('?');
    if is_command && std::ptr::eq(first, last) && !first.trim_end().ends_with('\\') {
        return CodeCompleteness::Complete;
    }
    let scan = CodeScan::of(code);
    if scan.is_open() {
        return incomplete();
    }
    if scan.opens_block || last.trim_start().starts_with('@') {
        return incomplete();
    }
    // A block of several lines ends with an empty one, or with a line that does not belong to it.
    if !ends_blank && scan.is_indented && scan.statements > 1 {
        return incomplete();
    }
    CodeCompleteness::Complete
}

/// The white space that a line after this code begins with.
pub(crate) fn indent_after(code: &str) -> String {
    let scan = CodeScan::of(code);
    if scan.string.is_some() {
        return String::new();
    }
    let line = code.rsplit('\n').find(|line| !line.trim().is_empty()).unwrap_or_default();
    let own = line.len() - line.trim_start().len();
    let code = line.trim();
    let opens_bracket = !scan.brackets.is_empty() && code.ends_with(['(', '[', '{']);
    let first_word = code.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default();
    let indent = if scan.opens_block || opens_bracket {
        own + STEP
    } else if scan.brackets.is_empty() && LEAVE.contains(&first_word) {
        own.saturating_sub(STEP)
    } else {
        own
    };
    " ".repeat(indent)
}

/// What is open at the end of a code.
#[derive(Default)]
struct CodeScan {
    brackets: Vec<char>,
    /// The quotes that end the string it is in.
    string: Option<&'static str>,
    /// Its last line goes on.
    continues: bool,
    /// Its last line that is not empty ends with a colon.
    opens_block: bool,
    /// How many lines of Python's there are: brackets and strings make one of several.
    statements: usize,
    /// The last of them does not begin at its margin.
    is_indented: bool,
    /// The white space of a line that has nothing else yet.
    margin: Option<usize>,
}

impl CodeScan {
    fn of(code: &str) -> Self {
        let mut scan = Self { margin: Some(0), ..Self::default() };
        let mut rest = code;
        while let Some(letter) = rest.chars().next() {
            scan.see_margin(letter);
            let length = match scan.string {
                Some(quotes) => scan.in_string(rest, quotes),
                None => scan.in_code(rest),
            };
            // A line's end alone does not close a block's head, nor does the white space after it.
            if !letter.is_whitespace() && letter != '#' {
                scan.opens_block = scan.string.is_none() && scan.brackets.is_empty() && letter == ':';
            }
            if !matches!(letter, '\\' | '\n') && scan.string.is_none() {
                scan.continues = false;
            }
            rest = &rest[length..];
        }
        scan
    }

    /// Notes where lines begin.
    fn see_margin(&mut self, letter: char) {
        match letter {
            '\n' if self.string.is_none() && self.brackets.is_empty() && !self.continues => {
                self.margin = Some(0);
            }
            ' ' | '\t' => self.margin = self.margin.map(|columns| columns + 1),
            _ => {
                if let Some(columns) = self.margin.take() {
                    self.statements += 1;
                    self.is_indented = columns > 0;
                }
            }
        }
    }

    fn is_open(&self) -> bool {
        // A string in single quotes ends with its line: that is an error, which Python reports.
        self.string.is_some_and(|quotes| quotes.len() > 1) || !self.brackets.is_empty() || self.continues
    }

    /// How many bytes belong together in a string.
    fn in_string(&mut self, rest: &str, quotes: &str) -> usize {
        if rest.starts_with(quotes) {
            self.string = None;
            return quotes.len();
        }
        let mut letters = rest.chars();
        let length = letters.next().map_or(0, char::len_utf8);
        if rest.starts_with('\\') {
            return length + letters.next().map_or(0, char::len_utf8);
        }
        if rest.starts_with('\n') && quotes.len() == 1 {
            self.string = None;
        }
        length
    }

    fn in_code(&mut self, rest: &str) -> usize {
        for quotes in ["\"\"\"", "'''", "\"", "'"] {
            if rest.starts_with(quotes) {
                self.string = Some(quotes);
                return quotes.len();
            }
        }
        let letter = rest.chars().next().unwrap_or(' ');
        match letter {
            '#' => return rest.find('\n').unwrap_or(rest.len()),
            '(' | '[' | '{' => self.brackets.push(letter),
            // One too many is an error, which Python reports.
            ')' | ']' | '}' => drop(self.brackets.pop()),
            '\\' => {
                self.continues = rest[1..].is_empty() || rest[1..] == *"\n";
            }
            _ => {}
        }
        letter.len_utf8()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn whole(code: &str) {
        assert_eq!(completeness(code), CodeCompleteness::Complete, "{code:?}");
    }

    #[track_caller]
    fn goes_on(code: &str, indent: usize) {
        let expected = CodeCompleteness::Incomplete { indent: " ".repeat(indent) };
        assert_eq!(completeness(code), expected, "{code:?}");
    }

    #[test]
    fn statements_run_and_blocks_wait_for_an_empty_line() {
        for code in ["", "x = 1", "f(1,\n  2)", "x = ')' # (", "d[1:2]", "lambda: 1", "if x: y", "x # a:"] {
            whole(code);
        }
        goes_on("def f(a,", 0);
        goes_on("def f():", 4);
        goes_on("if x:  # why", 4);
        goes_on("for x in y:\n    print(x)", 4);
        goes_on("def f():\n    return 1", 0);
        goes_on("class A:\n    def f(self):\n        pass", 4);
        goes_on("@cache", 0);
        goes_on("x = 1 + \\", 0);
        whole("for x in y:\n    print(x)\n");
        whole("for x in y:\n    print(x)\nprint()");
        whole("x = 1 + \\\n2");
    }

    #[test]
    fn strings_and_brackets_may_span_lines() {
        goes_on("x = '''a", 0);
        goes_on("    f(", 8);
        goes_on("x = {'a': [1,", 0);
        whole("x = '''a\n(b'''");
        whole("x = 'open");
        whole("x = ))");
        whole(r#"x = "\"(""#);
    }

    #[test]
    fn magics_and_questions_are_lines_of_their_own() {
        for code in ["!ls (", "%time f(1)", "df.head?", "?x", "%%bash\nls\n"] {
            whole(code);
        }
        whole("!echo a:");
        goes_on("%%bash", 0);
        goes_on("%%bash\nls", 0);
    }
}
